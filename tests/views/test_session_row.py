"""A row of a session: how far its issue is, and what each face tells of it."""

from __future__ import annotations

import pytest
from msgspec import structs, to_builtins

from sm.plugins.http.shapes import SESSION
from sm.sessions.activity import Evidence, Proof
from sm.views.session_row import (
    AD_HOC,
    INSIDE,
    KIN,
    STATUS,
    Face,
    SessionRow,
    Stop,
    read_status,
    tell,
    tell_status,
)
from sm.views.states import ShownState

WORK, CI, REVIEW, MERGE = Stop
NOW = 10_000.0


def a_row(state: ShownState, **more: object) -> SessionRow:
    row = SessionRow(
        id="dev-shop-7", name="shop#7", issue=7, state=state, proof=Proof(Evidence.PHASE)
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
def test_the_track_says_where_an_issue_is(row: SessionRow, marks: str) -> None:
    assert [stop for stop, _ in row.track] == [WORK, CI, REVIEW, MERGE]
    assert " ".join(mark for _, mark in row.track) == marks


@pytest.mark.parametrize("face", [AD_HOC, INSIDE, KIN, STATUS, SESSION])
def test_a_face_tells_fields_of_a_row(face: Face) -> None:
    assert set(face.values()) <= set(SessionRow.__struct_fields__)
    assert list(tell(a_row(ShownState.WORKING), face, NOW)) == list(face)


def test_an_age_is_that_of_a_moment_and_nought_if_nobody_knows_the_moment() -> None:
    row = a_row(ShownState.WORKING, begun_at=NOW - 50, state_since=0.0)
    told = tell(row, KIN, NOW)
    assert (told["age_s"], told["state_age_s"], told["state_since"]) == (50.0, 0.0, 0.0)
    assert tell(row, KIN, NOW - 60)["age_s"] == 0.0, "the clock was set back"


def test_another_machine_reads_the_row_that_was_told() -> None:
    row = a_row(
        ShownState.ESCALATED,
        project="shop",
        begun_at=NOW - 50,
        event="told: approved",
        event_at=NOW - 5,
        restarts=2,
        alive=True,
        percent=41.5,
        words="Done.",
        told=True,
    )
    said = to_builtins(tell_status(row, NOW))
    assert structs.replace(read_status(said, NOW), name=row.name) == row


def test_a_machine_that_tells_nothing_more_is_not_said_to_have_told_a_person() -> None:
    said = to_builtins(tell_status(a_row(ShownState.WORKING), NOW))
    assert said["inside"] is None
    assert read_status(said, NOW).told is None
