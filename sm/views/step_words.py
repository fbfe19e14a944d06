"""Results of a plan's steps in words: a sentence for `sm trace`, few words for a table."""

from __future__ import annotations

from sm.base.text import append_detail
from sm.sessions.history import STOPPED, UNASKED, StepVerb
from sm.sessions.plan import FAILED
from sm.store.events import StepDone
from sm.views.row_words import put_in_words

STEPS: dict[str, str] = {
    StepVerb.INJECT: "told the agent",
    StepVerb.CREATE_PHASE: "made the phase file anew",
    StepVerb.WRITE_CI_RESULT: "noted the result of CI",
    StepVerb.OPEN_PULL: "opened the pull request",
    StepVerb.RERUN_CI: "had CI run again",
    StepVerb.MERGE: "merged it",
    StepVerb.CONSULT: "asked a session before people",
    StepVerb.NOTIFY: "a person is needed",
    StepVerb.REMIND: "reminded the person",
    StepVerb.COMMENT: "commented on the issue",
    StepVerb.TELL: "told people",
    StepVerb.LABEL_BLOCKED: "labelled the issue as blocked",
    StepVerb.RESTORE_BACKLOG: "put the issue back into the backlog",
    StepVerb.CLEAN_LABELS: "took the labels of sm off the issue",
    StepVerb.CLOSE_ISSUE: "closed the issue",
    StepVerb.CLOSE_PULL: "closed the pull request",
    StepVerb.KILL: "ended the agent",
    StepVerb.START: "started the agent",
    StepVerb.RECOVER: "restarted the agent",
    StepVerb.MENTION: "told the agent at work",
    StepVerb.INTERRUPT: "interrupted its turn",
    StepVerb.HAND_OFF: "asked for a handoff document",
    StepVerb.LET_GO_ON: "let it go on",
    StepVerb.ADOPT_TEXT: "took over the edited text",
    StepVerb.ADOPT_REVIEW: "took over the edited review",
    StepVerb.KEEP_WORK: "kept its work in a branch of its own",
    StepVerb.REMOVE_WORKTREE: "removed the worktree",
    StepVerb.DELETE_BRANCH: "deleted the branch",
    StepVerb.DELETE_EMPTY_BRANCH: "deleted the branch, which has no work",
    StepVerb.RELEASE_CLAIM: "gave the claim up",
    StepVerb.FORGET: "ended the session",
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
    if event.verb == StepVerb.PARK:
        return (
            f"held the session: {more}"
            if event.row.startswith("limit")
            else f"parked the session {more}"
        )
    if event.verb == StepVerb.INTERRUPT and event.result != STOPPED:
        return f"did not {event.verb}: {more}"
    if event.result.startswith(NOT_DONE) or (event.trouble and not event.result):
        return f"did not {event.verb}: {more}"
    words = STEPS.get(event.verb, event.verb)
    if event.need:
        return append_detail(words, f"{event.text}. {event.command}")
    # The result of a message is the name of a text, that of other steps is in words.
    return append_detail(words, "" if more in DONE else put_in_words(more))


STEPS_SHORTLY: dict[str, str] = {
    StepVerb.INJECT: "told",
    StepVerb.NOTIFY: "asked",
    StepVerb.REMIND: "reminded",
    StepVerb.COMMENT: "commented",
    StepVerb.TELL: "told people",
}
"""Words for steps in a table; what a step is about is there the name of a text, in words."""


def tell_step_shortly(event: StepDone) -> str:
    """Tell the step for a column of a table."""
    if event.verb == StepVerb.RECOVER:
        return "restarted"
    if event.verb == StepVerb.PARK:
        return f"parked {describe_step(event).partition(' (')[0]}"
    if event.verb in STEPS_SHORTLY:
        return append_detail(STEPS_SHORTLY[event.verb], put_in_words(event.result) or event.trouble)
    return tell_step(event)
