"""A board that is watched shows what a new one would, and reads only what has changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from sm.adapters.forge.model import CheckState
from sm.messages import queue
from sm.messages.queue import Message
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.views import watched_board
from sm.views.board import BoardRow
from sm.views.session import make_rows
from sm.views.watched_board import WatchedBoard
from tests.helpers import a_pull, an_issue, put_session, put_snapshot, remove_tree
from tests.views.test_session import project  # noqa: F401 - the fixture

Change = Callable[[Project, IssueSession], object]


def tell(project: Project, session: IssueSession) -> None:  # noqa: F811
    project.record(events.Monitor(session=session.name, state="started"))


def write_phase(project: Project, session: IssueSession) -> None:  # noqa: F811
    project.root.phase(project.name, session.issue).write_text("PHASE:awaiting_ci\n")


def fill_context(_project: Project, session: IssueSession) -> None:
    session.dir.usage.write_text(f"{time.time():.6f} - 41.5 200000 - - - - 83000\n")
    session.dir.usage.chmod(0o600)


def speak(_project: Project, session: IssueSession) -> None:
    """As the hook of a turn's end does."""
    session.dir.stop_payload.write_text(json.dumps({"last_assistant_message": "Done."}))
    session.dir.stop_payload.chmod(0o600)


def queue_message(_project: Project, session: IssueSession) -> None:
    queue.put(session.dir, Message(id=queue.make_id(), text="Hello.", created_at=time.time()))


def pass_ci(project: Project, session: IssueSession) -> None:  # noqa: F811
    pull = a_pull(24, session.record.branch, CheckState.SUCCESS)
    put_snapshot(project, an_issue(3), an_issue(4), pull)


def begin_another(project: Project, _session: IssueSession) -> None:  # noqa: F811
    put_session(project, 5)


def end(project: Project, session: IssueSession) -> None:  # noqa: F811
    remove_tree(session.dir.path)
    assert not registry.find(project.root, session.name)


def read(watched: WatchedBoard, project: Project, now: float) -> tuple[BoardRow, ...]:  # noqa: F811
    return watched.read([project], now).rows


@pytest.mark.parametrize(
    "change",
    [tell, write_phase, fill_context, speak, queue_message, pass_ci, begin_another, end],
)
def test_it_shows_each_change_as_a_new_board_does(project: Project, change: Change) -> None:  # noqa: F811
    session = put_session(project, 3)
    put_session(project, 4)
    put_snapshot(project, an_issue(3), an_issue(4))
    watched, now = WatchedBoard(project.machine), time.time()
    before = read(watched, project, now)
    change(project, session)
    now = time.time()
    after = read(watched, project, now)
    assert after == WatchedBoard(project.machine).read([project], now).rows
    assert after != before


def test_what_is_as_it_was_is_not_read_again(
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def note(project: Project, now: float, sessions: list[IssueSession], *more: object) -> object:
        made.extend(one.name for one in sessions)
        return make_rows(project, now, sessions, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(watched_board, "make_rows", note)
    session = put_session(project, 3)
    put_session(project, 4)
    put_snapshot(project, an_issue(3), an_issue(4))
    watched = WatchedBoard(project.machine)
    first = read(watched, project, time.time())
    assert read(watched, project, time.time()) == first
    assert made == ["dev-harb-3", "dev-harb-4"]
    tell(project, session)
    read(watched, project, time.time())
    assert made[2:] == ["dev-harb-3"]
    monkeypatch.setattr(watched_board, "KEPT_S", -1.0)
    tell(project, session)
    read(watched, project, time.time())
    read(watched, project, time.time())
    assert made[3:] == ["dev-harb-3", "dev-harb-3"]
