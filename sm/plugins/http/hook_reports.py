"""Reports over HTTP on an agent and its context, and whether they count.

The agent's own hooks in `lib/hooks` decide: what they have told is not noted a second time, and a
report of the same event by another way is a late copy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
from msgspec import UNSET

from sm.adapters.process import ask
from sm.context import rotation_files, usage
from sm.context.flags import read_flags
from sm.context.thresholds import FillReading
from sm.plugins.http import views
from sm.plugins.http.shapes import ContextAnswer, ContextUsage, HookAnswer, HookEvent
from sm.sessions import agent, agent_state, hook_events, registry, window
from sm.sessions.agent_hooks import HOOKS, TIMEOUT_S, are_ours
from sm.sessions.caller import OWN_VARIABLES
from sm.sessions.session import AnySession
from sm.shell_root import find_shell_root
from sm.web.bodies import decode
from sm.web.endpoint import Call

UNHEARD = {"SM_HOOKS": "http"}
"""Variable that lets a hook only note what happened: its answer would not reach the agent."""
LATE_S = 1.0
"""Seconds after a clear or a compaction in which a reading may be about the old context, as it
names none. During a rotation, every reading may be."""
SAME_S, LOOK_S = 0.3, 0.02
"""Seconds that a compaction's own hook may take to report it, too, and seconds between two
looks."""
RECENT_S = 5.0


def note_reading(session: AnySession, percent: float, size: int | None, tokens: int | None) -> str:
    """Note how full the context is; return why the reading does not count, '' if it does."""
    directory = session.dir
    passed_over = _explain_doubt(session)
    if not passed_over:
        context = agent_state.read(directory).context
        reading = FillReading(
            at=time.time(), context=context, percent=percent, window=size, tokens=tokens
        )
        usage.note(directory, reading)
        registry.poke(directory)
    return passed_over


def _explain_doubt(session: AnySession) -> str:
    if are_ours(session.dir):
        return "passed over: the status line of sm tells how full its context is"
    if rotation_files.is_wanted(session.dir):
        return "passed over: its context is being replaced"
    if window.is_compacting(session.dir):
        return "passed over: its context is being summed up"
    if time.time() < _find_beginning(session) + LATE_S:
        return "passed over: its context has just begun, so this may be of the one before"
    return ""


def _find_beginning(session: AnySession) -> float:
    """Return when the present context began to fill up after another one; 0 for the first."""
    directory = session.dir
    reset_at, launched = read_flags(directory).reset_at, agent.load(directory)
    if launched and launched.generation == 1 and reset_at <= launched.launched_at:
        reset_at = 0.0
    if not directory.context.exists():  # no hook ever has told
        return reset_at
    context = agent_state.read(directory).context
    return max(reset_at, usage.read_beginning(directory, context))


def note_compaction(session: AnySession, trigger: str) -> None:
    """Note that the context is being summed up, unless the agent's own hook says so itself."""
    directory = session.dir
    if _wait_for_own_hook(session):
        return
    context = agent_state.read(directory).context
    hook_events.note_compaction(directory, context, trigger)
    registry.poke(directory)


def _wait_for_own_hook(session: AnySession) -> bool:
    """Wait a moment for the hook's own line; say whether it is there."""
    began = time.time()
    while True:
        if hook_events.find_last(session.dir, hook_events.COMPACTION) > began - RECENT_S:
            return True
        if not are_ours(session.dir) or time.time() > began + SAME_S:
            return False
        time.sleep(LOOK_S)


def run_hook(session: AnySession, event: str, payload: bytes) -> bool:
    """Run the hook of an event for an agent that has no hooks of its own; say whether it ran."""
    name = HOOKS.get(event)
    if name is None or are_ours(session.dir):
        return False
    theirs = {key: text for key, text in os.environ.items() if key not in OWN_VARIABLES}
    env = theirs | session.environment | UNHEARD
    script = str(find_shell_root() / "lib" / "hooks" / name)
    ask("bash", "-p", script, cwd=Path("/"), env=env, stdin=payload, timeout_s=TIMEOUT_S)
    return True


def note_usage(call: Call[ContextUsage]) -> ContextAnswer:
    """Note how full a context is, or that it is being compacted."""
    report = call.body
    session = views.find(call.root, report.session_id)
    if session is None:
        return ContextAnswer("unknown_session")
    if report.event == "compaction":
        note_compaction(session, report.trigger or "")
        return ContextAnswer("compaction_logged")
    reason, percent = "", report.used_percentage
    if report.event is None and percent is not None:
        size = _cut_fraction(report.context_window_size)
        tokens = _cut_fraction(report.total_input_tokens)
        reason = note_reading(session, percent, size, tokens)
    return ContextAnswer("ok", used_percentage=percent, reason=reason or UNSET)


def _cut_fraction(number: float | None) -> int | None:
    return None if number is None else int(number)


def run_claude_hook(call: Call[HookEvent]) -> HookAnswer:
    """Run the hook of an event for a session whose agent has no hooks of its own."""
    event = call.body
    session = views.find(call.root, event.session_manager_id)
    if session is None:
        return HookAnswer("unknown_session")
    # As the agent CLI writes it: in one line.
    payload = msgspec.json.encode(decode(call.raw, dict[str, object])) + b"\n"
    noted = run_hook(session, event.hook_event_name, payload)
    return HookAnswer("received", event.hook_event_name, noted)
