"""Gathers the facts for a rotation: from hooks, screen, queue, document and transcript."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

from sm.adapters.agent import transcript
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import parse
from sm.adapters.tmux import TmuxError
from sm.base.errors import StateError, TemporaryError
from sm.context import documents, rotation_files
from sm.context.rotation import (
    HandoffDocument,
    MessageKey,
    RotationFacts,
    RotationRecord,
    RotationStage,
)
from sm.context.rotation_texts import BEGINS, CONFIRM, find_shown_task, find_task
from sm.messages import queue, screen_state
from sm.messages.follow_up import read_last_words
from sm.messages.observe import is_lost, look
from sm.messages.queue import MessageFolder
from sm.sessions import agent, agent_hooks, agent_process, hook_events, pause, terminal, window
from sm.sessions.agent import Agent
from sm.sessions.agent_state import AgentState, State
from sm.sessions.session import Session
from sm.sessions.window import Window

UNSAID_S = 60.0
"""Time without word from its hooks after which an agent at its prompt was interrupted, in
seconds."""
SETTLED_S = 5.0
"""Time without anything new after which an agent at its prompt, without hooks, has finished, in
seconds."""
SECOND_S = 1.0
"""Precision, in seconds, with which tmux tells when a terminal has last drawn."""


def observe(session: Session, record: RotationRecord) -> RotationFacts:
    """Observe what a rotation has to know of the agent now."""
    directory = session.dir
    state, known = screen_state.correct(session).told, agent.load(directory)
    told = window.read(directory)
    told = told if told.id == state.context else Window()  # else of an earlier context
    readable = record.is_replaced and _can_be_read(session, state)
    accepted = {
        key: queue.find_accepted_at(directory, record.make_message_id(key))
        for key in record.list_keys()
    }
    return RotationFacts(
        now=time.time(),
        alive=agent_process.is_reachable(session.tmux, session),
        idle_since=_idle_since(session, record, state),
        background_since=state.since if state.state is State.WAITING else None,
        context=state.context,
        begun=told.begun,
        begun_at=told.at,
        launch=known.generation if known else 0,
        launched_at=known.launched_at if known else 0.0,
        compacted_at=hook_events.find_last(directory, hook_events.COMPACTION),
        worked_at=_worked_at(session, state),
        resumed_at=pause.read_resumed_at(directory),
        parked=state.state is State.LIMITED,
        relaunched=_is_relaunched(record, state, known),
        document=_document(session, record),
        readable=not record.document or rotation_files.is_readable(Path(record.document)),
        accepted={key: at for key, at in accepted.items() if at is not None},
        lost=_find_lost(session, record),
        task=_find_task(session, record, state, written=readable),
        proves=readable,
        others=_has_others(session, record, state, accepted.values()),
        hands_off=record.step is RotationStage.VERIFY and directory.handoff.exists(),
    )


def _has_others(
    session: Session, record: RotationRecord, state: AgentState, accepted: Iterable[float | None]
) -> bool:
    """Whether the agent's new context has got a prompt that is not of the rotation."""
    if not record.is_replaced or not state.context:
        return False
    prompts = hook_events.count(session.dir, "UserPromptSubmit", state.context)
    return prompts > sum(at is not None and at >= record.resumed_at for at in accepted)


def _document(session: Session, record: RotationRecord) -> HandoffDocument | None:
    if record.step not in (RotationStage.REQUEST, RotationStage.DOCUMENT) or not record.folder:
        return None
    return documents.find_document(session, record)


def _is_relaunched(record: RotationRecord, state: AgentState, known: Agent | None) -> bool:
    anew = bool(record.generation) and known is not None and known.generation == record.generation
    return anew and not state.context


def _find_lost(session: Session, record: RotationRecord) -> frozenset[MessageKey]:
    directory, lost = session.dir, set[MessageKey]()
    for key in record.list_keys():
        with contextlib.suppress(StateError):  # the deliverer says what is wrong
            message = queue.find(directory, MessageFolder.HANDED, record.make_message_id(key))
            if message and is_lost(session, message):
                lost.add(key)
    return frozenset(lost)


