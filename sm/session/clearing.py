"""Begins a new, empty context by the agent CLI's own command, which is typed once."""

from __future__ import annotations

import time
from enum import StrEnum

from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.composer import Typed, is_typed, press, type_once
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane
from sm.session import agent as agents
from sm.session import agentstate
from sm.session.delivery import Reason, look, obstacle
from sm.session.submission import Target
from sm.store.crash import crash_point

CONFIRMED_S = 5.0
"""Claude Code tells of its new context 0.1 s after Enter."""
LOOK_S = 0.005


class Cleared(StrEnum):
    """What became of the command. TAKEN: the agent CLI will tell with its next prompt."""

    CONFIRMED = "confirmed"
    TAKEN = "taken"
    UNCONFIRMED = "unconfirmed"


def clear(target: Target, ident: str, context: str) -> Cleared | Reason:
    """Type the command, unless it was for this `ident`, and wait for another context.

    A person's draft is put aside and comes back. The caller holds the delivery lock. Returns why
    not where nothing could be typed.

    Raises:
        TmuxBusyError: it is not known whether it was typed; repeating the call finds out.

    """
    try:
        return _clear(target, ident, context)
    except (NoServerError, MissingPaneError):
        return Reason.GONE


def _clear(target: Target, ident: str, context: str) -> Cleared | Reason:
    known = agents.load(target.session.dir)
    if known is None:
        return Reason.GONE
    pane, screen = look(target, known.pane_id)
    if screen.gone or not agents.alive(pane, known):
        return Reason.GONE
    if not is_typed(target.tmux, pane, ident):
        if reason := obstacle(target, pane, screen) or _type(target, pane, screen, ident):
            return reason
    elif screen.prompt is Prompt.IDLE and screen.draft == target.profile.clear:
        press(target.tmux, pane, target.profile.submit_keys, row=screen.row)  # typed, not submitted
    crash_point("clear:typed")
    return _confirm(target, pane, context)


def _type(target: Target, pane: Pane, screen: Screen, ident: str) -> Reason | None:
    """Why it could not be typed, None where it was."""
    crash_point("clear:before-typing")
    typed = type_once(
        target.tmux,
        pane,
        ident,
        (target.profile.clear,),
        row=screen.row,
        stash=target.profile.stash_key if screen.draft else "",
        submit=target.profile.submit_keys,
    )
    return _REFUSED.get(typed)


_REFUSED = {
    Typed.REFUSED_GONE: Reason.GONE,
    Typed.REFUSED_MODE: Reason.MODE,
    Typed.REFUSED_SCREEN: Reason.CHANGED,
    Typed.REFUSED_SHELL: Reason.SHELL,
}


def _confirm(target: Target, pane: Pane, context: str) -> Cleared:
    tells = target.profile.tells_of_clear and context
    deadline = time.monotonic() + CONFIRMED_S
    while time.monotonic() < deadline:
        if agentstate.read(target.session.dir).context not in ("", context):
            return Cleared.CONFIRMED
        if not tells and _is_taken(target, pane):
            return Cleared.TAKEN
        time.sleep(LOOK_S)
    return Cleared.UNCONFIRMED


def _is_taken(target: Target, pane: Pane) -> bool:
    _, screen = look(target, pane.id)
    return screen.prompt is Prompt.IDLE and not screen.draft
