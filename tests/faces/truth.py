"""What is so, by the world's own books, and what of it `sm` says otherwise."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

from sm.base.need import NeedKind
from sm.plugins.cost.ledger.amount import show_dollars
from sm.sessions.signs import PATIENCE_S
from sm.views.states import ShownState
from tests.faces.book import Book, Doing, There
from tests.faces.faces import Row
from tests.faces.world import World

OF_A_SESSION = (
    *(NeedKind.QUESTION, NeedKind.DIALOG, NeedKind.LOGIN, NeedKind.REVIEW, NeedKind.MERGE),
    *(NeedKind.CI, NeedKind.BUDGET, NeedKind.LIMITS, NeedKind.BLOCKED, NeedKind.FAILED),
    NeedKind.REFUSED,
)
AWAITING = (ShownState.AWAITING_CI, ShownState.AWAITING_REVIEW, ShownState.STARTING)
Needs = list[dict[str, Any]]


def list_reasons(world: World, book: Book) -> dict[NeedKind, str]:
    """Why a person is needed for an issue, with words that have to be in what is said of it."""
    if not world.has_session(book):
        if world.is_blocked(book):
            return dict.fromkeys((NeedKind.BLOCKED, NeedKind.FAILED, NeedKind.LIMITS), "")
        return {}
    if book.record or book.merged or not world.is_open(book) or world.is_blocked(book):
        return {}
    if book.phase == "failed":  # its end waits: it is paused, or a person is at its terminal
        return {NeedKind.FAILED: ""}
    found: dict[NeedKind, str] = {}
    if book.doing is Doing.DIALOG:
        found[NeedKind.DIALOG] = ""
    if book.doing is Doing.QUESTION and not book.phase:
        found[NeedKind.QUESTION] = book.question
    if book.phase == "escalate" and not book.answered:
        found[NeedKind.QUESTION] = book.asked
    # For a paused session sm opens no pull request.
    waits = book.phase == "awaiting_review" and book.ci == "success" and not book.review
    if waits and world.find_pull(book) is not None:
        found[NeedKind.REVIEW] = ""
    return found


def list_chances(world: World, book: Book) -> dict[NeedKind, str]:
    """What a person may be needed for, and need not be."""
    found: dict[NeedKind, str] = {}
    # Beside a phase that may be answered already; or asked by an agent that has died since, and is
    # not begun again before a pause is over.
    if book.doing is Doing.QUESTION or (book.doing is Doing.DEAD and book.question):
        found[NeedKind.QUESTION] = book.question
    if book.doing is Doing.LOCKED_OUT:  # alone, and its client was started again for that
        found[NeedKind.LOGIN] = ""
    if book.doing is Doing.IDLE:  # once its reminders are used up
        found[NeedKind.LIMITS] = ""
    if world.has_budget(book) and (book.cents or book.unpriced):
        found[NeedKind.BUDGET] = ""
    return found


def list_states(world: World, book: Book) -> set[ShownState]:
    """What its session may be called; none: anything."""
    if book.record or not world.has_session(book):
        return set()
    if book.merged:
        return {ShownState.MERGED, ShownState.DONE}
    if book.phase == "failed":
        return {ShownState.FAILED}
    if book.doing is Doing.DEAD:
        rests = {ShownState.PARKED} if find_login(world) is not Login.THERE else set()
        return {ShownState.CRASHED, ShownState.STARTING, *rests}
    if book.doing is Doing.LOCKED_OUT and book.phase != "escalate":
        return {ShownState.PARKED, ShownState.WORKING, ShownState.ESCALATED, *AWAITING}
    if book.phase == "escalate" and not book.answered:
        return {ShownState.ESCALATED}
    return set()


class Login(Enum):
    """What is so of the account's login."""

    THERE = auto()
    LOST = auto()
    JUST_LOST = auto()
    """By one session, while others may be about to show that it is that one alone."""
    UNSURE = auto()
    """A session that was told to go on has failed again, or the hooks' clock is another one."""


def find_login(world: World) -> Login:
    """Return what is so of the login of the account that all sessions have."""
    account = world.account
    account.keep(world.list_worked_on())
    if account.is_unsure or world.was_behind:
        return Login.UNSURE
    if not account.lost_at:
        return Login.THERE
    age_s = time.monotonic() - account.lost_at + world.clock_s
    return Login.LOST if account.is_alone or age_s > PATIENCE_S else Login.JUST_LOST


def tell_cost(book: Book) -> str | None:
    """What all faces have to say of its cost; None for nothing."""
    if not book.requests:
        return None
    at_least = "≥" if book.unpriced else ""
    return f"{at_least}{show_dollars(book.cents / 100)}" if book.cents else ""


