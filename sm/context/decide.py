"""Decides on the next act of a rotation: a pure function of its record and the facts.

Every act may be repeated: it is asked for until the facts show that it has happened.
docs/CONTEXT.md tells the story; `tests/context/test_rotation.py` walks it in every order.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from sm.base.refusal import tell_refusal
from sm.context.rotation import (
    Cause,
    HandoffDocument,
    MessageKey,
    MessageKind,
    Move,
    RotationAct,
    RotationFacts,
    RotationRecord,
    RotationStage,
    StepTimeouts,
)
from sm.context.rotation_texts import say_times

REQUESTS, CLEARS, RESUMES = 2, 2, 2
"""Number of document requests, clears and prompts that are tried: one, and one more."""
TRIES = 3
"""Number of times that a clear may fail; after each failure the agent has a turn's time."""
SOON_S = 1.0


def decide(record: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Choose the next move."""
    record = _of_now(record, seen)
    if not seen.alive:
        due = (
            record.step is RotationStage.CLEAR
            and record.relaunched
            and not _is_late(record, seen, limits)
        )
        return Move(
            RotationAct.RELAUNCH if due else RotationAct.WAIT, record
        )  # or the session's own recovery
    if record.step in _BEFORE and _is_fresh(record, seen):
        return _begun_anew(record, seen, limits)
    if record.step in _BEFORE and record.context and not seen.context:
        return _parked(record, seen, limits)  # just started anew: it has not told of it yet
    if record.again and record.step in _BEFORE and _goes_on(record, seen):
        return _unproven(record, seen)
    return _STEPS[record.step](record, seen, limits)


_BEFORE = (RotationStage.REQUEST, RotationStage.DOCUMENT, RotationStage.QUIET, RotationStage.CLEAR)


def _of_now(r: RotationRecord, seen: RotationFacts) -> RotationRecord:
    """Return the record without times in the future, as the clock was set back since.

    A context that had no name when it began gets it as soon as it is told.
    """
    times = {name: getattr(r, name) for name in ("began_at", "since", "postponed_at")}
    ahead = {name: seen.now for name, at in times.items() if at > seen.now}
    named = {"context": seen.context} if not r.context and _is_the_nameless(r, seen) else {}
    return structs.replace(r, parked=False, resting=False, **ahead, **named)


def _is_the_nameless(r: RotationRecord, seen: RotationFacts) -> bool:
    """Whether the present context is the one that had no name when the record began.

    Codex names the context of a new start with its first prompt.
    """
    unchanged = seen.launch == r.launch and seen.begun != "clear"
    return unchanged or seen.begun_at <= r.began_at


def _counted_from(at: float, seen: RotationFacts) -> float:
    """Return from when a time counts that began at `at`: again, if the session was paused since."""
    return max(at, seen.resumed_at)


def _is_fresh(record: RotationRecord, seen: RotationFacts) -> bool:
    another = bool(seen.context) and seen.context != record.context
    # A context without a name cannot be resumed by an agent that was started again.
    is_lost = not record.context and seen.launch > record.launch > 0
    return record.cleared or seen.relaunched or another or is_lost


def _begun_anew(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Begin again in another context: after our clear, a person's, or a new start of the agent."""
    if r.cause is Cause.LEAVE and r.document:
        return Move(
            RotationAct.WAIT,
            r if r.step is RotationStage.CLEAR else _to(r, RotationStage.CLEAR, seen),
        )
    if r.step is RotationStage.CLEAR or (r.document and seen.begun != "clear"):
        return _resume(_to(r, RotationStage.RESUME, seen), seen, limits)
    if seen.begun == "clear":
        return Move(RotationAct.GIVE_UP, r, "a person has cleared its context")
    return Move(
        RotationAct.GIVE_UP, r, "its agent was started anew before it had written a document"
    )


def _to(
    r: RotationRecord, step: RotationStage, seen: RotationFacts, **changes: object
) -> RotationRecord:
    """Return the record at the beginning of another step."""
    more = {"since": seen.now, "obstacle": "", "reported": False} | changes
    steps = r.steps if step is r.step else (*r.steps, (step, seen.now))
    return structs.replace(r, step=step, steps=steps, **more)


def _request(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    if r.document:
        return _quiet(_to(r, RotationStage.QUIET, seen), seen, limits)
    if (at := _accepted_at(r, seen)) is not None:
        return _document(_to(r, RotationStage.DOCUMENT, seen, since=at), seen, limits)
    if seen.compacted_at > r.began_at:
        return Move(RotationAct.GIVE_UP, r, COMPACTED)
    if seen.parked:
        return _parked(r, seen, limits)
    if seen.now >= _counted_from(r.since, seen) + limits.request_s or _is_lost(r, seen):
        return Move(RotationAct.GIVE_UP, r, "it could not be asked for a document")
    return Move(RotationAct.TELL, r, until=_counted_from(r.since, seen) + limits.request_s)


def _accepted_at(r: RotationRecord, seen: RotationFacts) -> float | None:
    """Return when the agent got the message of the step; None: not yet."""
    return seen.accepted.get(r.key) if r.key else None


def _is_lost(r: RotationRecord, seen: RotationFacts) -> bool:
    return r.key in seen.lost


COMPACTED = "its context was summed up before it had written a document"


def _parked(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Wait: no time counts while it cannot answer, and what wakes it again may reach it."""
    waiting = structs.replace(r, parked=True, since=seen.now)
    return Move(RotationAct.WAIT, waiting, until=seen.now + limits.look_s)


def _document(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Wait for the document, from the request on, or the request for what it lacks."""
    if r.document:
        return _quiet(_to(r, RotationStage.QUIET, seen), seen, limits)
    found = seen.document
    if found and (r.found != found.stamp or r.found_at > seen.now):
        r = structs.replace(r, found=found.stamp, found_at=seen.now)
    if found and r.sections_asked:
        return _completed(r, found, seen, limits)
    if found:
        return _written(r, found, seen, limits)
    if seen.compacted_at > r.began_at:
        return Move(RotationAct.GIVE_UP, r, COMPACTED)
    if seen.parked:
        return _parked(r, seen, limits)
    late_at = _counted_from(r.since, seen) + limits.document_s
    if not _is_over(r.since, seen) and seen.now < late_at:
        return Move(RotationAct.WAIT, r, until=late_at)
    if seen.now < (due_at := min(late_at, _share_at(r, seen, limits))):
        return Move(RotationAct.WAIT, structs.replace(r, resting=True), until=due_at)
    if r.requests >= REQUESTS:
        return Move(
            RotationAct.GIVE_UP, r, f"it has written no document, asked {say_times(REQUESTS)}"
        )
    return _request(_to(r, RotationStage.REQUEST, seen, requests=r.requests + 1), seen, limits)


def _share_at(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> float:
    """Return when this request has had its share of the time: a turn may end at once, in vain."""
    first_at = min(seen.accepted.get(MessageKey(MessageKind.ASK), r.since), r.since)
    return _counted_from(first_at, seen) + limits.document_s * r.requests / REQUESTS


def _whole_at(r: RotationRecord, found: HandoffDocument, limits: StepTimeouts) -> float:
    """Return when the document counts as whole if unchanged; its clock may be ahead of ours."""
    return min(found.written_at, r.found_at) + limits.settled_s


def _is_over(asked_at: float, seen: RotationFacts) -> bool:
    """Whether the turn with the question is over: then nothing more is to be expected."""
    return seen.idle_since is not None and seen.idle_since > asked_at


def _written(
    r: RotationRecord, found: HandoffDocument, seen: RotationFacts, limits: StepTimeouts
) -> Move:
    whole_at = _whole_at(r, found, limits)
    if not _is_over(r.since, seen) and seen.now < whole_at:
        return Move(RotationAct.WAIT, r, until=whole_at)
    if found.lacks:
        return _completed(
            _to(r, RotationStage.DOCUMENT, seen, sections_asked=True), found, seen, limits
        )
    return _quiet(_to(r, RotationStage.QUIET, seen, document=found.path), seen, limits)


def _completed(
    r: RotationRecord, found: HandoffDocument, seen: RotationFacts, limits: StepTimeouts
) -> Move:
    """Wait for the missing sections, which the agent is asked for once.

    A document that lacks some of them after that has to do.
    """
    asked_at = _accepted_at(r, seen)
    late = seen.now >= _counted_from(r.since, seen) + limits.document_s
    if asked_at is None and not late:
        return Move(RotationAct.TELL, r, until=_counted_from(r.since, seen) + limits.document_s)
    whole_at = _whole_at(r, found, limits)
    settled = not found.lacks and seen.now >= whole_at
    if late or settled or _is_over(asked_at or r.since, seen):
        return _quiet(_to(r, RotationStage.QUIET, seen, document=found.path), seen, limits)
    until = min(_counted_from(r.since, seen) + limits.document_s, whole_at)
    return Move(RotationAct.WAIT, r, until=max(until, seen.now + 1))


def _quiet(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Wait until the turn is over. The agent's own wish ends no turn; a full context has to."""
    since = seen.idle_since
    if since is not None and (not r.postponed_at or since > r.postponed_at):
        return _clear(_to(r, RotationStage.CLEAR, seen, postponed_at=0.0), seen, limits)
    if seen.background_since is not None:
        since = max(seen.background_since, r.since)
        until = _counted_from(since, seen) + limits.background_s
        if seen.now >= until:
            return _clear(_to(r, RotationStage.CLEAR, seen, postponed_at=0.0), seen, limits)
        return Move(RotationAct.WAIT, r, until=until)
    if r.cause is Cause.HANDOFF or r.postponed_at or since is not None:
        return Move(RotationAct.WAIT, r, until=seen.now + limits.look_s)
    if r.interrupted:
        return Move(RotationAct.WAIT, r, until=seen.now + SOON_S)
    return _stopped(r, seen, limits)


def _stopped(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Interrupt the turn that goes on behind the document, as soon as that can be."""
    due_at = _counted_from(r.since, seen) + limits.grace_s
    if seen.now < due_at:
        return Move(RotationAct.WAIT, r, until=due_at)
    if not r.reported and seen.now >= due_at + limits.obstacle_s:
        reported = structs.replace(r, reported=True)
        return Move(RotationAct.REPORT, reported, "its turn goes on, and cannot be interrupted")
    return Move(RotationAct.INTERRUPT, r)


def _clear(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    if not seen.readable and not r.kept:
        if r.cause is Cause.HANDOFF or r.requests >= REQUESTS or r.again:
            reason = f"its document is gone, or empty, or cannot be read: {r.document}"
            return Move(RotationAct.GIVE_UP, r, reason)
        again = _to(r, RotationStage.REQUEST, seen, document="", requests=r.requests + 1)
        return _request(again, seen, limits)
    if r.cause is Cause.LEAVE:
        return Move(RotationAct.WAIT, r)  # whoever ends the session takes the document along
    if r.relaunched:
        late = _is_late(r, seen, limits)
        return (
            _failed(r, seen)
            if late
            else Move(RotationAct.RELAUNCH, r, until=seen.now + limits.look_s)
        )
    if r.obstacle:  # a person perhaps: try again and again, and tell of it once
        if not r.reported and seen.now >= _counted_from(r.since, seen) + limits.obstacle_s:
            return Move(
                RotationAct.REPORT, structs.replace(r, reported=True), tell_refusal(r.obstacle)
            )
        return Move(RotationAct.CLEAR, r)
    if not r.tried:
        return _typed_anew(r, seen, limits)
    if seen.now < _counted_from(r.since, seen) + limits.clear_s:
        return Move(RotationAct.CLEAR, r, until=_counted_from(r.since, seen) + limits.clear_s)
    if r.tried < CLEARS:
        return _typed_anew(r, seen, limits)
    return Move(RotationAct.RELAUNCH, structs.replace(r, relaunched=True, since=seen.now))


def _typed_anew(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    anew = structs.replace(r, tried=r.tried + 1, clears=r.clears + 1, since=seen.now)
    return Move(RotationAct.CLEAR, anew, until=seen.now + limits.clear_s)


def _is_late(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> bool:
    """Whether the new launch of the agent was in vain; no time counts before it."""
    return bool(r.generation) and seen.now >= _counted_from(r.since, seen) + limits.relaunch_s


def _failed(r: RotationRecord, seen: RotationFacts) -> Move:
    if r.failures + 1 >= TRIES:
        return Move(RotationAct.GIVE_UP, r, "its context could not be cleared")
    anew = _to(r, RotationStage.QUIET, seen, tried=0, relaunched=False, generation=0, kept=False)
    later = structs.replace(anew, failures=r.failures + 1, postponed_at=seen.now)
    return Move(RotationAct.WAIT, later, "the clear had no effect", until=seen.now + SOON_S)


def _resume(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Give the new context, as far as it is known to be new, its first prompt, once."""
    if (at := _accepted_at(r, seen)) is not None:
        if seen.context and seen.context == r.context:
            return _not_fresh(r, seen, limits)
        if r.cause is Cause.HANDOFF:
            return Move(RotationAct.FINISH, r)
        changes = {"fresh": seen.context, "launch": seen.launch, "asked": False}
        return _verify(_to(r, RotationStage.VERIFY, seen, since=at, **changes), seen, limits)
    if _is_lost(r, seen):
        if _has_resumed_enough(r):
            return Move(RotationAct.GIVE_UP, r, "its new context has not got its prompt")
        r = _to(r, RotationStage.RESUME, seen, resumes=r.resumes + 1)
    if not r.reported and seen.now >= _counted_from(r.since, seen) + limits.obstacle_s:
        return Move(
            RotationAct.REPORT, structs.replace(r, reported=True), "its prompt cannot be typed"
        )
    until = _counted_from(r.since, seen) + limits.obstacle_s
    return Move(RotationAct.TELL, r, until=until if not r.reported else float("inf"))


def _has_resumed_enough(r: RotationRecord) -> bool:
    return r.resumes >= RESUMES * (r.failures + 1 + r.again)


def _not_fresh(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Clear again, as the prompt shows that the clear had no effect: it is in the old context."""
    again = _to(r, RotationStage.QUIET, seen, cleared=False, resumes=r.resumes + 1)
    if r.relaunched:
        return _failed(again, seen)
    if r.tried >= CLEARS:
        return _quiet(structs.replace(again, relaunched=True), seen, limits)
    return _quiet(structs.replace(again, tried=r.tried + 1, clears=r.clears + 1), seen, limits)


def _verify(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Go on when the agent has named its task. A turn that it has ended proves nothing."""
    if r.fresh and seen.context not in ("", r.fresh):
        return _lost_again(r, seen, limits)
    if r.fresh and not seen.context and seen.launch > r.launch > 0:
        due_at = seen.launched_at + limits.relaunch_s
        if seen.now < due_at:  # it may still tell that it has resumed its new context
            return Move(RotationAct.WAIT, r, until=due_at)
        return _lost_again(r, seen, limits)
    went_on = r.went_on or seen.worked_at > r.since
    r = structs.replace(r, proves=seen.proves, went_on=went_on, task=seen.task)
    if r.task or seen.hands_off:
        return Move(RotationAct.FINISH, r)
    if seen.parked:
        return _parked(r, seen, limits)
    return _asked(r, seen, limits) if r.asked else _unasked(r, seen, limits)


def _unasked(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Ask when the agent's turn is over and has named no task, or goes on for a minute without."""
    due_at = min(_counted_from(r.since, seen) + limits.verify_s, _said_at(r.since, seen, limits))
    if seen.now >= due_at:
        asked = _to(r, RotationStage.VERIFY, seen, asked=True)
        return Move(RotationAct.TELL, asked, until=seen.now + limits.answer_s)
    return Move(RotationAct.WAIT, r, until=min(due_at, seen.now + limits.say_s))


def _said_at(told_at: float, seen: RotationFacts, limits: StepTimeouts) -> float:
    """Return when all that it said in the turn after `told_at` is written down; inf: never."""
    over = seen.idle_since if _is_over(told_at, seen) else None
    return float("inf") if over is None else over + limits.written_s


def _asked(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    asked_at = _accepted_at(r, seen)
    if asked_at is None:
        if _is_lost(r, seen) or seen.now >= _counted_from(r.since, seen) + limits.answer_s:
            return _unproven(r, seen)
        if not r.proves and seen.now >= _counted_from(r.since, seen) + limits.verify_s:
            r = structs.replace(r, released=True)  # its screen may never show what it goes on with
        return Move(RotationAct.TELL, r, until=_counted_from(r.since, seen) + limits.answer_s)
    said_at = _said_at(asked_at, seen, limits)
    if seen.now >= said_at:
        return _once_more(r, seen, limits) if _may_clear(r, seen) else _unproven(r, seen)
    counted_from = _counted_from(asked_at, seen)
    if seen.now >= counted_from + limits.answer_s:
        return _unproven(r, seen)
    released = r.released or seen.now >= counted_from + limits.verify_s
    until = min(said_at, counted_from + limits.answer_s, seen.now + limits.say_s)
    return Move(RotationAct.WAIT, structs.replace(r, released=released), until=until)


def _may_clear(r: RotationRecord, seen: RotationFacts) -> bool:
    """Whether the context holds only what the rotation has told, which can be proven."""
    return r.proves and not (r.again or r.released or seen.others)


def _once_more(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Replace the new context by another, which begins with the same document."""
    begun = {"context": seen.context, "fresh": "", "again": True, "resumes": r.resumes + 1}
    anew = {"cleared": False, "tried": 0, "relaunched": False, "generation": 0}
    return _quiet(_to(r, RotationStage.QUIET, seen, **begun, **anew), seen, limits)


def _goes_on(r: RotationRecord, seen: RotationFacts) -> bool:
    """Whether the context that is to be replaced again has begun to work meanwhile."""
    return seen.others or (r.step is RotationStage.QUIET and seen.idle_since is None)


NO_SIGN = "nothing shows that it goes on"
NO_TASK = "it has not named the task that it goes on with"


def _unproven(r: RotationRecord, seen: RotationFacts) -> Move:
    """Have a person look, unless it works and there is no way to know what it says."""
    if not r.went_on:
        return Move(RotationAct.GIVE_UP, r, NO_SIGN)
    return Move(RotationAct.GIVE_UP, r, NO_TASK) if seen.proves else Move(RotationAct.FINISH, r)


def _lost_again(r: RotationRecord, seen: RotationFacts, limits: StepTimeouts) -> Move:
    """Go on after the loss of the context that got the prompt, before it is known to go on."""
    if seen.begun == "clear":
        return Move(RotationAct.GIVE_UP, r, "a person has cleared its new context")
    if _has_resumed_enough(r):
        return Move(RotationAct.GIVE_UP, r, "its agent was started anew again and again")
    return _resume(_to(r, RotationStage.RESUME, seen, resumes=r.resumes + 1), seen, limits)


_STEPS: dict[RotationStage, Callable[[RotationRecord, RotationFacts, StepTimeouts], Move]] = {
    RotationStage.REQUEST: _request,
    RotationStage.DOCUMENT: _document,
    RotationStage.QUIET: _quiet,
    RotationStage.CLEAR: _clear,
    RotationStage.RESUME: _resume,
    RotationStage.VERIFY: _verify,
}
