"""What has been done for a session, told by its receipts. Counters and timers are read off it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field, structs


class Verb(StrEnum):
    """What sm can do for a session. The texts are the words of docs/PROTOCOL.md."""

    INJECT = "inject"
    CREATE_PHASE = "create the phase file"
    WRITE_CI_RESULT = "write ci-result"
    OPEN_PULL = "open the pull request"
    MERGE = "merge at the reviewed head"
    NOTIFY = "escalate"
    REMIND = "remind"
    COMMENT = "comment"
    LABEL_BLOCKED = "label blocked"
    RESTORE_BACKLOG = "restore the backlog label"
    CLEAN_LABELS = "clean labels"
    CLOSE_ISSUE = "close issue"
    KILL = "kill session"
    START = "start"
    RECOVER = "recover"
    PARK = "park"
    REMOVE_WORKTREE = "remove worktree"
    DELETE_BRANCH = "delete branch"
    RELEASE_CLAIM = "release the claim"
    FORGET = "remove files"


class Count(StrEnum):
    """What an injection uses up, or begins anew; of a new context the agent is not even told."""

    NONE = ""
    FIX = "fix"
    ROUND = "round"
    RESET_FIXES = "reset-fixes"
    RESET_ALL = "reset-all"
    REMINDER = "reminder"
    RESUME = "resume"
    NEW_CONTEXT = "new-context"


class Receipt(Struct, frozen=True, omit_defaults=True):
    """One step done at `at` for the plan `plan`; `verb` None ends the plan.

    `write` is the phase write that was current, `trouble` an error that no retry will mend,
    `remark` something that a person is to know and need not answer.
    """

    at: float
    plan: str
    row: str
    write: str = ""
    step: int = 0
    verb: Verb | None = None
    counts: Count = Count.NONE
    provisional: bool = False
    detail: str = ""
    trouble: str = ""
    remark: str = ""


NUDGES = frozenset({Count.REMINDER, Count.RESUME})
"""Injections that answer nothing: whoever's turn it was, it still is."""


class Answer(Struct, frozen=True):
    """The last injection. A provisional one ("timeout") leaves the phase open for a late fact."""

    write: str
    row: str
    at: float
    provisional: bool


class Escalation(Struct, frozen=True):
    """A question to a person, asked at `at` and last brought up at `told_at`.

    `write` is the phase write that it is about, or whatever else (see `Facts.matter`). `missed`
    says where it could not be asked.
    """

    write: str
    row: str
    at: float
    told_at: float
    reminders: int = 0
    missed: str = ""


class History(Struct, frozen=True):
    """Everything that `decide` needs to know of the past."""

    done: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    answer: Answer | None = None
    escalations: Mapping[str, Escalation] = field(default_factory=dict)
    """What a person is asked, by what it is about."""
    fixes: int = 0
    rounds: int = 0
    recoveries: int = 0
    recoveries_ever: int = 0
    recovered_write: str = field(default="")
    started_at: float = 0.0
    reminders: int = 0
    """How often the agent was reminded of the protocol since its start, its last answer, or the
    beginning of its context."""
    nudged_at: float = 0.0
    troubles: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def has(self, key: str) -> bool:
        """Whether the reaction `key` is over and done with."""
        return key in self.done


def fold(receipts: Iterable[Receipt]) -> History:
    """The history that the receipts tell, oldest first."""
    history = History()
    for receipt in receipts:
        history = _add(history, receipt)
    return history


def _add(history: History, receipt: Receipt) -> History:
    # What a person could not be told is not told of in turn: a question's own time runs out.
    if receipt.trouble and receipt.verb not in (Verb.NOTIFY, Verb.REMIND, Verb.COMMENT):
        history = structs.replace(history, troubles=(*history.troubles, receipt.plan))
    if receipt.remark:
        history = structs.replace(history, remarks=(*history.remarks, receipt.plan))
    match receipt.verb:
        case None:
            forgotten = receipt.counts is Count.NEW_CONTEXT
            reminders = 0 if forgotten else history.reminders
            return structs.replace(history, done=history.done | {receipt.plan}, reminders=reminders)
        case Verb.INJECT if not receipt.trouble:
            return _injected(history, receipt)
        case Verb.NOTIFY:
            told = Escalation(
                receipt.write, receipt.row, receipt.at, receipt.at, missed=receipt.trouble
            )
            return _asked(history, told)
        case Verb.REMIND if asked := history.escalations.get(receipt.write):
            return _asked(
                history, structs.replace(asked, told_at=receipt.at, reminders=asked.reminders + 1)
            )
        case Verb.START:
            return structs.replace(history, started_at=receipt.at, reminders=0)
        case Verb.RECOVER:
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


def _asked(history: History, asked: Escalation) -> History:
    return structs.replace(history, escalations={**history.escalations, asked.write: asked})


def _injected(history: History, receipt: Receipt) -> History:
    if receipt.counts in NUDGES:
        reminders = history.reminders + (receipt.counts is Count.REMINDER)
        return structs.replace(history, reminders=reminders, nudged_at=receipt.at)
    fixes, rounds = _count(history, receipt.counts)
    progressed = _is_phase(receipt.write) and receipt.write != history.recovered_write
    final = () if receipt.provisional else (receipt.write,)
    # What was asked while there was no phase is over, too, as soon as one has been answered.
    over = final and (*final, "")
    return structs.replace(
        history,
        answered=history.answered.union(final),
        answer=Answer(receipt.write, receipt.row, receipt.at, receipt.provisional),
        escalations={w: e for w, e in history.escalations.items() if w not in over},
        fixes=fixes,
        rounds=rounds,
        reminders=0,
        # An agent that has written a phase since its restart works: its next crash is a new one.
        recoveries=0 if progressed else history.recoveries,
    )


def _is_phase(write: str) -> bool:
    """Whether that is a phase write; the keys of other matters have a colon (`Facts.matter`)."""
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
