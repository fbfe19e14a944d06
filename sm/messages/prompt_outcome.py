"""Finds out whether the agent CLI goes on with a prompt of ours that its hook has confirmed.

Hooks of a person's own hear of a prompt at the same time as ours, and may refuse it, or stop the
turn before it has begun: then no request is made, and no hook tells of that. The transcript does:
it has the prompt once all hooks have let it pass. Only who has such hooks waits for that. Measured
with Claude Code 2.1.332: 0.04 s behind the request; after a refusal the composer is idle again
within 0.1 s.
"""

from __future__ import annotations

import time
from enum import Enum

from sm.adapters.agent.own_settings import may_refuse
from sm.adapters.agent.prompt import Prompt
from sm.adapters.composer import forget
from sm.adapters.tmux import Pane
from sm.messages import conversation, observe, outcomes, queue
from sm.messages.decide import Heard
from sm.messages.draft import list_keys, read_last_typed
from sm.messages.interrupt import erase
from sm.messages.queue import Message, MessageFolder
from sm.sessions import agent_state, hook_events, launch
from sm.sessions.agent_state import AgentState, State
from sm.sessions.session import Session
from sm.store import events, journal

PATIENCE_S = 60.0
"""Time that a hook may take, unless its settings say otherwise, in seconds; an unknown outcome
counts then."""
SETTLED_S = 1.0
"""Time after which an idle agent that has not written a prompt down does not go on with it, in
seconds."""
LOOK_S = 0.02
SIGNS = ("PostToolUse", "Stop", "StopFailure", "PermissionRequest")


class Fate(Enum):
    """Outcome of a prompt. KEPT: the agent has it, and goes on with it at the next one."""

    TAKEN = "taken"
    KEPT = "kept"
    REFUSED = "refused"


def find_fate(session: Session, pane: Pane, message: Message) -> Fate:
    """Find out what becomes of a prompt that was typed last, and confirmed."""
    typed = read_last_typed(session.dir)
    if typed is None or typed.id != message.id or not _may_be_refused(session):
        return Fate.TAKEN
    told = _read_after_receipt(session)
    deadline, idle_since = time.monotonic() + PATIENCE_S, 0.0
    while (now := time.monotonic()) < deadline:
        heard = conversation.look_up_typed(session, told, message, since=typed.at) is Heard.YES
        is_idle = observe.look(session, pane.id).screen.prompt is Prompt.IDLE
        if hook_events.find_last(session.dir, *SIGNS) > typed.at or (heard and not is_idle):
            return Fate.TAKEN
        idle_since = (idle_since or now) if is_idle else 0.0
        if idle_since and now - idle_since > SETTLED_S:
            return Fate.KEPT if heard else Fate.REFUSED
        time.sleep(LOOK_S)
    return Fate.TAKEN


def _read_after_receipt(session: Session) -> AgentState:
    """Read the hooks' state again: this prompt's hook may have been the very first.

    The agent's context and transcript are known only then. While the agent's going on with the
    prompt was waited for, its turn may have ended.
    """
    return agent_state.read(session.dir)


def _may_be_refused(session: Session) -> bool:
    env = launch.read_environment(session.dir)
    return may_refuse(session.profile, session.record.cwd, env)


def note_idle(session: Session) -> None:
    """Note that the agent is idle, though its hooks say that a turn has begun."""
    told = _read_after_receipt(session)
    if told.state is State.BUSY:
        agent_state.overrule(session.dir, told, State.IDLE)


def give_up(session: Session, pane: Pane, message: Message) -> None:
    """Withdraw a message that a hook refused, and empty the composer, where it stands again.

    The message would be refused again.
    """
    directory = session.dir
    erase(session, pane)
    queue.forget_receipt(directory, message.id)
    forget(session.tmux, pane.id, *list_keys(message.id))
    outcomes.note_refusal(session, message)
    queue.withdraw(directory, message.id, MessageFolder.HANDED)
    text = f"message {message.id} was refused by a hook of the person's own (UserPromptSubmit)"
    journal.record(session.root.journal, events.Problem(session=session.name, text=text))
