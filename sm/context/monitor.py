"""Watches how full an agent's context is: observe, decide, act.

A pass tells the agent in time, begins the automated cycle, and tells others of a compaction. The
facts are gathered once, under the delivery lock; `sm.context.thresholds` decides. Each thing told
has an id made of what it is about, and is noted only afterwards: after a crash in between the next
pass finds it told already. docs/CONTEXT.md has the story.
"""

from __future__ import annotations

import math
import time

from msgspec import structs

from sm.base.errors import SmError, TemporaryError
from sm.context import health_log, progress, rotation_files, run, usage
from sm.context.act import Relaunch
from sm.context.flags import (
    make_notice_id,
    read_flags,
    replace_flags,
    save_flags,
    set_wake_threshold,
)
from sm.context.levels import make_levels
from sm.context.rotation import Cause
from sm.context.thresholds import (
    FillFacts,
    Flags,
    Notice,
    ThresholdDecision,
    decide,
    is_overtaken,
    mark_done,
    mark_untold,
    put_off,
    write_compaction,
    write_notice,
)
from sm.messages import alerts, queue
from sm.messages.notification import make_event_id, tell
from sm.messages.presence import observe_hands
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent_state, hook_events, pause, spending_hold, window
from sm.sessions.hook_events import Compaction
from sm.sessions.presence_rule import Disturbance, find_hindrance, find_next_look
from sm.sessions.session import Session
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import discard
from sm.store.paths import SessionDir

LOCK_S = 30.0
RETRY_S = 1.0
LOOKS = 2
"""Number of looks in a pass: two if a rotation is over, or a cycle failed to begin."""
MODES = {Notice.WARNING: Mode.SEQUENTIAL, Notice.CRITICAL: Mode.URGENT}


def tend_context(session: Session, relaunch: Relaunch | None = None) -> float:
    """Do what is due for the session's context; return when to look again at the latest.

    The time is in seconds since 1970. The caller holds the session's lock.

    Raises:
        StateError: files of the session are not what they must be.
        TemporaryError: tmux did not answer; it is tried again.

    """
    if pause.is_paused(session.dir) or spending_hold.is_set(session.dir):
        return run.advance(session, relaunch)
    again_at = math.inf
    for _ in range(LOOKS):
        rotates = False
        try:
            again_at, rotates = _watch(session)
        finally:  # a damaged file of the monitor must not hold up a rotation
            carry_on_at = run.advance(session, relaunch)
        again_at = min(again_at, carry_on_at)
        if not rotates or rotation_files.is_wanted(session.dir):
            break
    return again_at


def _watch(session: Session) -> tuple[float, bool]:
    """Look once; return when the next look is due, and whether the context is being replaced."""
    directory, looked_at = session.dir, time.time()
    again_at = usage.take(session)
    try:
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            compactions = hook_events.list_compactions(directory)
            seen = _observe(session, compactions, looked_at)
            found = _let_people_go_first(session, decide(seen))
            flags = _note(session, seen, found)
        for compaction in compactions:
            tell_of_compaction(session, compaction)
            hook_events.note_told(directory, compaction.at)
        if found.due.cycle:
            crash_point("context:marked")
            _begin_cycle(session, found.percent, flags)
    except lock.HeldError:
        return min(again_at, time.time() + RETRY_S), False
    return min(again_at, found.again_at), seen.is_rotating or found.due.cycle


def _let_people_go_first(session: Session, found: ThresholdDecision) -> ThresholdDecision:
    """Withhold a reminder from a person at the terminal, and a clear that would lose a draft."""
    if not found.due:
        progress.forget_withheld(session.dir)
        return found
    deed = Disturbance.CLEAR if found.due.cycle else Disturbance.REMIND
    hands, now = observe_hands(session), time.time()
    refusal = find_hindrance(deed, hands, now)
    if refusal is None:
        progress.forget_withheld(session.dir)
        return found
    progress.note_withheld(session, deed, refusal)
    return put_off(found, find_next_look(refusal, hands, now))


