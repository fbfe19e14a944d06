"""Watches how full an agent's context is: tells it in time, and tells others where it was too late.

Called at each pass over a session. Whatever is told has an id made of what it is about, and is
noted only afterwards: killed in between, it is found told already. docs/CONTEXT.md has the story.
"""

from __future__ import annotations

import math
import time

from msgspec import structs

from sm.errors import SmError, TemporaryError
from sm.rotation import Cause
from sm.session import agentstate, gauge, handoff, health, lifesigns, queue, readings
from sm.session.lifesigns import Compaction
from sm.session.queue import Message, Mode, Place
from sm.session.registry import Session
from sm.session.targets import address
from sm.store import journal, lock
from sm.store.crash import crash_point
from sm.store.paths import SessionDir
from sm.thresholds import Due, Flags, Levels, Notice, compacted, due, marked, text, upcoming
from sm.workflow import people, rotate
from sm.workflow.messages import notice_id, tell
from sm.workflow.policy import Policy
from sm.workflow.rotator import Rotator

LOCK_S = 30.0
RETRY_S = 1.0
MODES = {Notice.WARNING: Mode.SEQUENTIAL, Notice.CRITICAL: Mode.URGENT}


def tend_context(rotator: Rotator) -> float:
    """Do what is due for the session's context; returns when to look again at the latest.

    Seconds since 1970. The caller holds the session's lock.

    Raises:
        StateError: files of the session are not what they must be.
        TemporaryError: tmux did not answer; it is tried again.

    """
    again_at = math.inf
    try:
        again_at = _watch(rotator)
    finally:  # what is wrong with a file of the monitor holds no rotation up
        again_at = min(again_at, rotate.advance(rotator))
    _point(rotator)
    return again_at


def _watch(rotator: Rotator) -> float:
    """See how full it is, and do what that calls for; returns when to look again."""
    again_at = math.inf
    try:
        _account(rotator)
        again_at = gauge.look(rotator.target)
        for _ in range(2):  # a notice, where no cycle can be begun
            if _found(rotator):
                _act(rotator)
    except lock.HeldError:
        again_at = min(again_at, time.time() + RETRY_S)
    return again_at


def _account(rotator: Rotator) -> None:
    """Note what has begun the context anew: a compaction, a clear, another agent."""
    session = rotator.target.session
    directory = session.dir
    for compaction in lifesigns.compactions(directory):
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            readings.rearm(directory, compaction.seconds)
        crash_point("context:rearmed")
        tell_of_compaction(session, compaction, rotator.policy)
        lifesigns.note_told(directory, compaction.at)
    if (began_at := _began_anew_at(rotator)) is not None:
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            readings.rearm(directory, began_at)
    if not rotator.policy.monitor.enabled:
        _take_back(directory)


def _began_anew_at(rotator: Rotator) -> float | None:
    """When a context began that nothing was done in yet; None where that is known.

    Of an agent without hooks all that is known is when it was launched, to the second.
    """
    directory = rotator.target.session.dir
    context, flags = agentstate.read(directory).context, readings.flags(directory)
    if context and flags.context != context:
        return readings.began_at(directory)
    now, launched_at = time.time(), gauge.launched_at(directory)
    if rotator.target.profile.hooks or not flags.reset_at < launched_at <= now:
        return None
    # What was said in that second, the agent before it may have said, if there was one.
    return min(launched_at + 1, now) if flags.reset_at else launched_at


def _take_back(directory: SessionDir) -> None:
    """What waits to be told, it is not told once that is switched off; it would be due again."""
    known = readings.flags(directory)
    waiting = [one for one in Notice if _waits(directory, known, one)]
    if not waiting:
        return
    with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
        flags = readings.flags(directory)
        for one in waiting:
            if queue.withdraw(directory, readings.ident(directory, flags, one)):
                field = "critical" if one is Notice.CRITICAL else "warned"
                flags = structs.replace(flags, **{field: False})
        readings.save_flags(directory, flags)


def _waits(directory: SessionDir, flags: Flags, notice: Notice) -> bool:
    if not (flags.warned or flags.critical):
        return False
    return queue.place(directory, readings.ident(directory, flags, notice)) is Place.WAITING


