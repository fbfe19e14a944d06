"""Gathers what a rotation is decided on: from the hooks, the screen, the queue, the document."""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path

from sm.adapters.agent.screen import Prompt
from sm.adapters.tmux import TmuxError
from sm.errors import StateError, TemporaryError
from sm.rotation import Document, Rotation, Standing, Step, keys
from sm.session import (
    agent,
    agentstate,
    contexts,
    delivery,
    handoff,
    interruption,
    lifesigns,
    queue,
)
from sm.session.agentstate import AgentState, State
from sm.session.queue import Place
from sm.session.submission import Target, is_lost
from sm.workflow import documents
from sm.workflow.policy import Policy

UNSAID_S = 60.0
"""An agent that shows its prompt, and whose hooks say nothing for so long, was interrupted."""
SETTLED_S = 5.0
"""An agent without hooks has finished when its prompt shows and nothing new for so long."""


def ident(record: Rotation, key: str) -> str:
    """The id of one of its messages: always the same, so that none is sent twice."""
    return hashlib.sha256(f"{record.id}:{key}".encode()).hexdigest()[:16]


def standing(target: Target, record: Rotation, policy: Policy) -> Standing:
    """What is known of the agent now, as far as the rotation is concerned."""
    directory = target.session.dir
    state, told = agentstate.read(directory), contexts.read(directory)
    accepted = {key: queue.accepted_at(directory, ident(record, key)) for key in keys(record)}
    return Standing(
        now=time.time(),
        alive=agent.lives(target.tmux, target.session),
        idle_since=_idle_since(target, record, state),
        background_since=state.since if state.state is State.WAITING else None,
        context=state.context,
        begun=told.begun,
        begun_at=told.at if told.id == state.context else 0.0,
        compacted_at=lifesigns.last(directory, lifesigns.COMPACTION),
        worked_at=_worked_at(target, state),
        parked=state.state is State.LIMITED,
        relaunched=_is_relaunched(record, state, target),
        document=_document(record, policy),
        readable=not record.document or handoff.is_readable(Path(record.document)),
        accepted={key: at for key, at in accepted.items() if at is not None},
        lost=_lost(target, record),
    )


def _document(record: Rotation, policy: Policy) -> Document | None:
    if record.step not in (Step.REQUEST, Step.DOCUMENT) or not record.folder:
        return None
    return documents.written(Path(record.folder), record.before, policy.cycle.sections)


def _is_relaunched(record: Rotation, state: AgentState, target: Target) -> bool:
    known = agent.load(target.session.dir)
    anew = bool(record.generation) and known is not None and known.generation == record.generation
    return anew and not state.context


def _lost(target: Target, record: Rotation) -> frozenset[str]:
    directory, lost = target.session.dir, set[str]()
    for key in keys(record):
        with contextlib.suppress(StateError):  # whoever hands messages over says what is wrong
            message = queue.find(directory, Place.HANDED, ident(record, key))
            if message and is_lost(target, message):
                lost.add(key)
    return frozenset(lost)


def _idle_since(target: Target, record: Rotation, state: AgentState) -> float | None:
    """Since when its turn is over; of one that was interrupted only the screen tells."""
    if not target.profile.hooks or state.state is State.UNKNOWN:
        return _quiet_since(target)
    # Without an answer of its API it writes no document, but its context can be replaced.
    parked = state.state is State.LIMITED and record.step not in (Step.REQUEST, Step.DOCUMENT)
    if (state.state is State.IDLE or parked) and not interruption.is_compacting(target):
        return state.since
    now = time.time()
    return now if _is_untold(record, state, now) and _shows_prompt(target) else None


def _is_untold(record: Rotation, state: AgentState, now: float) -> bool:
    """Whether its turn may be over without a hook: interrupted, or with its dialog turned down."""
    if state.state is State.DIALOG:
        return now > state.since + delivery.DRAWN_S
    unsaid = record.interrupted or now > state.active_at + UNSAID_S
    return state.state is State.BUSY and unsaid


def _quiet_since(target: Target) -> float | None:
    """Since when an agent without hooks has shown its prompt and nothing new."""
    at = _drew_at(target)
    quiet = at is not None and time.time() > at + SETTLED_S
    return at if quiet and _shows_prompt(target) else None


def _worked_at(target: Target, state: AgentState) -> float:
    """When it last ended a turn or used a tool.

    One without hooks works as long as its screen changes, later than by what was typed into it, and
    has ended its turn when the screen comes to rest.
    """
    if target.profile.hooks and state.context:
        return lifesigns.last(target.session.dir, "Stop", "PostToolUse", context=state.context)
    at = time.time() if _quiet_since(target) is not None else _drew_at(target) or 0.0
    return at - SETTLED_S


def _drew_at(target: Target) -> float | None:
    known = agent.load(target.session.dir)
    try:
        return target.tmux.drew_at(known.pane_id) if known else None
    except (TmuxError, TemporaryError):
        return None


def _shows_prompt(target: Target) -> bool:
    known = agent.load(target.session.dir)
    if known is None:
        return False
    try:
        _, screen = delivery.look(target, known.pane_id)
    except (TmuxError, TemporaryError):
        return False
    return screen.prompt is Prompt.IDLE
