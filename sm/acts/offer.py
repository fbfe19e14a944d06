"""Offers to a person, where sessions are shown: acts that answer a need, or steer a session.

An offer says what its act will do before it is done. Nothing is read or done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, structs

from sm.base.act import Act, ActKind
from sm.base.issue_id import spell
from sm.issues.meters import SetLimit
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow
from sm.views.states import ShownState


class Offer(Struct, frozen=True, kw_only=True):
    """An act that a person may choose: `label` is on its button, `tells` says what it will do.

    `asks` is the label of a box for words, '' for none; they may be left out if `optional`. The box
    is for a single word if it has a `proposal`. A `grave` act is asked for a second time.
    """

    act: Act
    label: str
    tells: str
    asks: str = ""
    optional: bool = False
    proposal: str = ""
    grave: bool = False


Limits = Mapping[Act, SetLimit]
"""Limits that a person may change, by the act that raises each."""
NO_LIMITS: Limits = MappingProxyType({})


def list_answers(
    need: OpenNeed, row: SessionRow | None, limits: Limits = NO_LIMITS
) -> tuple[Offer, ...]:
    """List the offers that answer the need; () if it is answered elsewhere."""
    head = row.head if row else ""
    match need.act.kind:
        case ActKind.RAISE if limit := limits.get(need.act):
            return (offer_to_raise(limit, need.session, need.project),)
        case ActKind.REPLY:
            return (offer_reply(need),)
        case ActKind.SEND:
            return (offer_message(need.session, need.name),)
        case ActKind.REVIEW:
            return _offer_review(need, head)
        case ActKind.MERGE:
            return (offer_merge(need.project, need.act.pull, head),)
        case ActKind.RERUN:
            return (_offer_rerun(need),)
        case ActKind.ALLOW:
            return (_offer_to_allow(need),)
    return ()


def offer_reply(need: OpenNeed) -> Offer:
    """Return the offer to answer the agent's question."""
    return Offer(
        act=Act(ActKind.REPLY, need.project, need.issue, need.session),
        label="Reply",
        tells=f"The agent gets it as the answer, and issue {spell(need.issue)} as a comment.",
        asks="Your answer",
    )


def offer_message(session: str, name: str) -> Offer:
    """Return the offer to send a message to a session, which its texts call `name`."""
    return Offer(
        act=Act(ActKind.SEND, session=session, address=name),
        label="Send",
        tells=f"{name} gets it when its turn ends.",
        asks=f"Message to {name}",
    )


def _offer_review(need: OpenNeed, head: str) -> tuple[Offer, ...]:
    pull = need.act.number
    at = f" at {head[:12]}" if head else ""
    then = "and merges it: nothing else is missing" if need.merges else "it may be merged"
    act = Act(ActKind.APPROVE, need.project, pull, need.session, head=head, known=need.verdict)
    approve = Offer(
        act=act,
        label="Approve and merge" if need.merges else "Approve",
        tells=f"Approves pull request {pull}{at}{' ' if need.merges else ': '}{then}.",
        asks="A word on it",
        optional=True,
    )
    turn_back = Offer(
        act=structs.replace(act, kind=ActKind.REQUEST_CHANGES),
        label="Request changes",
        tells=f"Pull request {pull} is not merged{at} before the agent has changed it.",
        asks="What is to change",
    )
    return approve, turn_back


def offer_merge(project: str, pull: int, head: str) -> Offer:
    """Return the offer to merge a pull request at the commit `head`."""
    at = f" at {head[:12]}" if head else ""
    return Offer(
        act=Act(ActKind.MERGE, project, pull, head=head),
        label="Merge",
        tells=f"Merges pull request {pull}{at} on the forge.",
        grave=True,
    )


def _offer_rerun(need: OpenNeed) -> Offer:
    return Offer(
        act=Act(ActKind.RERUN, need.project, need.issue, need.session),
        label="Run CI again",
        tells="What CI said before is forgotten; what it says now reaches the agent.",
    )


def _offer_to_allow(need: OpenNeed) -> Offer:
    return Offer(
        act=need.act,
        label="Allow",
        tells=f"Takes the blocked label off issue {spell(need.issue)}: an agent works on it again.",
    )


def list_limit_offers(limit: SetLimit, session: str) -> tuple[Offer, ...]:
    """List the offers for a limit: to raise it, and to lower it if it was raised before."""
    rise = offer_to_raise(limit, session, "")
    if not limit.raised:
        return (rise,)
    back = structs.replace(
        rise,
        act=structs.replace(rise.act, kind=ActKind.LOWER),
        label="Lower",
        tells=f"Takes that back of the {limit.raised} by which it was raised.",
        proposal=limit.raised,
        grave=True,
    )
    return rise, back


def offer_to_raise(limit: SetLimit, session: str, project: str) -> Offer:
    """Return the offer to raise a limit by an amount."""
    return Offer(
        act=Act(ActKind.RAISE, project, session=session, limit=limit.key, known=limit.raised),
        label="Raise",
        tells=f"Now {limit.shown}. What has waited goes on; who has raised it stays on record.",
        asks="Raise the limit by",
        proposal=limit.proposal,
    )


def offer_brake(project: str, *, paused: bool) -> Offer:
    """Return the offer to have all sessions of a project rest, or go on; of all projects for ''."""
    whose = f"All sessions of {project}" if project else "All sessions"
    if paused:
        return Offer(
            act=Act(ActKind.RESUME, project),
            label="Resume",
            tells=f"{whose} go on; what was due meanwhile is done now.",
        )
    return Offer(
        act=Act(ActKind.PAUSE, project),
        label="Pause",
        tells=f"{whose} finish their turn, then rest until they are resumed.",
    )


def list_steering(row: SessionRow, *, paused: bool) -> tuple[Offer, ...]:
    """List the offers that steer a session, whatever its state."""
    if row.state in (ShownState.ENDED, ShownState.DAMAGED):
        return ()
    rest = Offer(
        act=Act(ActKind.PAUSE, session=row.id),
        label="Pause",
        tells=f"{row.name} finishes its turn, then rests until it is resumed.",
    )
    go_on = Offer(
        act=Act(ActKind.RESUME, session=row.id),
        label="Resume",
        tells=f"{row.name} goes on; what was due meanwhile is done now.",
    )
    rotate = Offer(
        act=Act(ActKind.ROTATE, session=row.id),
        label="New context",
        tells=f"{row.name} writes a handoff document, and goes on from it in an empty context.",
        grave=True,
    )
    restart = Offer(
        act=Act(ActKind.RECOVER, row.project, row.issue, row.id),
        label="Restart",
        tells="Ends the agent and starts another in the same worktree, with what git knows.",
        grave=True,
    )
    rest_or_not = go_on if paused else rest
    return (rest_or_not, rotate, *[restart] * bool(row.issue), _offer_end(row))


def _offer_end(row: SessionRow) -> Offer:
    tells = f"Ends {row.name} and its agent."
    if row.issue and row.state is not ShownState.MERGED:
        label = f"labels issue {spell(row.issue)} blocked"
        tells = f"Ends {row.name} and {label}. Work that is nowhere else stays."
    return Offer(
        act=Act(ActKind.KILL, row.project, row.issue, row.id),
        label="End session",
        tells=tells,
        grave=True,
    )
