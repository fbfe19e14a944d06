"""What a person can do where sessions are shown: for a need by its command, else for a session.

Each is a verb of `sm`, and says what it will do before it is done. Nothing is read or done here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct, structs

from sm.issues.meters import SetLimit
from sm.views.board import BoardRow
from sm.views.open_need import OpenNeed
from sm.views.states import ShownState


class Act(StrEnum):
    """What can be done, by the verb of `sm` that does the same."""

    REPLY = "reply"
    SEND = "send"
    APPROVE = "approve"
    REQUEST_CHANGES = "request-changes"
    MERGE = "merge"
    RERUN = "rerun"
    ALLOW = "allow"
    PAUSE = "pause"
    RESUME = "resume"
    ROTATE = "cycle"
    RECOVER = "recover"
    KILL = "kill"
    RAISE = "budget-raise"
    LOWER = "budget-lower"


class Offer(Struct, frozen=True, kw_only=True):
    """One thing to do: `label` is on its button, `tells` says what it will do.

    `asks` is the label of a box for words, '' for none; they may be left out if `optional`. The box
    is for a single word if it has a `proposal`. A `grave` one is asked for a second time. The
    others say what it is about; `limit` is the key of a limit. `known` is what had been decided
    when it was offered: the last verdict on a pull request, or by how much a limit was raised. It
    is refused to whoever could not see what has been decided since.
    """

    act: Act
    label: str
    tells: str
    asks: str = ""
    optional: bool = False
    proposal: str = ""
    grave: bool = False
    session: str = ""
    project: str = ""
    number: int = 0
    head: str = ""
    limit: str = ""
    known: str = ""


Limits = Mapping[str, SetLimit]
"""Limits that a person may change, by the command that raises each."""
NO_LIMITS: Limits = MappingProxyType({})


def list_answers(
    need: OpenNeed, row: BoardRow | None, limits: Limits = NO_LIMITS
) -> tuple[Offer, ...]:
    """What answers the need, by its command; () for what is answered elsewhere."""
    if limit := limits.get(need.command):
        return (offer_to_raise(limit, need.session, need.project),)
    words = _split(need.command)
    head = row.head if row else ""
    match words:
        case ["sm", "reply", *_]:
            return (offer_reply(need),)
        case ["sm", "send", *_]:
            return (offer_message(need.session, need.name),)
        case ["sm", "review", address, *_] if number := _number(address):
            return _offer_review(need, number, head)
        case ["sm", "pr", "merge", address, *_] if number := _number(address):
            return (offer_merge(need.project, number, head),)
        case ["sm", "ci", "rerun", *_]:
            return (_offer_rerun(need),)
        case ["sm", "issue", "label", *_] if need.issue:
            return (_offer_to_allow(need),)
    return ()


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _number(address: str) -> int:
    """The number in `shop#7`, 0 for none."""
    number = address.rpartition("#")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0


def offer_reply(need: OpenNeed) -> Offer:
    """To answer the agent's question."""
    return Offer(
        act=Act.REPLY,
        label="Reply",
        tells=f"The agent gets it as the answer, and issue #{need.issue} as a comment.",
        asks="Your answer",
        project=need.project,
        number=need.issue,
        session=need.session,
    )


def offer_message(session: str, name: str) -> Offer:
    """To send a message."""
    return Offer(
        act=Act.SEND,
        label="Send",
        tells=f"{name} gets it when its turn ends.",
        asks=f"Message to {name}",
        session=session,
    )


def _offer_review(need: OpenNeed, pull: int, head: str) -> tuple[Offer, ...]:
    at = f" at {head[:12]}" if head else ""
    then = "and merges it: nothing else is missing" if need.merges else "it may be merged"
    approve = Offer(
        act=Act.APPROVE,
        label="Approve and merge" if need.merges else "Approve",
        tells=f"Approves pull request {pull}{at}{' ' if need.merges else ': '}{then}.",
        asks="A word on it",
        optional=True,
        session=need.session,
        project=need.project,
        number=pull,
        head=head,
        known=need.verdict,
    )
    turn_back = structs.replace(
        approve,
        act=Act.REQUEST_CHANGES,
        label="Request changes",
        tells=f"Pull request {pull} is not merged{at} before the agent has changed it.",
        asks="What is to change",
        optional=False,
    )
    return approve, turn_back