def judge(world: World, needs: Needs, rows: dict[str, Row]) -> Iterator[str]:
    """Say what of the needs and the rows of sessions is not so."""
    if world.is_config_broken:
        return
    yield from _judge_there(world, needs, rows)
    if world.is_calm:
        return
    yield from _judge_own(world, needs, rows)
    yield from _judge_accounts(world, needs)
    for book in world.books.values():
        if book.project in world.list_names():
            yield from _judge_needs(world, book, needs)
            yield from _judge_row(world, book, rows.get(book.session))
            yield from _judge_told(world, book)


def _judge_there(world: World, needs: Needs, rows: dict[str, Row]) -> Iterator[str]:
    for session, asks in world.there.items():
        told = [one for one in needs if one["session"] == session]
        if asks != bool(told):
            yield f"{session} on a host {'asks' if asks else 'works'}, and what is told is {told}"
        if session not in rows:
            yield f"{session} is worked on by a host, and no face has it"


def _judge_own(world: World, needs: Needs, rows: dict[str, Row]) -> Iterator[str]:
    for name, doing in world.own.items():
        told = {one["kind"] for one in needs if one["session"] == name}
        wanted = {NeedKind.DIALOG} if doing is Doing.DIALOG else set()
        if told != wanted:
            yield f"session {name} is at a {doing}, and needs a person for {sorted(told)}"
        row = rows.get(name)
        if row is None or row.state != str(doing):
            yield f"session {name} is at a {doing}, and shown as {row}"


def _judge_accounts(world: World, needs: Needs) -> Iterator[str]:
    """Say so if there is no need for the account while its login is lost, two, or one without."""
    told = [one for one in needs if one["key"].startswith("account:")]
    if len(told) > 1:
        yield f"all sessions have one account, and it needs a person {len(told)} times: {told}"
    login = find_login(world)
    if told and login is Login.THERE:
        yield f"the account has its login, and what is said is {json.dumps(told)}"
    if not told and login is Login.LOST:
        yield "the login of the account is lost, and nothing says so"


def _judge_needs(world: World, book: Book, needs: Needs) -> Iterator[str]:
    reasons = list_reasons(world, book)
    told = [
        one
        for one in needs
        if (one["project"], one["issue"]) == book.key and one["kind"] in OF_A_SESSION
    ]
    if reasons and not told:
        yield f"{book.name} needs a person ({', '.join(reasons)}), and nothing says so"
    for one in told:
        words = (list_chances(world, book) | reasons).get(NeedKind(one["kind"]))
        if words is None and not book.record:
            yield f"{book.name} needs nobody for what is said: {json.dumps(one)}"
        elif words and words not in one["text"]:
            yield f"{book.name} has asked '{words}', and what is said is '{one['text']}'"


def _judge_told(world: World, book: Book) -> Iterator[str]:
    """Say what of it people were not told by dev-poll, and by their services."""
    if world.paused or book.person not in (There.NOBODY, There.LOOKS):
        return
    news, reasons = book.news[book.news_before :], list_reasons(world, book)
    asks = book.phase == "escalate" and not book.answered
    is_over = book.merged_at_work and not world.has_session(book)
    if is_over and not any("merged" in one for one in news):
        yield f"{book.name} is merged, and dev-poll has told {news}"
    if not (asks and NeedKind.QUESTION in reasons):
        return
    if not any(one.startswith("needs you: ") for one in news):
        yield f"{book.name} needs a person ({', '.join(reasons)}), and dev-poll has told {news}"
    wanted = book.session, NeedKind.QUESTION
    words = [one for one in world.list_words() if (one.session, one.need) == wanted]
    if not words:
        yield f"{book.name} needs a person ({wanted[1]}), and no service is to tell it"
    elif not any(book.asked in one.sentence for one in words):
        yield f"{book.name} has asked '{book.asked}', and what is told is {words}"


def _judge_row(world: World, book: Book, row: Row | None) -> Iterator[str]:
    if row is None:
        if world.has_session(book):
            yield f"{book.name} is worked on, and no face has it"
        return
    states = list_states(world, book)
    if states and row.state not in states:
        yield f"{book.name} is {row.state}, and should be one of {sorted(states)}"
    cost = tell_cost(book)
    # A turn that was cut off, or of which nothing was written down, may have cost more.
    known = (cost, f"≥{cost}")
    if cost and row.cost not in known and not book.record:
        yield f"{book.name} has cost {cost}, and is said to have cost {row.cost}"