def tell_of_compaction(session: Session, compaction: Compaction, policy: Policy) -> None:
    """Tell the parent and a person, as the policy has it, that the context was summed up."""
    name, key = address(session), f"compact:{compaction.at}"
    late = ": handoff was too late" if compaction.trigger == "auto" else ""
    what = f"Compaction triggered ({compaction.trigger}){late}"
    journal.record(session.root.journal, "compaction", session.name, what)
    if "parent" in policy.monitor.tell:
        tell(session.root, session.parent, notice_id(session, key), compacted(name))
    if "person" in policy.monitor.tell:
        lost = f"has lost its context to a compaction ({compaction.trigger})"
        people.note(session, lost, key, policy, parent=False)


def _levels(session: Session, policy: Policy) -> Levels:
    """The thresholds that hold for the session now."""
    return policy.levels(health.raised_by(session.root, session.name))


def _can_rotate(rotator: Rotator) -> bool:
    """Whether there is a way to replace its context; else it is no use to tell it anything."""
    return bool(rotator.target.profile.terminal and rotator.target.profile.clear)


def _found(rotator: Rotator) -> Due:
    session = rotator.target.session
    if handoff.is_wanted(session.dir) or not _can_rotate(rotator):
        return Due()
    flags = readings.flags(session.dir)
    reading = readings.current(session.dir, flags)
    if reading is None or reading.percent is None:
        return Due()
    return due(reading.percent, _levels(session, rotator.policy), flags)


def _act(rotator: Rotator) -> None:
    """Tell the agent, or begin the cycle; under the lock, as a rotation may begin meanwhile."""
    directory = rotator.target.session.dir
    with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
        found = _found(rotator)
        flags = readings.flags(directory)
        reading = readings.current(directory, flags)
        if reading is None or reading.percent is None or not found:
            return
        if found.notice:
            _tell(rotator, found.notice, reading.percent, reading.used)
            crash_point("context:told")
        # A cycle before it begins: whoever is killed behind that, no second one may come.
        readings.save_flags(directory, marked(flags, found))
    if found.cycle:
        crash_point("context:marked")
        _cycle(rotator, reading.percent, flags)


def _cycle(rotator: Rotator, percent: float, flags: Flags) -> None:
    """Begin the cycle that is marked; the mark is taken back where another rotation was quicker."""
    directory, begun = rotator.target.session.dir, False
    try:
        begun = _begins(rotator, percent, flags)
    finally:
        if not begun:
            with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
                now = readings.flags(directory)
                if (now.context, now.reset_at) == (flags.context, flags.reset_at):
                    readings.save_flags(directory, structs.replace(now, cycled=False))


def _begins(rotator: Rotator, percent: float, flags: Flags) -> bool:
    """Begin it; True also where it can never begin, of which a person is told once."""
    try:
        begun = rotate.begin_cycle(rotator, Cause.CYCLE, percent, context=flags.context)
        crash_point("context:cycled")
    except TemporaryError:
        raise
    except SmError as error:
        text = f"cannot be given a new context at {percent:g}%: {error.message}"
        key = f"cycle:{flags.context}:{flags.reset_at:.6f}"
        people.note(rotator.target.session, text, key, rotator.policy)
        return True
    return begun is not None


def _tell(rotator: Rotator, notice: Notice, percent: float, tokens: int | None) -> None:
    session = rotator.target.session
    ident = readings.ident(session.dir, readings.flags(session.dir), notice)
    said = text(notice, percent, tokens)
    if queue.put(session.dir, Message(id=ident, text=said, mode=MODES[notice])):
        journal.record(session.root.journal, "context", session.name, said)


def _point(rotator: Rotator) -> None:
    """Say from which percentage on the status line's hook is to call.

    While the context is replaced, from none on: each of its updates would.
    """
    directory = rotator.target.session.dir
    if handoff.is_wanted(directory) or not _can_rotate(rotator):
        readings.point(directory, None)
        return
    known = _levels(rotator.target.session, rotator.policy)
    readings.point(directory, upcoming(known, readings.flags(directory)))
