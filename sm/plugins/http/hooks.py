"""Takes over HTTP what agents' hooks report: the same as `lib/hooks`, by other means.

A session whose agent calls the hooks of sm does not need this. sm notes nothing twice: a report
over HTTP is then a late copy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from sm.adapters.process import ask
from sm.context import files, usage
from sm.context.flags import read_flags
from sm.context.thresholds import Reading
from sm.plugins.http import views
from sm.plugins.http.actions import Call
from sm.plugins.http.bodies import decode
from sm.plugins.http.shapes import ContextAnswer, ContextUsage, HookAnswer, HookEvent
from sm.sessions import agent, agent_state, registry, signals, window
from sm.sessions.caller import OWN_VARIABLES
from sm.sessions.hooks import HOOKS, are_ours
from sm.sessions.session import AnySession
from sm.shell_root import find_shell_root
from sm.store.files import append_line

OVER_HTTP = {"SM_HOOKS": "http"}
"""Such a hook only notes what happened: its answer would not reach the agent."""
HOOK_S = 10.0
LATE_S = 1.0
"""A reading names no context. If it comes so soon after a clear or a compaction, it may be
about the old context. During a rotation, every reading may be."""
SAME_S, LOOK_S = 0.3, 0.02
"""How long a compaction's own hook may take to report it, too."""
RECENT_S = 5.0


def note_usage(call: Call[ContextUsage]) -> ContextAnswer:
    """Note how full a context is, or that it is being compacted."""
    report = call.body
    session = views.find(call.root, report.session_id)
    if session is None:
        return ContextAnswer("unknown_session")
    if report.event == "compaction":
        _note_compaction(session, report.trigger or "")
        return ContextAnswer("compaction_logged")
    reason: str | UnsetType = UNSET
    if report.event is None and report.used_percentage is not None:
        reason = _passed_over(session) or UNSET
        if reason is UNSET:
            _note_reading(session, report)
    return ContextAnswer("ok", used_percentage=report.used_percentage, reason=reason)


def _passed_over(session: AnySession) -> str:
    """Say why a reading that comes now does not count; '' if it counts."""
    if are_ours(session.dir):
        return "passed over: the status line of sm tells how full its context is"
    if files.is_wanted(session.dir):
        return "passed over: its context is being replaced"
    if window.is_compacting(session.dir):
        return "passed over: its context is being summed up"
    if time.time() < _began_at(session) + LATE_S:
        return "passed over: its context has just begun, so this may be of the one before"
    return ""


def _note_reading(session: AnySession, report: ContextUsage) -> None:
    directory = session.dir
    reading = Reading(
        at=time.time(),
        context=agent_state.read(directory).context,
        percent=report.used_percentage,
        window=_whole(report.context_window_size),
        tokens=_whole(report.total_input_tokens),
    )
    usage.note(directory, reading)
    registry.poke(directory)


def _began_at(session: AnySession) -> float:
    """Return when the present context began to fill up after another one; 0 for the first."""
    directory = session.dir
    reset_at, launched = read_flags(directory).reset_at, agent.load(directory)
    if launched and launched.generation == 1 and reset_at <= launched.launched_at:
        reset_at = 0.0
    told = directory.context.exists()  # else no hook ever has
    return max(reset_at, usage.read_beginning(directory)) if told else reset_at


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _note_compaction(session: AnySession, trigger: str) -> None:
    """Write what the hook writes, unless the hook does so itself."""
    directory = session.dir
    if _is_told(session):
        return
    context = agent_state.read(directory).context or "-"
    word = trigger if trigger in ("auto", "manual") else "unknown"
    line = f"{time.time():.6f} {signals.COMPACTION} {context} {word}"
    append_line(directory.events, line.encode())
    registry.poke(directory)


def _is_told(session: AnySession) -> bool:
    began = time.time()
    while True:
        if signals.find_last(session.dir, signals.COMPACTION) > began - RECENT_S:
            return True
        if not are_ours(session.dir) or time.time() > began + SAME_S:
            return False
        time.sleep(LOOK_S)


def run_claude_hook(call: Call[HookEvent]) -> HookAnswer:
    """Run the hook of an event for a session whose agent has no hooks of its own."""
    event = call.body
    session = views.find(call.root, event.session_manager_id)
    if session is None:
        return HookAnswer("unknown_session")
    name = HOOKS.get(event.hook_event_name)
    noted = name is not None and not are_ours(session.dir)
    if name and noted:
        _run(session, name, call.raw)
    return HookAnswer("received", event.hook_event_name, noted)


def _run(session: AnySession, name: str, raw: bytes) -> None:
    """Run a hook with the payload in the form of the agent CLI."""
    payload = msgspec.json.encode(decode(raw, dict[str, object])) + b"\n"
    theirs = {key: text for key, text in os.environ.items() if key not in OWN_VARIABLES}
    env = theirs | session.environment | OVER_HTTP
    script = str(find_shell_root() / "lib" / "hooks" / name)
    ask("bash", "-p", script, cwd=Path("/"), env=env, stdin=payload, timeout_s=HOOK_S)
