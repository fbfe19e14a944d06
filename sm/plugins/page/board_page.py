"""View of the board on the overview: rows in their order, and each need's answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from sm.acts.offer import NO_LIMITS, Limits, Offer, list_answers
from sm.base.issue_id import rank
from sm.store.paths import name_session
from sm.views.board import Board
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow
from sm.views.states import ShownState

WORKING = (ShownState.WORKING, ShownState.BUSY, ShownState.RUNNING, ShownState.STARTING)
OVER = (ShownState.DONE, ShownState.MERGED, ShownState.ENDED)


class RowChoice(Struct, frozen=True):
    """Filter of the overview: rows with these words, of a project, in one of the `groups`."""

    words: str = ""
    project: str = ""
    group: str = ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not (self.words or self.project or self.group)


GROUPS = {"needs": "needs you", "working": "at work", "waiting": "waits", "over": "over"}
"""Groups of rows, and what they are called."""


def find_group(row: SessionRow) -> str:
    """Return the group that a row is in."""
    if row.need:
        return "needs"
    if row.state in OVER:
        return "over"
    return "working" if row.state in WORKING else "waiting"


class AnsweredNeed(Struct, frozen=True):
    """A need, its answers, the row of its session if there is one, and what a link names."""

    need: OpenNeed
    answers: tuple[Offer, ...]
    row: SessionRow | None
    anchor: str = ""

    @property
    def head(self) -> str:
        """Commit that its answers are of, '' if they are of none."""
        return next((offer.act.head for offer in self.answers if offer.act.head), "")


def answer_needs(board: Board, limits: Limits = NO_LIMITS) -> tuple[AnsweredNeed, ...]:
    """Return each need with what answers it."""
    rows = {row.id: row for row in board.rows}
    return tuple(
        AnsweredNeed(need, list_answers(need, row, limits), row, anchor)
        for need, anchor in zip(board.needs, _name_anchors(board.needs), strict=True)
        for row in (rows.get(need.session),)
    )


def _name_anchors(needs: Iterable[OpenNeed]) -> Iterator[str]:
    """Name an anchor for each session's first need: a notification's link names only the session.

    A blocked issue has the name of the session that it had: its end was told with that name.
    """
    named = {""}
    for need in needs:
        session = need.session or (name_session(need.project, need.issue) if need.issue else "")
        yield "" if session in named else f"need-{session}"
        named.add(session)


def choose_rows(board: Board, choice: RowChoice) -> list[SessionRow]:
    """Return the chosen rows, in an order that nothing but a new session changes."""
    found = (row for row in board.rows if _is_chosen(row, choice))
    return sorted(
        found, key=lambda row: (not row.project, row.project, rank(row.issue), row.begun_at)
    )


def _is_chosen(row: SessionRow, choice: RowChoice) -> bool:
    if choice.project and row.project != choice.project:
        return False
    if choice.group and find_group(row) != choice.group:
        return False
    text = f"{row.name} {row.title} {row.state} {row.waits_for} {row.words}".casefold()
    return all(word in text for word in choice.words.casefold().split())


def count_groups(rows: Iterable[SessionRow]) -> dict[str, int]:
    """Count the rows of each group."""
    listed = [find_group(row) for row in rows]
    return {group: listed.count(group) for group in GROUPS}
