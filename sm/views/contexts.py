"""Gauges: how full the contexts of sessions are, and what was done about it. Changes nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from msgspec import Struct

from sm.base.errors import SmError, StateError
from sm.context import health_log, progress, rotation_files, usage
from sm.context.flags import read_flags
from sm.context.levels import make_levels
from sm.context.progress import Replacement
from sm.context.thresholds import FULL, FillReading, Flags, Levels, list_ahead
from sm.sessions import activity, agent_state, window
from sm.sessions.activity import Proof
from sm.sessions.session import AnySession
from sm.sessions.settings import read_own
from sm.store.paths import Root, SessionDir
from sm.views.records import Damaged, read_or, read_records, show
from sm.views.states import ShownState


class Gauge(Struct, frozen=True, kw_only=True):
    """Context of one session. `percent`, `tokens` and `window` are None where they are not known.

    `told` is `warning` or `critical`, `next` what comes at which percentage, `rotation` its cause
    and step, `doing` the same in words, `since_s` the age of that in seconds, `last_handoff` a
    path; each '' for none. `own` is what was set for the session alone, `notes` what a person
    should know. `state` is what its agent is doing, `state_since` in seconds since 1970.
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
    state: ShownState
    state_since: float = 0.0
    proof: Proof


def list_gauges(root: Root) -> list[Gauge]:
    """List the contexts of all sessions that have not ended; of a damaged one what is wrong."""
    found, damaged = read_records(root)
    rows = [show(one, read_gauge, _damaged) for one in found if not one.is_over]
    return [*rows, *map(_damaged, damaged)]


def _damaged(one: Damaged) -> Gauge:
    return Gauge(
        id=one.id,
        name=one.name or one.id,
        notes=(one.why,),
        state=ShownState.DAMAGED,
        proof=one.proof,
    )


def read_gauge(session: AnySession) -> Gauge:
    """Read the gauge of one session; most of what cannot be read is among its notes.

    Raises:
        StateError: a file that everything else depends on is damaged.

    """
    directory, standing, notes = session.dir, activity.look(session), list[str]()
    flags, state = read_flags(directory), ShownState(standing.state)
    reading = usage.read_current(directory, flags)
    if flags.context != agent_state.read(directory).context:
        flags = Flags()

    def report(error: SmError) -> None:
        notes.append(error.message)

    going_on = read_or(report, lambda: progress.find_replacement(directory), None)
    last = read_or(report, lambda: rotation_files.load_last_document(directory), None)
    return Gauge(
        id=session.name,
        name=session.address,
        percent=reading.shown_percent if reading else None,
        tokens=reading.used if reading else None,
        window=reading.window if reading else None,
        age_s=max(0.0, time.time() - reading.at) if reading else None,
        told="critical" if flags.critical else "warning" if flags.warned else "",
        next=tuple(_next(session, flags, notes)),
        rotation=_rotation(directory),
        doing=going_on.told if going_on else "",
        since_s=going_on.age_s if going_on else 0.0,
        last_handoff=str(last or ""),
        own=tuple(describe_own_settings(session)),
        notes=(
            *notes,
            *_of_replacement(session, flags, going_on),
            *filter(None, [usage.compare_with_transcript(directory, reading)]),
            *_notes(session, state, reading),
        ),
        state=state,
        state_since=standing.since,
        proof=standing.proof,
    )


def _of_replacement(session: AnySession, flags: Flags, found: Replacement | None) -> Iterator[str]:
    if found and found.obstacle:
        yield f"its context cannot be cleared yet: {found.obstacle}"
    if flags.cycled and found is None:
        known = session.address
        yield f"its cycle came to nothing, {_again(flags)}: see 'sm trace {known}'"


def _again(flags: Flags) -> str:
    if not flags.again_at:
        return "and no other begins by itself in this context"
    at = time.strftime("%H:%M", time.localtime(flags.again_at))
    more = f"{flags.again_percent:g}%, or at " if flags.again_percent <= FULL else ""
    return f"and is tried again at {more}{at}"


def _rotation(directory: SessionDir) -> str:
    """Return cause and step of the rotation, '' for none; damaged files are noted elsewhere."""
    with contextlib.suppress(StateError):
        if record := rotation_files.read_record(directory):
            return f"{record.cause}: {record.step}"
    return "handoff: waits for the turn's end" if directory.handoff.exists() else ""


def _next(session: AnySession, flags: Flags, notes: list[str]) -> Iterator[str]:
    """Yield what is still to come in this context, the nearest first."""
    levels = Levels()
    try:
        raised = health_log.find_raise(session.root, session.name)
        levels = make_levels(session.read_settings(), raised)
        if raised and levels.cycle:
            notes.append(
                f"its cycle is put off to {levels.cycle:g}%: too many cycles within an hour"
            )
    except SmError as error:
        notes.append(error.message)
    for what, level in list_ahead(levels, flags):
        yield f"{what} at {level:g}%"


def describe_own_settings(session: AnySession) -> Iterator[str]:
    """Yield what was set for the session alone, in words."""
    try:
        found = read_own(session.dir)
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


def _notes(session: AnySession, state: ShownState, reading: FillReading | None) -> Iterator[str]:
    if state is ShownState.DEAD:
        yield "its agent has died"
        return
    with contextlib.suppress(SmError):
        profile = session.profile
        try:
            rotation_files.check(profile)
        except SmError as error:
            yield error.message
        if reading is None and not profile.tells_usage:
            yield "its agent does not tell how full its context is: see docs/PROFILES.md"
            return
    if window.is_compacting(session.dir):
        yield "its context is being summed up"
    elif reading is None and _is_unknown(session.dir):
        yield "its agent does not know yet how full its context is"
    elif reading is None:
        yield "no reading yet of its present context"


def _is_unknown(directory: SessionDir) -> bool:
    """Whether the agent has said that it does not know how full its present context is."""
    last, present = usage.read(directory), agent_state.read(directory).context
    return last is not None and last.percent is None and last.context == present