def offer_merge(project: str, pull: int, head: str) -> Offer:
    """To merge a pull request."""
    at = f" at {head[:12]}" if head else ""
    return Offer(
        act=Act.MERGE,
        label="Merge",
        tells=f"Merges pull request {pull}{at} on the forge.",
        grave=True,
        project=project,
        number=pull,
        head=head,
    )


def _offer_rerun(need: OpenNeed) -> Offer:
    return Offer(
        act=Act.RERUN,
        label="Run CI again",
        tells="What CI said before is forgotten; what it says now reaches the agent.",
        project=need.project,
        number=need.issue,
        session=need.session,
    )


def _offer_to_allow(need: OpenNeed) -> Offer:
    return Offer(
        act=Act.ALLOW,
        label="Allow",
        tells=f"Takes the blocked label off issue #{need.issue}: an agent works on it again.",
        project=need.project,
        number=need.issue,
    )


def list_limit_offers(limit: SetLimit, session: str) -> tuple[Offer, ...]:
    """What can be done with a limit: it is raised, or lowered if it was raised before."""
    rise = offer_to_raise(limit, session, "")
    if not limit.raised:
        return (rise,)
    back = structs.replace(
        rise,
        act=Act.LOWER,
        label="Lower",
        tells=f"Takes that back of the {limit.raised} by which it was raised.",
        proposal=limit.raised,
        grave=True,
    )
    return rise, back


def offer_to_raise(limit: SetLimit, session: str, project: str) -> Offer:
    """To raise a limit."""
    return Offer(
        act=Act.RAISE,
        label="Raise",
        tells=f"Now {limit.shown}. What has waited goes on; who has raised it stays on record.",
        asks="Raise the limit by",
        proposal=limit.proposal,
        session=session,
        project=project,
        limit=limit.key,
        known=limit.raised,
    )


def list_steering(row: BoardRow, *, paused: bool) -> tuple[Offer, ...]:
    """What can be done with a session, whatever it is at."""
    if row.state in (ShownState.ENDED, ShownState.DAMAGED):
        return ()
    rest = _offer_to_go_on(row) if paused else _offer_rest(row)
    return (rest, _offer_rotation(row), *_offer_restart(row), _offer_end(row))


def _offer_rest(row: BoardRow) -> Offer:
    return Offer(
        act=Act.PAUSE,
        label="Pause",
        tells=f"{row.name} finishes its turn, then rests until it is resumed.",
        session=row.id,
    )


def _offer_to_go_on(row: BoardRow) -> Offer:
    return Offer(
        act=Act.RESUME,
        label="Resume",
        tells=f"{row.name} goes on; what was due meanwhile is done now.",
        session=row.id,
    )


def _offer_rotation(row: BoardRow) -> Offer:
    return Offer(
        act=Act.ROTATE,
        label="New context",
        tells=f"{row.name} writes a handoff document, and goes on from it in an empty context.",
        grave=True,
        session=row.id,
    )


def _offer_restart(row: BoardRow) -> tuple[Offer, ...]:
    if not row.issue:
        return ()
    offer = Offer(
        act=Act.RECOVER,
        label="Restart",
        tells="Ends the agent and starts another in the same worktree, with what git knows.",
        grave=True,
        session=row.id,
        project=row.project,
        number=row.issue,
    )
    return (offer,)


def _offer_end(row: BoardRow) -> Offer:
    tells = f"Ends {row.name} and its agent."
    if row.issue and row.state is not ShownState.MERGED:
        label = f"labels issue #{row.issue} blocked"
        tells = f"Ends {row.name} and {label}. Work that is nowhere else stays."
    return Offer(
        act=Act.KILL,
        label="End session",
        tells=tells,
        grave=True,
        session=row.id,
        project=row.project,
        number=row.issue,
    )
