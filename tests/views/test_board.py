"""The board: one row for each session, its track, and what it says of needs, contexts and words."""

from __future__ import annotations

import json
import time

import pytest
from msgspec import structs

from sm.adapters.forge.model import CheckState
from sm.base.need import NeedKind
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.views.board import Board, Stop, draw_track
from sm.views.session import StatusRow
from sm.views.states import ShownState
from sm.views.watched_board import WatchedBoard
from tests.helpers import a_pull, an_issue, put_session, put_snapshot
from tests.views.test_session import done, project, write_of  # noqa: F401 - the fixture

WORK, CI, REVIEW, MERGE = Stop


def read(project: Project) -> Board:  # noqa: F811
    return WatchedBoard(project.machine).read([project])


def a_row(phase: ShownState, **more: object) -> StatusRow:
    row = StatusRow(
        project="shop",
        issue=7,
        title="Mend it",
        session="dev-shop-7",
        phase=phase,
        age_s=1.0,
        worktree="/w",
        proof=Proof(Evidence.PHASE),
    )
    return structs.replace(row, **more)


@pytest.mark.parametrize(
    ("row", "marks"),
    [
        (a_row(ShownState.WORKING), "now ahead ahead ahead"),
        (a_row(ShownState.AWAITING_CI, ci="pending"), "done now ahead ahead"),
        (a_row(ShownState.WORKING, ci="failed"), "now back ahead ahead"),
        (a_row(ShownState.AWAITING_REVIEW, ci="passed"), "done done now ahead"),
        (a_row(ShownState.AWAITING_REVIEW), "done done now ahead"),
        (a_row(ShownState.WORKING, ci="passed", review="changes"), "now done back ahead"),
        (a_row(ShownState.WORKING, ci="passed", review="approved"), "done done done now"),
        (a_row(ShownState.WORKING, ci="passed", review="conflicts"), "now done ahead back"),
        (a_row(ShownState.MERGED), "done done done done"),
        (a_row(ShownState.CRASHED), "back ahead ahead ahead"),
        (a_row(ShownState.DAMAGED), "ahead ahead ahead ahead"),
    ],
)
def test_the_track_says_where_an_issue_is(row: StatusRow, marks: str) -> None:
    track = draw_track(row)
    assert [stop for stop, _ in track] == [WORK, CI, REVIEW, MERGE]
    assert " ".join(mark for _, mark in track) == marks


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
