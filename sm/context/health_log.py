"""Outcomes of the rotations of contexts: a line of `health.jsonl` each, for people and for us.

Each has a code for scripts: words for people may change, codes do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise, takewhile

import msgspec
from msgspec import Struct

from sm.base.decoder import find_decoder
from sm.base.errors import StateError
from sm.context.rotation import Cause, RotationRecord
from sm.store import journal
from sm.store.files import ensure_private_dir
from sm.store.paths import Root

HOUR_S = 3600.0
RAISED = 5.0
"""Percentage points added to the cycle's threshold when it has come too often."""
SLACK_S = 60.0
"""Time by which entries of several sessions may be out of order, in seconds."""
ERROR_LIMIT, STEPS_LIMIT = 400, 40


class RotationResult(StrEnum):
    """Result of a rotation: CONFIRMED if the new context has named its task.

    UNCONFIRMED: it has got its prompt. FAILED: the context was not replaced, or nothing has come
    from the new one.
    """

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"

    @classmethod
    def _missing_(cls, value: object) -> RotationResult | None:
        """Map the words of records from the time when an ended turn was proof enough."""
        return {"ok": cls.UNCONFIRMED, "critical": cls.FAILED}.get(str(value))


SUCCESS = "Automated handoff cycle completed successfully"
INTERVENE = "Manual intervention required"


class StageTiming(Struct, frozen=True):
    """Stage of a rotation: when it began (seconds since 1970), how long it took, its outcome."""

    step: str
    at: float
    duration_ms: int
    outcome: str


class Details(Struct, frozen=True, kw_only=True):
    """Details of the rotation.

    `context_at_trigger` is a percentage, `context_fraction` from 0 to 1.

    Both are None if it was not known. `task` is what the new context has named, '' for nothing. A
    person was told of an `error`.
    """

    cause: Cause
    context_at_trigger: float | None
    handoff_file: str
    cycle_duration_ms: int
    steps: tuple[StageTiming, ...] = ()
    error: str = ""
    task: str = ""
    context_fraction: float | None = None


class RotationOutcome(Struct, frozen=True, kw_only=True):
    """Outcome of one rotation, `at` seconds since 1970. `project` is '' without an issue.

    `result` and `error_code` are for scripts; older records have neither.
    """

    rotation: str
    at: float
    project: str
    session: str
    check_type: str = "handoff"
    status: RotationResult
    details: Details
    action_taken: str
    result: str = ""
    error_code: str = ""


def make_entry(
    record: RotationRecord, now: float, *, project: str, session: str, error: str = ""
) -> RotationOutcome:
    """Make the entry of a rotation that is over; with an `error` it was given up."""
    return RotationOutcome(
        rotation=record.id,
        at=now,
        project=project,
        session=session,
        status=_status(record, error),
        details=Details(
            cause=record.cause,
            context_at_trigger=record.percent,
            handoff_file=record.document,
            cycle_duration_ms=_ms(now - record.began_at),
            steps=tuple(_stages(record, now, "failed" if error else "ok"))[-STEPS_LIMIT:],
            error=error[:ERROR_LIMIT],
            task=record.task,
            context_fraction=find_fraction(record.percent),
        ),
        action_taken=INTERVENE if error else SUCCESS,
        result=judge_error(error),
        error_code=find_code(error),
    )


def find_fraction(percent: float | None) -> float | None:
    """Return a percentage as the document of the automated cycle writes it, such as 0.87."""
    return None if percent is None else round(percent / 100, 4)


def _status(record: RotationRecord, error: str) -> RotationResult:
    if record.task:
        return RotationResult.CONFIRMED
    return RotationResult.FAILED if error and not record.went_on else RotationResult.UNCONFIRMED


def _stages(record: RotationRecord, now: float, last: str) -> Iterator[StageTiming]:
    ends = [at for _, at in record.steps[1:]] + [now]
    outcomes = ["ok"] * (len(record.steps) - 1) + [last]
    for (step, at), end, outcome in zip(record.steps, ends, outcomes, strict=False):
        yield StageTiming(step, at, _ms(end - at), outcome)


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def append(root: Root, record: RotationOutcome) -> bool:
    """Write an entry; False if its rotation has one already.

    Raises:
        StateError: it cannot be written.

    """
    began_at = record.at - record.details.cycle_duration_ms / 1000
    # All sessions: a search for one alone would go on to its last entry.
    since = takewhile(lambda known: known.at >= began_at - SLACK_S, read_recent(root))
    ours = (record.session, record.rotation)
    if any((known.session, known.rotation) == ours for known in since):
        return False
    ensure_private_dir(root.private)
    journal.append(root.health, msgspec.json.encode(record))
    return True


def read_recent(root: Root, session: str = "") -> Iterator[RotationOutcome]:
    """Yield every entry (of one session), newest first; damaged lines are passed over.

    Raises:
        StateError: what is there is not our plain file.

    """
    decoder = find_decoder(RotationOutcome)
    for line in journal.read_backwards(root.health):
        try:
            entry = decoder.decode(line)
        except journal.UNREADABLE:
            continue
        if session in ("", entry.session):
            yield entry


def find_cycles(root: Root, session: str, until: float, within_s: float) -> list[float]:
    """Find when the session's automated cycles succeeded in that time, newest first.

    A record that cannot be read has none: nothing may be held up by that.
    """
    # All sessions: a search for one alone would go on to its last entry.
    entries = takewhile(lambda entry: entry.at >= until - within_s, read_recent(root))
    try:
        return [
            e.at
            for e in entries
            if e.session == session
            and e.at <= until
            and e.details.cause is Cause.CYCLE
            and e.status is not RotationResult.FAILED  # the context stayed as it was
        ]
    except StateError:
        return []


def find_raise(root: Root, session: str, now: float | None = None) -> float:
    """Return by how many percentage points the session's cycle begins later at the moment.

    It begins later for an hour after a cycle that came within an hour of another: then its context
    fills up faster than a new one helps.
    """
    now = time.time() if now is None else now
    times = find_cycles(root, session, now, 2 * HOUR_S)
    frequent = any(
        newer - older <= HOUR_S and now - newer < HOUR_S for newer, older in pairwise(times)
    )
    return RAISED if frequent else 0.0


class CheckResult(StrEnum):
    """Result of a health check, as the document of the automated cycle calls it."""

    OK = "ok"
    CRITICAL = "critical"


OTHER_ERROR = "handoff_failed"

CODES = {
    "it has written no document": "handoff_timeout",
    "it could not be asked for a document": "request_failed",
    "its document is gone": "document_unreadable",
    "its context was summed up": "compacted",
    "its context could not be cleared": "clear_failed",
    "a person has cleared": "cleared_by_person",
    "its agent was started anew": "agent_restarted",
    "its new context has not got its prompt": "resume_failed",
    "nothing shows that it goes on": "no_sign_of_life",
    "it has not named": "task_not_named",
}
"""Codes by the beginnings of the words."""


def find_code(error: str) -> str:
    """Return the code of an error, '' for none."""
    if not error:
        return ""
    return next((code for words, code in CODES.items() if error.startswith(words)), OTHER_ERROR)


def judge_error(error: str) -> CheckResult:
    """Return CRITICAL if a person has to see to the error."""
    return CheckResult.CRITICAL if error else CheckResult.OK
