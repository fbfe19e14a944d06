"""The board: one row for each session, and what it says of needs, contexts and words."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from sm.adapters.forge.model import CheckState
from sm.base.need import NeedKind
from sm.messages import queue
from sm.messages.queue import Message
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.views import board as board_module
from sm.views import project as project_module
from sm.views.board import Board, WatchedBoard
from sm.views.figures import Figure
from sm.views.session import make_rows
from sm.views.session_row import SessionRow
from sm.views.states import ShownState
from tests.helpers import a_pull, an_issue, put_session, put_snapshot, remove_tree
from tests.views.test_session import done, project, write_of  # noqa: F401 - the fixture

Change = Callable[[Project, IssueSession], object]


def read(project: Project) -> Board:  # noqa: F811
    return WatchedBoard(project.machine).read([project])


def test_a_row_says_what_its_agent_said_last_and_how_full_its_context_is(
    project: Project,  # noqa: F811
) -> None:
    session = put_session(project, 7, "Mend\nit")
    said = {"last_assistant_message": "I am done.\n\x1b[31mtoken=ghp_" + "a" * 36}
    session.dir.stop_payload.write_text(json.dumps(said))
    session.dir.stop_payload.chmod(0o600)
    session.dir.usage.write_text(f"{time.time():.6f} - 41.5 200000 - - - - 83000\n")
    session.dir.usage.chmod(0o600)
    [row] = read(project).rows
    assert (row.id, row.name, row.title) == ("dev-harb-7", "harb#7", "Mend it")
    assert row.percent == 41.5
    assert row.words.startswith("I am done.")
    assert "\x1b" not in row.words
    assert "ghp_" not in row.words
    assert row.begun_at == pytest.approx(session.record.created_at, abs=0.01)


def test_the_need_of_a_session_is_in_its_row_and_among_all_needs(
    project: Project,  # noqa: F811
) -> None:
    put_session(project, 7, phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(7), a_pull(11, "fix/7", CheckState.SUCCESS))
    board = read(project)
    row = board.find("dev-harb-7")
    assert row
    assert row.need
    assert row.need.kind is NeedKind.REVIEW
    assert row.need in board.needs
    assert row.pull == 11
    assert board.seen["harb"] > 0


def test_a_session_that_cannot_be_read_is_a_row_like_the_others(
    project: Project,  # noqa: F811
) -> None:
    put_session(project, 7)
    damaged = put_session(project, 8)
    damaged.dir.receipts.unlink()
    damaged.dir.receipts.mkdir()
    states = {row.issue: row.state for row in read(project).rows}
    assert states[7] is not ShownState.DAMAGED
    assert states[8] is ShownState.DAMAGED


# A board that is watched shows what a new one would, and reads only what has changed


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


def look(watched: WatchedBoard, project: Project, now: float) -> tuple[SessionRow, ...]:  # noqa: F811
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
    before = look(watched, project, now)
    change(project, session)
    now = time.time()
    after = look(watched, project, now)
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

    monkeypatch.setattr(board_module, "make_rows", note)
    session = put_session(project, 3)
    put_session(project, 4)
    put_snapshot(project, an_issue(3), an_issue(4))
    watched = WatchedBoard(project.machine)
    first = look(watched, project, time.time())
    assert look(watched, project, time.time()) == first
    assert made == ["dev-harb-3", "dev-harb-4"]
    tell(project, session)
    look(watched, project, time.time())
    assert made[2:] == ["dev-harb-3"]
    monkeypatch.setattr(board_module, "KEPT_S", -1.0)
    tell(project, session)
    look(watched, project, time.time())
    look(watched, project, time.time())
    assert made[3:] == ["dev-harb-3", "dev-harb-3"]


def test_a_row_stays_the_same_object_as_long_as_nothing_of_it_changes(
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = ["$1"]

    def read_figures(*_: object) -> dict[str, dict[str, Figure]]:
        return {"dev-harb-3": {"cost": Figure(shown[-1])}}

    monkeypatch.setattr(project_module, "read_figures", read_figures)
    put_session(project, 3)
    watched, now = WatchedBoard(project.machine), time.time()
    [first] = look(watched, project, now)
    assert first.figures == {"cost": Figure("$1")}
    [again] = look(watched, project, now)
    assert again is first
    shown.append("$2")
    [dearer] = look(watched, project, now)
    assert dearer.figures == {"cost": Figure("$2")}


def test_a_session_whose_project_was_taken_out_says_how_full_its_context_is(
    project: Project,  # noqa: F811
) -> None:
    fill_context(project, put_session(project, 3))
    [row] = WatchedBoard(project.machine).read([]).rows
    assert (row.id, row.percent) == ("dev-harb-3", 41.5)
