"""Begins a new, empty context by the agent CLI's own command, which is typed once."""

from __future__ import annotations

import time

from sm.adapters.agent.prompt import Prompt
from sm.adapters.composer import forget, is_typed, press, type_once
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane
from sm.base.clock import Deadline
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages.observe import Sight, find_terminal_obstacle, look
from sm.sessions import agent as agents
from sm.sessions import agent_hooks, agent_state
from sm.sessions.session import Session
from sm.store.failpoint import crash_point

CONFIRMED_S = 5.0
"""Time that a confirmation is waited for, in seconds. Claude Code tells of its new context 0.1 s
after Enter."""
LOOK_S = 0.005
DRAWN_S = 0.1
"""Time after its composer is empty in which a client refuses the command, in seconds."""
GONE = Outcome(Status.WAITING, Refusal.GONE)


def clear(session: Session, ident: str, context: str) -> Outcome:
    """Type the command, unless it was for this `ident`, and wait for another context.

    A person's draft is put aside and comes back. The caller holds the delivery lock.

    ACCEPTED: the agent is in another context. TYPED: it has taken the command, and will tell with
    its next prompt. INDETERMINATE: it has told nothing in time. WAITING: nothing could be typed, or
    it says that it has not carried the command out.

    Raises:
        TmuxBusyError: it is not known whether it was typed; repeating the call finds out.

    """
    try:
        return _clear(session, ident, context)
    except (NoServerError, MissingPaneError):
        return GONE


def _clear(session: Session, ident: str, context: str) -> Outcome:
    known = agents.load(session.dir)
    if known is None:
        return GONE
    sight = look(session, known.pane_id)
    pane, screen, _ = sight
    if screen.gone or not agents.runs_in_pane(pane, known):
        return GONE
    if not is_typed(session.tmux, pane, ident):
        if refusal := find_terminal_obstacle(session, sight) or _type(session, sight, ident):
            return Outcome(Status.WAITING, refusal)
    elif screen.prompt is Prompt.IDLE and screen.draft == session.profile.clear:
        # It was typed, and not submitted.
        press(session.tmux, pane, session.profile.submit_keys, row=screen.row)
    crash_point("clear:typed")
    status = _confirm(session, pane, context)
    if status is Status.TYPED and _is_refused(session, pane):
        forget(session.tmux, pane.id, ident)
        return Outcome(Status.WAITING, Refusal.BUSY)
    return Outcome(status)


def _type(session: Session, sight: Sight, ident: str) -> Refusal | None:
    """Type the command; return the obstacle, if there was one."""
    pane, screen, _ = sight
    crash_point("clear:before-typing")
    return type_once(
        session.tmux,
        pane,
        ident,
        (session.profile.clear,),
        row=screen.row,
        stash=session.profile.stash_key if screen.draft else "",
        submit=session.profile.submit_keys,
    )


def _confirm(session: Session, pane: Pane, context: str) -> Status:
    """Wait for word of another context, or for the emptied composer if no word is to be expected.

    Hooks that are not ours may leave a context out, so in the end the composer counts for them.
    """
    reliable = agent_hooks.are_ours(session.dir)
    tells = context and (session.profile.tells_of_clear or not reliable)
    deadline = Deadline(CONFIRMED_S)
    while not deadline.is_over:
        if agent_state.read(session.dir).context not in ("", context):  # the receipt
            return Status.ACCEPTED
        if not tells and _is_taken(session, pane):
            return Status.TYPED
        time.sleep(LOOK_S)
    taken = not reliable and _is_taken(session, pane)
    return Status.TYPED if taken else Status.INDETERMINATE


def _is_taken(session: Session, pane: Pane) -> bool:
    screen = look(session, pane.id).screen
    return screen.prompt is Prompt.IDLE and not screen.draft


def _is_refused(session: Session, pane: Pane) -> bool:
    """Whether the client says that it has refused the command, as its turn still goes on."""
    if not session.profile.clear_refused:
        return False
    time.sleep(DRAWN_S)
    return look(session, pane.id).screen.refused