def _idle_since(session: Session, record: RotationRecord, state: AgentState) -> float | None:
    """Return since when its turn is over; only the screen tells of an interruption."""
    if not session.profile.hooks or state.state is State.UNKNOWN:
        return _quiet_since(session)
    # Without an answer of its API it writes no document, but its context can be replaced.
    parked = state.state is State.LIMITED and record.step not in (
        RotationStage.REQUEST,
        RotationStage.DOCUMENT,
    )
    if (state.state is State.IDLE or parked) and not window.is_compacting(session.dir):
        return state.since
    now = time.time()
    return now if _is_untold(record, state, now) and _shows_prompt(session) else None


def _is_untold(record: RotationRecord, state: AgentState, now: float) -> bool:
    """Whether the agent's turn may be over without a hook, as it was interrupted."""
    unsaid = record.interrupted or now > state.active_at + UNSAID_S
    return state.state is State.BUSY and unsaid


def _quiet_since(session: Session) -> float | None:
    """Return since when an agent without hooks has shown its prompt and nothing new."""
    at = _drew_at(session)
    quiet = at is not None and time.time() > at + SETTLED_S
    return at + SECOND_S if at is not None and quiet and _shows_prompt(session) else None


def _worked_at(session: Session, state: AgentState) -> float:
    """Return when the agent last ended a turn or used a tool, seconds since 1970.

    An agent without hooks works as long as its screen changes, later than by what was typed into
    it, and has ended its turn when the screen comes to rest.
    """
    if session.profile.hooks and state.context:
        return hook_events.find_last(session.dir, "Stop", "PostToolUse", context=state.context)
    at = time.time() if _quiet_since(session) is not None else _drew_at(session) or 0.0
    return at - SETTLED_S


def _drew_at(session: Session) -> float | None:
    known = agent.load(session.dir)
    try:
        return session.tmux.drew_at(known.pane_id) if known else None
    except (TmuxError, TemporaryError):
        return None


def _shows_prompt(session: Session) -> bool:
    known = agent.load(session.dir)
    if known is None:
        return False
    try:
        shown = look(session, known.pane_id).screen
    except (TmuxError, TemporaryError):
        return False
    return shown.prompt is Prompt.IDLE


# The task that the agent names in its new context


def _find_task(
    session: Session, record: RotationRecord, state: AgentState, *, written: bool
) -> str:
    """Find the task, '' as long as none is named.

    `written` says whether all that the agent says can be read.
    """
    if record.step is not RotationStage.VERIFY:
        return ""
    resumed = session.settings.cycle.resumed  # what its line begins with
    if said := find_task(read_last_words(session.dir, record.resumed_at), resumed):
        return said
    return _read_written(session, state, resumed) if written else _read_shown(session, resumed)


def _can_be_read(session: Session, state: AgentState) -> bool:
    """Whether the transcript has all that the agent says, in a form that we can read.

    The file is there a moment after the first prompt.
    """
    path = window.read(session.dir).conversation
    if not session.profile.keeps_transcript or not state.context or path is None:
        return False
    if not agent_hooks.are_ours(session.dir):
        return False
    return path.is_file() or (state.state is State.BUSY and path.parent.is_dir())


def _read_written(session: Session, state: AgentState, resumed: str) -> str:
    """Return the task in the transcript, which is the transcript of the new context alone."""
    known = window.read(session.dir)
    if known.conversation is None or known.id != state.context:
        return ""
    found = (find_task(said, resumed) for said in transcript.read_answers(known.conversation))
    return next(filter(None, found), "")


def _read_shown(session: Session, resumed: str) -> str:
    """Return the task that the terminal shows below what the rotation has told the new context."""
    rows = [row.text for row in parse(terminal.capture(session))]
    told = [at for at, row in enumerate(rows) if BEGINS in row or CONFIRM in row]
    return find_shown_task(rows[told[-1] + 1 if told else 0 :], resumed)