def _observe(session: Session, compactions: list[Compaction], looked_at: float) -> FillFacts:
    """Gather the facts; the caller holds the delivery lock."""
    settings, profile, directory = session.settings, session.profile, session.dir
    flags, present = read_flags(directory), _read_context_under_lock(directory)
    raised = health_log.find_raise(session.root, session.name)
    return FillFacts(
        now=time.time(),
        looked_at=looked_at,
        flags=flags,
        levels=make_levels(settings, raised),
        context=present,
        began_at=usage.read_beginning(directory, present, looked_at),
        summed_up_at=usage.read_summary_time(directory, present),
        summed_up=usage.read_summed_up(directory),
        has_hooks=bool(profile.hooks),
        launched_at=0.0 if profile.hooks else usage.read_launch_time(directory),
        reading=None if window.is_compacting(directory) else usage.read(directory),
        compactions=tuple(one.seconds for one in compactions),
        retracts=frozenset() if settings.monitor.enabled else _find_waiting(directory, flags),
        is_replaceable=bool(profile.terminal and profile.clear),
        is_rotating=rotation_files.is_wanted(directory),
    )


def _read_context_under_lock(directory: SessionDir) -> str:
    """Read the agent's context again.

    While a reading was taken and the lock was waited for, a rotation may have replaced it.
    """
    return agent_state.read(directory).context


def _find_waiting(directory: SessionDir, flags: Flags) -> frozenset[Notice]:
    """List the notices that the agent has not got yet."""
    if not (flags.warned or flags.critical):
        return frozenset()
    ids = {notice: make_notice_id(directory, flags, notice) for notice in Notice}
    return frozenset(
        notice
        for notice, ident in ids.items()
        if queue.find_place(directory, ident) is MessageFolder.WAITING
    )


def _note(session: Session, seen: FillFacts, found: ThresholdDecision) -> Flags:
    """Do and note what needs the delivery lock, which the caller holds; return the new flags."""
    directory, flags = session.dir, found.flags
    if seen.summed_up and is_overtaken(seen):
        discard(directory.summed_up)
    if found.is_new:
        replace_flags(directory, seen.flags, flags)
        crash_point("context:rearmed")
    for notice in found.retracts:
        if queue.withdraw(directory, make_notice_id(directory, flags, notice)):
            flags = mark_untold(flags, notice)
    if found.due.notice:
        _tell(session, flags, found.due.notice, found)
        crash_point("context:told")
    # A cycle is marked before it begins: a crash behind that must not lead to a second one.
    after = mark_done(flags, found.due)
    if after != found.flags:
        save_flags(directory, after)
    set_wake_threshold(directory, found.wake_at)
    return after


def _tell(session: Session, flags: Flags, notice: Notice, found: ThresholdDecision) -> None:
    ident = make_notice_id(session.dir, flags, notice)
    said = write_notice(notice, found.percent, found.tokens)
    if queue.put(session.dir, Message(id=ident, text=said, mode=MODES[notice])):
        told = events.ContextNotice(
            session=session.name, notice=str(notice), percent=found.percent, text=said
        )
        journal.record(session.root.journal, told)


def tell_of_compaction(session: Session, compaction: Compaction) -> None:
    """Tell the parent and a person, if its settings say so, that the context was summed up."""
    name, key = session.address, f"compact:{compaction.at}"
    what = events.Compacted(session=session.name, trigger=compaction.trigger)
    journal.record(session.root.journal, what)
    if "parent" in session.settings.monitor.tell:
        tell(
            session.root,
            session.record.parent,
            make_event_id(session, key),
            write_compaction(name),
        )
    if "person" in session.settings.monitor.tell:
        lost = f"has lost its context to a compaction ({compaction.trigger})"
        alerts.note(session, lost, key, parent=False)


def _begin_cycle(session: Session, percent: float, flags: Flags) -> None:
    """Begin the cycle that is marked; the mark goes if another rotation was quicker."""
    directory, begun = session.dir, False
    try:
        begun = _begins(session, percent, flags)
    finally:
        if not begun:
            with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
                now = read_flags(directory)  # they may be of another filling by now
                if (now.context, now.reset_at) == (flags.context, flags.reset_at):
                    save_flags(directory, structs.replace(now, cycled=False))


def _begins(session: Session, percent: float, flags: Flags) -> bool:
    """Begin the cycle; True also if it can never begin, which a person is told once."""
    try:
        begun = run.begin_cycle(session, Cause.CYCLE, percent, context=flags.context)
        crash_point("context:cycled")
    except TemporaryError:
        raise
    except SmError as error:
        text = f"cannot be given a new context at {percent:g}%: {error.message}"
        key = f"cycle:{flags.context}:{flags.reset_at:.6f}"
        alerts.note(session, text, key)
        return True
    return begun is not None
