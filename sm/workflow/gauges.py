"""How full the contexts of sessions are, and what was done about it. Nothing is changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.errors import SmError, StateError
from sm.rotation import Rotation
from sm.session import agentstate, handoff, health, readings, registry
from sm.session.readings import Reading
from sm.session.registry import AnySession
from sm.session.targets import address, is_over
from sm.store.paths import Root, SessionDir
from sm.thresholds import Flags, Levels
from sm.workflow import host, policy


class Gauge(Struct, frozen=True, kw_only=True):
    """One session. `percent`, `tokens` and `window` are None where they are not known.

    `told` is `warning` or `critical`, `next` what comes at which percentage, `rotation` its cause
    and step, `since_s` the age of that in seconds, `last_handoff` a path; each '' for none. `own`
    is what was set for the session alone, `notes` what a person should know.
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
    since_s: float = 0.0
    last_handoff: str = ""
    own: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def gauges(root: Root) -> list[Gauge]:
    """Those of all sessions that have not ended, by age."""
    found = [one for one in registry.all(root, lambda _: None) if not is_over(one)]
    return [gauge(one) for one in sorted(found, key=lambda session: session.created_at)]


def gauge(session: AnySession) -> Gauge:
    """That of one session; whatever cannot be read is among its notes."""
    directory, now = session.dir, time.time()
    notes: list[str] = []
    reading, flags = _present(directory), readings.flags(directory)
    if flags.context != agentstate.read(directory).context:
        flags = Flags()
    record = _rotation(directory, notes)
    last = handoff.last(directory)
    return Gauge(
        id=session.name,
        name=address(session),
        percent=reading.percent if reading else None,
        tokens=reading.used if reading else None,
        window=reading.window if reading else None,
        age_s=max(0.0, now - reading.at) if reading else None,
        told="critical" if flags.critical else "warning" if flags.warned else "",
        next=tuple(_next(session, flags, notes)),
        rotation=f"{record.cause}: {record.step}" if record else _wish(directory),
        since_s=max(0.0, now - record.began_at) if record else 0.0,
        last_handoff=str(last or ""),
        own=tuple(own(session)),
        notes=(*notes, *_notes(session, reading)),
    )


def _present(directory: SessionDir) -> Reading | None:
    """The last reading, if it is of the present context."""
    reading = readings.read(directory)
    if reading is None or reading.context != agentstate.read(directory).context:
        return None
    return reading


def _rotation(directory: SessionDir, notes: list[str]) -> Rotation | None:
    try:
        return handoff.record(directory)
    except StateError as error:
        notes.append(error.message)
        return None


def _wish(directory: SessionDir) -> str:
    return "handoff: waits for the turn's end" if directory.handoff.exists() else ""


def _next(session: AnySession, flags: Flags, notes: list[str]) -> Iterator[str]:
    """What is still to come in this context, the nearest first."""
    levels = Levels()
    try:
        raised = health.raised_by(session.root, session.name)
        levels = policy.of(session).levels(raised)
        if raised and levels.cycle:
            notes.append(f"its cycle is put off to {levels.cycle:g}%: there were too many")
    except SmError as error:
        notes.append(error.message)
    ahead = (
        (levels.warning, "warning", flags.warned or flags.critical),
        (levels.critical, "critical", flags.critical),
        (levels.cycle, "cycle", flags.cycled),
    )
    for level, what, done in sorted(ahead, key=lambda one: one[0] or 0.0):
        if level is not None and not done:
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
    with contextlib.suppress(SmError):
        profile = host.target_of(session).profile
        try:
            handoff.check(profile)
        except SmError as error:
            yield error.message
        if not tells(profile):
            yield "its agent does not tell how full its context is: see docs/PROFILES.md"
            return
    if readings.is_compacting(session.dir):
        yield "its context is being summed up"
    elif reading is None:
        yield "no reading yet of its present context"
    elif reading.percent is None:
        yield "its agent does not know yet how full its context is"


def tells(profile: Profile) -> bool:
    """Whether there is a way to know how full the context of such an agent is."""
    return profile.hooks == "claude" or bool(profile.context_command or profile.context_pattern)
