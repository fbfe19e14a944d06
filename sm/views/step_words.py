"""Results of a plan's steps in words: a sentence for `sm trace`, few words for a table."""

from __future__ import annotations

from sm.base.text import append_detail
from sm.sessions.history import STOPPED, UNASKED, Verb
from sm.sessions.plan import FAILED
from sm.store.events import StepDone
from sm.views.row_words import put_in_words

STEPS: dict[str, str] = {
    Verb.INJECT: "told the agent",
    Verb.CREATE_PHASE: "made the phase file anew",
    Verb.WRITE_CI_RESULT: "noted the result of CI",
    Verb.OPEN_PULL: "opened the pull request",
    Verb.RERUN_CI: "had CI run again",
    Verb.MERGE: "merged it",
    Verb.CONSULT: "asked a session before people",
    Verb.NOTIFY: "a person is needed",
    Verb.REMIND: "reminded the person",
    Verb.COMMENT: "commented on the issue",
    Verb.TELL: "told people",
    Verb.LABEL_BLOCKED: "labelled the issue as blocked",
    Verb.RESTORE_BACKLOG: "put the issue back into the backlog",
    Verb.CLEAN_LABELS: "took the labels of sm off the issue",
    Verb.CLOSE_ISSUE: "closed the issue",
    Verb.CLOSE_PULL: "closed the pull request",
    Verb.KILL: "ended the agent",
    Verb.START: "started the agent",
    Verb.RECOVER: "restarted the agent",
    Verb.MENTION: "told the agent at work",
    Verb.INTERRUPT: "interrupted its turn",
    Verb.HAND_OFF: "asked for a handoff document",
    Verb.LET_GO_ON: "let it go on",
    Verb.ADOPT_TEXT: "took over the edited text",
    Verb.ADOPT_REVIEW: "took over the edited review",
    Verb.KEEP_WORK: "kept its work in a branch of its own",
    Verb.REMOVE_WORKTREE: "removed the worktree",
    Verb.DELETE_BRANCH: "deleted the branch",
    Verb.DELETE_EMPTY_BRANCH: "deleted the branch, which has no work",
    Verb.RELEASE_CLAIM: "gave the claim up",
    Verb.FORGET: "ended the session",
}
"""Words for steps that were done; the verb of another version is told as it is."""

DONE = ("removed", STOPPED)
"""Results of steps that have done what they were to do: their own words say so."""

NOT_DONE = (UNASKED, "kept", "not set", FAILED)
"""Beginnings of the results of steps that have left things as they were."""


def describe_step(event: StepDone) -> str:
    """Return what came of the step, as the step itself says it."""
    return event.result or event.trouble


def tell_step(event: StepDone) -> str:
    """Tell the step in words; the text has several lines if the step's own words have."""
    more = describe_step(event)
    if event.verb == Verb.PARK:
        return _parked(event, more)
    if event.verb == Verb.INTERRUPT and event.result != STOPPED:
        return f"did not {event.verb}: {more}"
    if event.result.startswith(NOT_DONE) or (event.trouble and not event.result):
        return f"did not {event.verb}: {more}"
    words = STEPS.get(event.verb, event.verb)
    if event.need:
        return append_detail(words, f"{event.text}. {event.command}")
    # The result of a message is the name of a text, that of other steps is in words.
    return append_detail(words, "" if more in DONE else put_in_words(more))


def _parked(event: StepDone, more: str) -> str:
    """Tell why a session is parked: a spending limit, or a failed turn."""
    return (
        f"held the session: {more}"
        if event.row.startswith("limit")
        else f"parked the session {more}"
    )


STEPS_SHORTLY: dict[str, str] = {
    Verb.INJECT: "told",
    Verb.NOTIFY: "asked",
    Verb.REMIND: "reminded",
    Verb.COMMENT: "commented",
    Verb.TELL: "told people",
}
"""Words for steps in a table; what a step is about is there the name of a text, in words."""


def tell_step_shortly(event: StepDone) -> str:
    """Tell the step for a column of a table."""
    if event.verb == Verb.RECOVER:
        return "restarted"
    if event.verb == Verb.PARK:
        return f"parked {describe_step(event).partition(' (')[0]}"
    if event.verb in STEPS_SHORTLY:
        return append_detail(STEPS_SHORTLY[event.verb], put_in_words(event.result) or event.trouble)
    return tell_step(event)
