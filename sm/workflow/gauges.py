"""How full the contexts of sessions are, and what was done about it. Nothing is changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.errors import SmError, StateError
from sm.session import agentstate, handoff, health, readings, registry
from sm.session.readings import Reading
from sm.session.registry import AnySession
from sm.session.targets import address, is_over
from sm.store.paths import Root, SessionDir
from sm.thresholds import FULL, Flags, Levels, ahead
from sm.workflow import host, kin, policy, replacement
from sm.workflow.replacement import Replacement


class Gauge(Struct, frozen=True, kw_only=True):
    """One session. `percent`, `tokens` and `window` are None where they are not known.

    `told` is `warning` or `critical`, `next` what comes at which percentage, `rotation` its cause
    and step, `doing` the same in words, `since_s` the age of that in seconds, `last_handoff` a
    path; each '' for none. `own` is what was set for the session alone, `notes` what a person
    should know.
    """

    id: str
    name: str
    percent: float | None = None
    tokens: int | None = None
    window: int | None = None
    age_s: float | None = None
    told: str = ""
    next: tuple[str, ...] = ()
    rotation: str = ""
    doing: str = ""
    since_s: float = 0.0
    last_handoff: str = ""
    own: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def gauges(root: Root) -> list[Gauge]:
    """Those of all sessions that have not ended, by age; of a damaged one what is wrong with it."""
    found = [one for one in registry.all(root, lambda _: None) if not is_over(one)]
    rows = [_gauge(one) for one in sorted(found, key=lambda session: session.created_at)]
    damaged = registry.damaged(root).items()
    return [*rows, *(Gauge(id=it, name=it, notes=(why.message,)) for it, why in damaged)]


def _gauge(session: AnySession) -> Gauge:
    """A row for any session: what is wrong with one hides no other."""
    try:
        return gauge(session)
    except (SmError, OSError) as error:
        note = error.message if isinstance(error, SmError) else str(error)
        return Gauge(id=session.name, name=address(session), notes=(note,))


def gauge(session: AnySession) -> Gauge:
    """That of one session; most of what cannot be read is among its notes.

    Raises:
        StateError: a file of it that everything else hangs on is damaged.

    """
    directory, now = session.dir, time.time()
    notes: list[str] = []
    flags = readings.flags(directory)
    reading = readings.current(directory, flags)
    if flags.context != agentstate.read(directory).context:
        flags = Flags()
    going_on = _replacement(directory, notes)
    last = _last(directory, notes)
    return Gauge(
        id=session.name,
        name=address(session),
        percent=percent_of(reading),
        tokens=reading.used if reading else None,
        window=reading.window if reading else None,
        age_s=max(0.0, now - reading.at) if reading else None,
        told="critical" if flags.critical else "warning" if flags.warned else "",
        next=tuple(_next(session, flags, notes)),
        rotation=_rotation(directory),
        doing=going_on.told if going_on else "",
        since_s=going_on.age_s if going_on else 0.0,
        last_handoff=last,
        own=tuple(own(session)),
        notes=(
            *notes,
            *_in_the_way(going_on),
            *_in_vain(session, flags, going_on),
            *_notes(session, reading),
        ),
    )


def percent_of(reading: Reading | None) -> float | None:
    """How full that is; what an agent tells beyond the whole is the whole."""
    if reading is None or reading.percent is None:
        return None
    return min(reading.percent, FULL)


def _replacement(directory: SessionDir, notes: list[str]) -> Replacement | None:
    try:
        return replacement.under_way(directory)
    except StateError as error:
        notes.append(error.message)
        return None


def _last(directory: SessionDir, notes: list[str]) -> str:
    try:
        return str(handoff.known_last(directory) or "")
    except StateError as error:
        notes.append(error.message)
        return ""


def _in_the_way(found: Replacement | None) -> Iterator[str]:
    if found and found.obstacle:
        yield f"its context cannot be cleared yet: {found.obstacle}"


def _in_vain(session: AnySession, flags: Flags, found: Replacement | None) -> Iterator[str]:
    if flags.cycled and found is None:
        yield (
            "its cycle came to nothing, and no other begins by itself in this context: "
            f"see 'sm trace {address(session)}'"
        )


def _rotation(directory: SessionDir) -> str:
    """Its cause and step, '' for none; what is damaged is noted elsewhere."""
    with contextlib.suppress(StateError):
        if record := handoff.record(directory):
            return f"{record.cause}: {record.step}"
    return "handoff: waits for the turn's end" if directory.handoff.exists() else ""


def _next(session: AnySession, flags: Flags, notes: list[str]) -> Iterator[str]:
    """What is still to come in this context, the nearest first."""
    levels = Levels()
    try:
        raised = health.raised_by(session.root, session.name)
        levels = host.policy_of(session).levels(raised)
        if raised and levels.cycle:
            notes.append(
                f"its cycle is put off to {levels.cycle:g}%: too many cycles within an hour"
            )
    except SmError as error:
        notes.append(error.message)
    for what, level in ahead(levels, flags):
        yield f"{what} at {level:g}%"


def own(session: AnySession) -> Iterator[str]:
    """What was set for the session alone, in words."""
    try:
        found = policy.settings(session.dir)
    except StateError as error:
        yield error.message
        return
    for what, value in (("monitor", found.monitor), ("cycle", found.cycle)):
        if value is not None:
            yield f"{what} {'on' if value else 'off'}"
    for what, number in (
        ("warning", found.warning_percentage),
        ("critical", found.critical_percentage),
        ("cycle", found.cycle_percentage),
    ):
        if number is not None:
            yield f"{what} at {number}%"
    if found.tell is not None:
        yield f"tells {' and '.join(found.tell) or 'nobody'}"


def _notes(session: AnySession, reading: Reading | None) -> Iterator[str]:
    if kin.standing(session) == "dead":
        yield "its agent has died"
        return
    with contextlib.suppress(SmError):
        profile = host.target_of(session).profile
        try:
            handoff.check(profile)
        except SmError as error:
            yield error.message
        if reading is None and not tells(profile):
            yield "its agent does not tell how full its context is: see docs/PROFILES.md"
            return
    if readings.is_compacting(session.dir):
        yield "its context is being summed up"
    elif reading is None and _is_unknown(session.dir):
        yield "its agent does not know yet how full its context is"
    elif reading is None:
        yield "no reading yet of its present context"


def _is_unknown(directory: SessionDir) -> bool:
    """Whether the agent has said of its present context that it cannot say."""
    last, present = readings.read(directory), agentstate.read(directory).context
    return last is not None and last.percent is None and last.context == present


def tells(profile: Profile) -> bool:
    """Whether there is a way to know how full the context of such an agent is."""
    return profile.hooks == "claude" or bool(profile.context_command or profile.context_pattern)
