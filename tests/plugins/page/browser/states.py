"""A site with everything that the page can show, made on disk: no agent is started."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

from sm.adapters.forge.model import CheckState
from sm.context import rotation_files
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.events import RotationStep
from sm.store.files import ensure_private_dir
from tests.helpers import a_pull, an_issue, git, put_session, put_snapshot
from tests.plugins.page.browser.conftest import Site

OVER = "dev-harb-9"


def fill(site: Site, words: str = "Add a checkout") -> None:
    """Sessions at work, one that needs a review, one that is over; `words` stand in each field."""
    project = site.stage.project
    put_snapshot(project, an_issue(3, title=words), a_pull(24, "fix/3", CheckState.SUCCESS))
    session = put_session(project, 3, words, phase=f"PHASE:awaiting_review\nReason: {words}\n")
    put_session(project, 4, words, alive=False)
    _make_branch(session, words)
    _put_messages(session, words)
    _write_document(project, session, words)
    project.record(events.Problem(session=session.name, text=words))
    _end_one(project, words)


def _make_branch(session: IssueSession, words: str) -> None:
    worktree = Path(session.worktree)
    git(session.project.settings.repo, "worktree", "add", "-q", "-b", "fix/3", str(worktree))
    name = words.replace("/", "_").replace("\0", "_").encode()[:200].decode(errors="ignore")
    (worktree / name).write_text(f"{words}\n")
    (worktree / "README.md").write_text("other\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "work")


def _put_messages(session: IssueSession, words: str) -> None:
    order = list(MessageFolder)
    for at, place in enumerate(order):
        message = Message(id=f"message{at}", text=words, created_at=time.time() - at)
        assert queue.put(session.dir, message)
        for source, target in pairwise(order[: at + 1]):
            assert queue.move(session.dir, message, source, target), place


def _write_document(project: Project, session: IssueSession, words: str) -> None:
    folder = site_folder(project)
    path = folder / "handoff-2026-11-28-18-00.md"
    path.write_text(f"# Next steps\n\n{words}\n")
    step = events.Rotation(session=session.name, step=RotationStep.DOCUMENT, document=str(path))
    project.record(step)
    rotation_files.keep(session.dir, path)
    rotation_files.note_begun(session.dir, path, "c", kept=True)


def site_folder(project: Project) -> Path:
    """A folder beside the clone."""
    folder = project.settings.repo.parent / "documents"
    folder.mkdir(exist_ok=True)
    return folder


def _end_one(project: Project, words: str) -> None:
    project.record(events.Started(session=OVER, title=words))
    project.record(events.StepDone(session=OVER, verb=StepVerb.OPEN_PULL, result="#25"))
    project.record(events.Decided(session=OVER, row="merged", reason=words))
    project.record(events.StepDone(session=OVER, verb=StepVerb.FORGET))
    ensure_private_dir(project.root.logs)
    log = project.root.logs / f"{OVER}.1.log"
    log.write_text(f"working\r\n{words}\r\n")
    log.chmod(0o600)
