"""View of the board on the overview: rows in their order, and each need's answers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from sm.acts.offer import NO_LIMITS, Limits, Offer, list_answers
from sm.base.act import ActKind
from sm.base.issue_id import rank
from sm.base.need import NeedKind
from sm.base.text import one_line
from sm.sessions.question import list_choices
from sm.store.paths import name_session
from sm.views.board import Board
from sm.views.glossary import GROUPS, find_group
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow


class Sort(StrEnum):
    """Order of the sessions within their groups."""

    NAME = ""
    STATE = "state"
    SINCE = "since"
    BEGUN = "begun"
    CONTEXT = "context"


class Choice(Struct, frozen=True):
    """What a person wants to see: needs and sessions with these words, of a project, on a host.

    `kind` is of needs, `group` and `sort` are of sessions.
    """

    words: str = ""
    project: str = ""
    host: str = ""
    kind: str = ""
    group: str = ""
    sort: Sort = Sort.NAME


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

    @property
    def brief(self) -> str:
        """What it is about in a few words."""
        return tell_brief(self.need)

    @property
    def choices(self) -> tuple[str, ...]:
        """Choices that stand with the agent's question."""
        asks = any(offer.act.kind in (ActKind.REPLY, ActKind.SEND) for offer in self.answers)
        return list_choices(self.need.whole or self.need.text) if asks else ()


def tell_brief(need: OpenNeed) -> str:
    """Tell what a need is about in a few words: beside them stands its kind."""
    case = need.case
    match need.kind:
        case NeedKind.QUESTION if case and (case.question or case.reason):
            return one_line(case.question or case.reason)
        case NeedKind.DIALOG if need.whole:
            return one_line(need.whole)
        case NeedKind.REVIEW | NeedKind.MERGE if need.title:
            return need.title
    return need.text


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


def choose_needs(needs: Iterable[AnsweredNeed], choice: Choice) -> list[AnsweredNeed]:
    """Return the chosen needs, in their order."""
    return [one for one in needs if _is_chosen_need(one, choice)]


def _is_chosen_need(one: AnsweredNeed, choice: Choice) -> bool:
    need, host = one.need, one.row.host if one.row else ""
    if choice.kind and need.kind != choice.kind:
        return False
    if choice.project and need.project != choice.project:
        return False
    if choice.host and host != choice.host:
        return False
    text = f"{need.name} {need.title} {need.kind} {need.text} {need.whole}"
    return has_words(text, choice.words)


def choose_rows(board: Board, choice: Choice) -> list[SessionRow]:
    """Return the chosen rows: by group, and within it in the order that was chosen."""
    found = (row for row in board.rows if _is_chosen(row, choice))
    return sorted(found, key=lambda row: (PLACES[find_group(row)], *_rank(row, choice.sort)))


PLACES = {group: place for place, group in enumerate(GROUPS)}


def _rank(row: SessionRow, sort: Sort) -> tuple[Any, ...]:
    name = (not row.project, row.project, rank(row.issue), row.begun_at)
    match sort:
        case Sort.STATE:
            return (row.state, *name)
        case Sort.SINCE:
            return (row.state_since or math.inf, *name)
        case Sort.BEGUN:
            return (row.begun_at or math.inf, *name)
        case Sort.CONTEXT:
            return (-(row.percent or 0.0), *name)
        case Sort.NAME:
            return name


def _is_chosen(row: SessionRow, choice: Choice) -> bool:
    if choice.project and row.project != choice.project:
        return False
    if choice.host and row.host != choice.host:
        return False
    if choice.group and find_group(row) != choice.group:
        return False
    pull = f"pull request {row.pull} " if row.pull else ""
    asked = row.need.text if row.need else ""
    return has_words(
        f"{row.name} {row.title} {row.state} {GROUPS[find_group(row)]} {pull}{row.host} "
        f"{row.problem} {row.waits_for} {asked} {row.words}",
        choice.words,
    )


def has_words(text: str, words: str) -> bool:
    """Whether a text has all of these words, in any order and spelling of letters."""
    folded = text.casefold()
    return all(word in folded for word in words.casefold().split())


def list_hosts(board: Board) -> list[str]:
    """List the hosts that a person can choose, none if all sessions are here."""
    return sorted({row.host for row in board.rows if row.host})


def list_kinds(needs: Iterable[AnsweredNeed]) -> dict[str, int]:
    """Count the needs of each kind, in the order of the kinds."""
    listed = [one.need.kind for one in needs]
    return {str(kind): listed.count(kind) for kind in NeedKind if kind in listed}
