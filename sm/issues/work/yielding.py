"""Yielding: keeps the work of a session that another attempt has overtaken, out of its way."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.git_snapshot import Taken, take
from sm.base.issue_id import IssueId, name_part
from sm.base.nonce import make_nonce
from sm.issues.work import worktree
from sm.issues.work.worktree import Examined
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point


def name_branch(issue: IssueId, attempt: int) -> str:
    """Return the branch of the clone that keeps the work of an attempt."""
    return f"sm/overtaken/{name_part(issue)}-{attempt}"


def keep_work(session: IssueSession) -> str:
    """Put the work into a branch of its own, and clear its worktree away; return what is kept.

    If a branch cannot hold everything, the worktree is moved aside.
    """
    git, settings, issue = session.project.git, session.own_settings, session.issue
    found = worktree.examine(git, settings, issue)
    name = name_branch(issue, session.attempt)
    taken = _take(git, found, settings.branch(issue))
    commit = taken.commit if taken else found.tip or ""
    if not commit:
        return ""
    _keep(git, name, commit)
    crash_point("yield:kept")
    if found.obstacle:
        return f"branch '{name}'; '{found.path}' stays: {found.obstacle}"
    if taken and taken.is_whole:
        worktree.discard(git, settings, issue, found, force=True)
        return f"branch '{name}'"
    aside = _move_aside(git, found) if found.entry else None
    if found.tip:
        git.delete_branch(settings.branch(issue), found.tip)
    return f"branch '{name}'" + (f" and '{aside}'" if aside else "")


def _take(git: Git, found: Examined, branch: str) -> Taken | None:
    if found.entry is None or not (found.path / ".git").exists():
        return None
    return take(git.at(found.path), branch)


def _keep(git: Git, name: str, commit: str) -> None:
    """Point the branch at that commit; after a try that was cut short it may have more."""
    if git.is_ancestor(commit, f"refs/heads/{name}"):
        return
    call(git.repo, "branch", "--force", "--no-track", name, commit)


def _move_aside(git: Git, found: Examined) -> Path:
    """Move the worktree where no issue looks for its own, away from its branch."""
    aside = found.path.with_name(f"{found.path.name}-overtaken-{make_nonce(4)}")
    call(found.path, "checkout", "--quiet", "--detach", accept=(0, 1))
    call(git.repo, "worktree", "move", str(found.path), str(aside))
    return aside
