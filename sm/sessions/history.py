"""Tells from the receipts what sm has done for a session: counters and timers come from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field, structs


class StepVerb(StrEnum):
    """Action of sm for a session. The texts are the words of docs/PROTOCOL.md."""

    INJECT = "inject"
    CREATE_PHASE = "create the phase file"
    WRITE_CI_RESULT = "write ci-result"
    OPEN_PULL = "open the pull request"
    RERUN_CI = "run CI again"
    MERGE = "merge at the reviewed head"
    CONSULT = "ask a session first"
    NOTIFY = "escalate"
    REMIND = "remind"
    COMMENT = "comment"
    TELL = "tell people"
    LABEL_BLOCKED = "label blocked"
    RESTORE_BACKLOG = "restore the backlog label"
    CLEAN_LABELS = "clean labels"
    CLOSE_ISSUE = "close issue"
    CLOSE_PULL = "close the pull request"
    KILL = "kill session"
    START = "start"
    RECOVER = "recover"
    PARK = "park"
    MENTION = "tell the agent at work"
    INTERRUPT = "interrupt its turn"
    HAND_OFF = "ask for a handoff document"
    LET_GO_ON = "let it go on"
    ADOPT_TEXT = "keep the edited text"
    ADOPT_REVIEW = "keep the edited review"
    KEEP_WORK = "keep its work in a branch of its own"
    REMOVE_WORKTREE = "remove worktree"
    DELETE_BRANCH = "delete branch"
    DELETE_EMPTY_BRANCH = "delete branch without work"
    RELEASE_CLAIM = "release the claim"
    FORGET = "remove files"


class Count(StrEnum):
    """Counter that a message to the agent changes. Of a new context sm does not even tell it."""

    NONE = ""
    FIX = "fix"
    ROUND = "round"
    RESET_FIXES = "reset-fixes"
    RESET_ALL = "reset-all"
    REMINDER = "reminder"
    RESUME = "resume"
    NEWS = "news"
    GO_ON = "go-on"
    NEW_CONTEXT = "new-context"
    FALSE_START = "false-start"
    NO_ATTEMPT = "no-attempt"


class Receipt(Struct, frozen=True, omit_defaults=True):
    """One step done at `at` for the plan `plan`; `verb` None ends the plan.

    `write` is the phase write at that time, `trouble` an error that no retry will mend, `remark`
    something that a person should know and need not answer, `run` the failed run of CI that the
    agent got: `Facts.run`. With `outage` that run is one in which CI itself has failed, and why.
    `marker` is the hidden mark of a question on the forge, `resumed` the agent's own session that a
    restart was to resume.
    """

    at: float
    plan: str
    row: str
    write: str = ""
    step: int = 0
    verb: StepVerb | None = None
    counts: Count = Count.NONE
    provisional: bool = False
    detail: str = ""
    trouble: str = ""
    remark: str = ""
    run: str = ""
    outage: str = ""
    marker: str = ""
    resumed: str = ""


KILLED = "killed"
"""The key of a receipt that says that a person has ended the session by a command."""

GIVEN_BACK = "given-back"
"""Key of a receipt that says that the issue goes back to where it was taken from."""

OVERTAKEN = "overtaken"
"""Key of a receipt that says that another attempt has the issue."""

STOPPED, DEFIED = "stopped", "defied"
"""The details of an interruption: a turn has ended by it; one goes on, although it was tried."""

LIMIT = "limit:"
"""Beginning of the matter of a limit that keeps a session from spending."""

BEGUN, QUEUED = "begun", "queued"
"""The details of steps: CI runs again; the pull request is in the merge queue of the forge."""

FIRST = "first-"
"""Beginning of the name of a row that asks a session before people; the rest is the row that asks
people."""

UNASKED = "not asked"
"""Beginning of the detail of a step that could not ask that session."""

TELLING = frozenset({StepVerb.NOTIFY, StepVerb.REMIND, StepVerb.COMMENT, StepVerb.TELL})
"""Actions that say something to people."""

NUDGES = frozenset({Count.REMINDER, Count.RESUME, Count.NEWS, Count.GO_ON})
"""Messages to the agent that answer nothing: the turn stays with the same side."""


class LastAnswer(Struct, frozen=True):
    """The last message to the agent. A provisional one ("timeout") leaves the phase open."""

    write: str
    row: str
    at: float
    provisional: bool


class Escalation(Struct, frozen=True):
    """A question to a person, asked at `at` and last repeated at `told_at`.

    `write` is the phase write or the other matter that it is about (see `Facts.matter`). `missed`
    says where sm could not ask. `marker` is in its comment. `first` is the session that alone was
    asked so far, '' once people are, and `since` when the first of both was.
    """

    write: str
    row: str
    at: float
    told_at: float
    reminders: int = 0
    missed: str = ""
    marker: str = ""
    first: str = ""
    since: float = 0.0


class Halt(Struct, frozen=True):
    """A limit has kept the session from spending since `at`, and it has not gone on yet.

    `matter` is the limit's, with `LIMIT` before it. `stops` turns were interrupted for it;
    `defied`: one goes on, as it cannot be interrupted. `asked_at` is when the agent was asked for
    the handoff document `document`, 0 for never.
    """

    matter: str
    at: float
    stops: int = 0
    defied: bool = False
    asked_at: float = 0.0
    document: str = ""

    @property
    def stopped(self) -> bool:
        """Whether a turn was interrupted for it."""
        return self.stops > 0


class History(Struct, frozen=True):
    """Everything that `decide` needs to know of the past."""

    done: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    answer: LastAnswer | None = None
    escalations: Mapping[str, Escalation] = field(default_factory=dict)
    """The open questions to a person, by their matter."""
    fixes: int = 0
    rounds: int = 0
    recoveries: int = 0
    recoveries_ever: int = 0
    recovered_write: str = field(default="")
    started_at: float = 0.0
    reminders: int = 0
    """Reminders of the protocol to the agent since its start or last answer."""
    nudged_at: float = 0.0
    troubles: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    runs: frozenset[str] = frozenset()
    """The failed runs of CI that the agent got."""
    outages: Mapping[str, str] = field(default_factory=dict)
    """The runs that have failed without testing anything, and why."""
    reruns: Mapping[str, float] = field(default_factory=dict)
    """The runs after which sm had CI run again, and when."""
    queued: Mapping[str, float] = field(default_factory=dict)
    """The reactions that brought a pull request into a merge queue, and when."""
    halt: Halt | None = None
    offered: frozenset[str] = frozenset()
    """The pull requests that sm has opened for the session, or found open, by name."""

    def has(self, key: str) -> bool:
        """Say whether the reaction `key` is complete."""
        return key in self.done


def fold(receipts: Iterable[Receipt]) -> History:
    """Return the history of the receipts, which are given oldest first."""
    history = History()
    for receipt in receipts:
        history = _note_limit(_add(history, receipt), receipt)
    return history


def _add(history: History, receipt: Receipt) -> History:
    # A failed message to a person leads to no further message: the question has its own timeout.
    if receipt.trouble and receipt.verb not in (*TELLING, StepVerb.CONSULT):
        history = structs.replace(history, troubles=(*history.troubles, receipt.plan))
    if receipt.remark:
        history = structs.replace(history, remarks=(*history.remarks, receipt.plan))
    if receipt.detail in (BEGUN, QUEUED) or receipt.outage or receipt.verb is StepVerb.OPEN_PULL:
        history = _known_elsewhere(history, receipt)
    match receipt.verb:
        case None:
            return _end_plan(history, receipt)
        case StepVerb.INJECT if not receipt.trouble:
            return _injected(history, receipt)
        case StepVerb.CONSULT | StepVerb.NOTIFY:
            return _put_question(history, receipt)
        case StepVerb.REMIND if asked := history.escalations.get(receipt.write):
            return _asked(
                history, structs.replace(asked, told_at=receipt.at, reminders=asked.reminders + 1)
            )
        case StepVerb.START:
            return structs.replace(history, started_at=receipt.at, reminders=0)
        case StepVerb.RECOVER:
            return structs.replace(
                history,
                started_at=receipt.at,
                recoveries=history.recoveries + 1,
                recoveries_ever=history.recoveries_ever + 1,
                recovered_write=receipt.write,
                reminders=0,
            )
        case _:
            return history


def _end_plan(history: History, receipt: Receipt) -> History:
    return structs.replace(
        history,
        done=history.done | {receipt.plan},
        reminders=0 if receipt.counts is Count.NEW_CONTEXT else history.reminders,
        recoveries=_count_recoveries(history.recoveries, receipt.counts),
    )


def _count_recoveries(known: int, counts: Count) -> int:
    if counts is Count.FALSE_START:
        return 0
    return max(0, known - 1) if counts is Count.NO_ATTEMPT else known


def _note_limit(history: History, receipt: Receipt) -> History:
    """Note an action because of a limit; another limit that comes meanwhile goes on from there."""
    if not receipt.write.startswith(LIMIT):
        return history
    if receipt.verb is None and receipt.counts is Count.GO_ON:
        # The limit is forgotten: should it hold the session again, all is done again.
        asked = {key: one for key, one in history.escalations.items() if not key.startswith(LIMIT)}
        done = frozenset(key for key in history.done if f":{LIMIT}" not in key)
        return structs.replace(history, halt=None, escalations=asked, done=done)
    known = history.halt or Halt(receipt.write, receipt.at)
    halt = structs.replace(known, matter=receipt.write)
    if receipt.verb is StepVerb.INTERRUPT and receipt.detail == STOPPED:
        halt = structs.replace(halt, stops=halt.stops + 1, defied=False)
    if receipt.verb is StepVerb.INTERRUPT and receipt.detail == DEFIED:
        halt = structs.replace(halt, defied=True)
    if receipt.verb is StepVerb.HAND_OFF:
        halt = structs.replace(halt, asked_at=receipt.at, document=receipt.detail)
    return structs.replace(history, halt=halt)


def _known_elsewhere(history: History, receipt: Receipt) -> History:
    """Note what CI and the forge do, if only these receipts tell that we have begun it."""
    if receipt.verb is StepVerb.OPEN_PULL and not receipt.trouble:
        return structs.replace(history, offered=history.offered | {receipt.detail})
    if receipt.outage:
        outages = {**history.outages, receipt.run: receipt.outage}
        return structs.replace(history, outages=outages)
    if receipt.verb is StepVerb.RERUN_CI:
        return structs.replace(history, reruns={**history.reruns, receipt.run: receipt.at})
    if receipt.verb is StepVerb.MERGE:
        return structs.replace(history, queued={**history.queued, receipt.plan: receipt.at})
    return history


def _put_question(history: History, receipt: Receipt) -> History:
    told = Escalation(
        receipt.write,
        receipt.row,
        receipt.at,
        receipt.at,
        missed=receipt.trouble,
        marker=receipt.marker,
        since=receipt.at,
    )
    if receipt.verb is StepVerb.CONSULT:
        if receipt.trouble or receipt.detail.startswith(UNASKED):
            return history
        row = receipt.row.removeprefix(FIRST)
        return _asked(history, structs.replace(told, row=row, first=receipt.detail))
    before = history.escalations.get(receipt.write)
    if before and (before.first or before.since < before.at):
        # A word for the session may come just as people are asked: it still counts.
        told = structs.replace(told, since=before.since)
    return _asked(history, told)


def _asked(history: History, asked: Escalation) -> History:
    return structs.replace(history, escalations={**history.escalations, asked.write: asked})


def _injected(history: History, receipt: Receipt) -> History:
    if receipt.counts in NUDGES:
        reminders = history.reminders + (receipt.counts is Count.REMINDER)
        return structs.replace(history, reminders=reminders, nudged_at=receipt.at)
    fixes, rounds = _count(history, receipt.counts)
    progressed = _is_phase(receipt.write) and receipt.write != history.recovered_write
    final = () if receipt.provisional else (receipt.write,)
    # An answered phase also ends what was asked while there was no phase.
    over = final and (*final, "")
    return structs.replace(
        history,
        answered=history.answered.union(final),
        answer=LastAnswer(receipt.write, receipt.row, receipt.at, receipt.provisional),
        escalations={w: e for w, e in history.escalations.items() if w not in over},
        fixes=fixes,
        rounds=rounds,
        runs=history.runs | {receipt.run} if receipt.run else history.runs,
        reminders=0,
        # An agent that has written a phase since its restart works. Its next crash is a first one.
        recoveries=0 if progressed else history.recoveries,
    )


def _is_phase(write: str) -> bool:
    """Say whether this is a phase write; keys of other matters have a colon (`Facts.matter`)."""
    return ":" not in write


def _count(history: History, counts: Count) -> tuple[int, int]:
    match counts:
        case Count.FIX:
            return history.fixes + 1, history.rounds
        case Count.ROUND:
            return history.fixes, history.rounds + 1
        case Count.RESET_FIXES:
            return 0, history.rounds
        case Count.RESET_ALL:
            return 0, 0
        case _:
            return history.fixes, history.rounds
