"""Carries out `sm cycle`, a handoff cycle that a person asks for: preview, start and progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.tmux import TmuxError
from sm.base.errors import SmError, TemporaryError
from sm.context import documents, health_log, progress, rotation_files, usage
from sm.context.decide import REQUESTS
from sm.context.flags import read_flags
from sm.context.health_log import RotationOutcome
from sm.context.levels import make_levels
from sm.context.rotation import Cause, RotationRecord, StepTimeouts, begin
from sm.context.rotation_texts import (
    Form,
    ask_again_for_task,
    ask_for_document,
    ask_for_task,
    name_requested,
    say_times,
    write_prompt,
)
from sm.context.run import begin_cycle
from sm.messages.observe import find_terminal_obstacle, look
from sm.sessions import agent, monitors, registry
from sm.sessions.activity import describe_activity
from sm.sessions.address import check_living
from sm.sessions.session import AnySession, Session
from sm.sessions.settings import Settings
from sm.store import journal
from sm.store.events import Rotation as RotationEvent

LOOK_S = 0.1


class Preview(Struct, frozen=True, kw_only=True):
    """Preview of a cycle. `percent` of its context and `read_age_s` are None if not known.

    `state` is the agent's state in a word, `steps` what would be done, in order, `obstacles` what
    would be in the way now; with a `refusal` it would not begin at all.
    """

    session: str
    name: str
    percent: float | None
    read_age_s: float | None
    threshold: float
    automatic: bool
    state: str
    folder: str
    steps: tuple[str, ...]
    obstacles: tuple[str, ...]
    refusal: str


def start(session: AnySession) -> RotationRecord:
    """Begin a cycle; the session's monitor carries it on.

    Raises:
        SmError: its context cannot be replaced, it has no agent, or that is under way already.

    """
    session.configure()
    check(session)
    reading = usage.read_current(session.dir, read_flags(session.dir))
    record = begin_cycle(session, Cause.COMMAND, reading.percent if reading else None)
    if record is None:
        raise SmError(
            _explain_under_way(session) or f"'{session.address}' has just begun a rotation"
        )
    monitors.ensure(session)  # whether or not dev-poll runs
    registry.poke(session.dir)
    return record


def check(session: Session) -> None:
    """Refuse a session that has no agent, or one whose context cannot be replaced.

    Raises:
        SmError: why not.

    """
    check_living(session)
    rotation_files.check(session.profile)
    name = session.address
    if not agent.is_alive(session.dir):
        raise SmError(f"the agent of '{name}' does not run at the moment: see 'sm trace'")
    if problem := _explain_under_way(session):
        raise SmError(problem)


def _explain_under_way(session: Session) -> str:
    name = session.address
    found = progress.find_replacement(session.dir)
    if found is None:
        return ""
    return (
        f"the context of '{name}' is being replaced already, since {found.age_s:.0f} s "
        f"({found.told}): see 'sm trace {name}'"
    )


def preview(session: AnySession) -> Preview:
    """Return what a cycle would do now, with its real values; nothing is changed.

    Raises:
        SmError: its folder cannot be, or its configuration cannot be used.

    """
    session.configure()
    holds = session.settings
    reading = usage.read_current(session.dir, read_flags(session.dir))
    folder = documents.find_folder(session, holds.cycle)
    percent = reading.percent if reading else None
    raised = health_log.find_raise(session.root, session.name)
    return Preview(
        session=session.name,
        name=session.address,
        percent=percent,
        read_age_s=time.time() - reading.at if reading else None,
        threshold=make_levels(holds, raised).cycle or holds.cycle.percentage,
        automatic=holds.cycle.enabled,
        state=describe_activity(session),
        folder=str(folder),
        steps=tuple(_steps(session, holds, percent, folder)),
        obstacles=tuple(_obstacles(session, folder)),
        refusal=_refusal(session),
    )


def _steps(session: Session, holds: Settings, percent: float | None, folder: Path) -> Iterator[str]:
    cycle, profile, limits = holds.cycle, session.profile, StepTimeouts()
    record = structs.replace(begin("", Cause.COMMAND, time.time(), ""), percent=percent)
    text = ask_for_document(record, 1, str(folder), Form(cycle.sections, cycle.header))
    yield f"tell it, within its turn if it is at work:\n{text}"
    yield (
        f"wait for the document, {cycle.timeout_s:g} s; without one ask again, "
        f"{say_times(REQUESTS - 1)}, in that time; "
        "ask for what it lacks, once"
    )
    until = f" {limits.grace_s:g} s, then interrupt it by {profile.interrupt_key}"
    yield f"wait for the end of the turn{',' + until if profile.interrupt_key else ''}"
    yield f"clear its context by {profile.clear or '(the profile has no command)'}"
    document = folder / name_requested(record, 1)
    prompt = write_prompt(Cause.COMMAND, str(document))
    yield f"tell the new one:\n{prompt}\n{ask_for_task(cycle.resumed)}"
    yield (
        f"unless it names its task in its first turn, or within {limits.verify_s:g} s, ask:\n"
        f"{ask_again_for_task(cycle.resumed)}"
    )
    yield "if it names none then either, clear and resume once more, and then tell a person"
    yield f"note what came of it, and keep the newest {cycle.keep} documents"


def _refusal(session: Session) -> str:
    try:
        check(session)
    except SmError as error:
        return error.message
    return ""


def _obstacles(session: Session, folder: Path) -> Iterator[str]:
    try:
        documents.check(folder)
    except SmError as error:
        yield error.message
    known = agent.load(session.dir)
    if known is None:
        return
    try:
        sight = look(session, known.pane_id)
    except (TmuxError, TemporaryError) as error:
        yield str(error)
        return
    if refusal := find_terminal_obstacle(session, sight):
        yield refusal.sentence


def follow(session: AnySession, record: RotationRecord) -> Iterator[RotationEvent]:
    """Yield the events of the rotation, as they happen, until it is over."""
    seen, over = 0, False
    while not over:
        over = not _goes_on(session, record)
        recent = takewhile(
            lambda event: event.at >= record.began_at,
            journal.read_newest_first(session.root.journal),
        )
        mine = [e for e in recent if isinstance(e, RotationEvent) and e.session == session.name]
        events = mine[::-1]
        yield from events[seen:]
        seen = max(seen, len(events))
        if not over:
            time.sleep(LOOK_S)


def _goes_on(session: AnySession, record: RotationRecord) -> bool:
    try:
        known = rotation_files.read_record(session.dir)
    except SmError:
        return False
    return known is not None and known.id == record.id


def find_outcome(session: AnySession, record: RotationRecord) -> RotationOutcome | None:
    """Return how the rotation has ended; None if the session has ended before it."""
    found = takewhile(
        lambda e: e.at >= record.began_at, health_log.read_recent(session.root, session.name)
    )
    return next((entry for entry in found if entry.rotation == record.id), None)
