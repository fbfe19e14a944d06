"""Story so far of a session that is not over: how it stands now, and how long it took."""

from __future__ import annotations

from msgspec import structs

from sm.base.errors import SmError
from sm.sessions import activity, registry
from sm.sessions.session import AnySession, IssueSession
from sm.store.paths import Root
from sm.views.session import StatusRow, make_rows, read_last_look
from sm.views.states import ShownState
from sm.views.trace import AT_WORK, Story

FORGOTTEN = "not on record any more"
AD_HOC = {
    "ended": "ended",
    "busy": AT_WORK,
    "running": AT_WORK,
    "dead": "its agent has died",
    "dialog": "asks something in its terminal",
    "cut short": "its start was cut short",
}
"""Words for states of a session that works on no issue; the others speak for themselves."""


def bring_up_to_now(told: Story, session: AnySession | None, now: float) -> Story:
    """Return the story with how it stands `now` instead of how its last event left it.

    A story that has an end stays as it is. `session` is None for one that is not on record.
    """
    summary = told.summary
    if summary.outcome != AT_WORK:
        return told
    if session is None:
        return structs.replace(told, summary=structs.replace(summary, outcome=FORGOTTEN))
    summary = structs.replace(
        summary, outcome=_standing(session, now), took_s=max(0.0, now - told.entries[0].at)
    )
    return structs.replace(told, summary=summary)


def _standing(session: AnySession, now: float) -> str:
    """Say how a session stands, for the last line of its story."""
    if not isinstance(session, IssueSession):
        state = activity.describe_activity(session)
        return AD_HOC.get(state, state)
    try:
        project = session.project
        [row] = make_rows(project, now, [session], read_last_look(project))
    except SmError as error:
        return f"its state is not known ({error.message})"
    return _in_words(row)


def _in_words(row: StatusRow) -> str:
    state = AT_WORK if row.phase is ShownState.WORKING else str(row.phase)
    if row.why:
        state = f"a person is needed: {row.why}"
    return f"{state} (waits for {row.waits_for})" if row.waits_for else state


def find(root: Root, name: str) -> AnySession | None:
    """Find the session with that id; None if no readable one is on record."""
    try:
        return registry.find(root, name)
    except SmError:
        return None
