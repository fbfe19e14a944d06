"""Pull requests of the embedded forge that wait for a review, with sessions but without agents."""

from __future__ import annotations

import time
from pathlib import Path

from sm.issues.look.snapshot import snapshot
from sm.plugins.page.board_reader import BoardReader, PageFinder
from sm.sessions.project import Project
from sm.sessions.session import AnySession
from sm.views.place import Place
from tests.helpers import git, put_session

WAITS = "PHASE:awaiting_review\n"


def offer(project: Project, title: str = "Mend it") -> tuple[int, int]:
    """File an issue, and offer a branch for it; returns the numbers of issue and pull request."""
    number = project.forge.issues.add(title, author="ada").number
    put_session(project, number, title, phase=WAITS)
    push(project, number, "first\n")
    settings = project.settings
    branch = settings.branch(number)
    pull = project.forge.pulls.open(branch, settings.primary_branch, title, author="sm")
    look(project)
    return number, pull.number


def push(project: Project, issue: int, content: str) -> str:
    """Push one more commit to the issue's branch, from its worktree; returns it."""
    settings = project.settings
    worktree, branch = Path(settings.worktree(issue)), settings.branch(issue)
    if not (worktree / ".git").exists():
        git(settings.repo, "worktree", "add", "-q", "-b", branch, str(worktree))
    (worktree / f"work-{issue}.txt").write_text(content)
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", f"work on {issue}")
    git(worktree, "push", "-q", "origin", "HEAD")
    return git(worktree, "rev-parse", "HEAD")


def look(project: Project) -> None:
    """Have the forge looked at, as the next pass would."""
    snapshot(project, newer_than=time.time())


def find_here(session: AnySession) -> Place:
    """Find the place of a session of this machine as the page does."""
    finder = PageFinder(BoardReader(session.machine))
    finder.find_session = lambda ident: session
    return finder.find_place(session.name)
