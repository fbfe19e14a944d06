"""Has the monitor called as soon as a terminal shows something new, while that decides.

A dialog, a draft, a menu: no hook tells when a person is done with it. tmux appends what a terminal
shows to its log, so a newer log is all that the monitor has to look for, by builtins and once a
second. The log knows nothing of copy mode: tmux itself says when a person leaves it.
"""

from __future__ import annotations

from sm.base.refusal import Refusal
from sm.messages import screen_state
from sm.sessions import agent
from sm.sessions.agent_state import AgentState
from sm.sessions.session import Session
from sm.store.files import discard, read_guarded, write_atomic

ON_SCREEN = frozenset(
    {
        Refusal.DIALOG,
        Refusal.NO_PROMPT,
        Refusal.DRAFT,
        Refusal.CHANGED,
        Refusal.SHELL,
        Refusal.STARTING,
    }
)
"""Refusals that are over as soon as the screen shows it."""


def watch(session: Session, told: AgentState, refusal: Refusal | None) -> bool:
    """Have the next look called for by the obstacle: `refusal` is why a message waits.

    `told` is what the agent's hooks have said by now.

    Returns whether it is copy mode; tmux is certain to tell when that ends.

    Raises:
        TmuxError, TmuxBusyError: tmux could not be asked.

    """
    _watch_screen(session, told, refusal)
    known = agent.load(session.dir) if refusal is Refusal.MODE else None
    return known is not None and session.tmux.call_on_mode(known.pane_id, session.dir.wake)


def _watch_screen(session: Session, told: AgentState, refusal: Refusal | None) -> None:
    directory = session.dir
    decides = refusal in ON_SCREEN or screen_state.is_behind(session, told, refusal)
    if not decides and not screen_state.is_unsure(session, told):
        discard(directory.screen)
        return
    log = f"{session.terminal_log}\n".encode()
    if read_guarded(directory.screen) != log:
        write_atomic(directory.screen, log)
