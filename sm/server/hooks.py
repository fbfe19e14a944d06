"""What agents' hooks report over HTTP: the same as those of `lib/hooks`, by other means.

A session whose agent calls the hooks of sm needs none of this, and nothing is noted twice: what
comes over HTTP then is a second report of the same, and late, as it went round a server.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from sm.adapters.process import ask
from sm.server import views
from sm.server.actions import Call
from sm.server.bodies import decode
from sm.server.shapes import ContextAnswer, ContextUsage, HookAnswer, HookEvent
from sm.session import agent, agentstate, handoff, lifesigns, readings, registry
from sm.session.caller import OWN_VARIABLES
from sm.session.hookfiles import HOOKS
from sm.session.readings import Reading
from sm.session.registry import AnySession
from sm.shellroot import shell_root
from sm.store.files import append_line

OVER_HTTP = {"SM_HOOKS": "http"}
"""Such a hook notes what happened; whoever sent it will not pass on what it answers."""
HOOK_S = 10.0
LATE_S = 1.0
"""A reading names no context. One that comes so soon after the last context was cleared or summed
up may be of that one, and so may any while the context is being replaced."""
SAME_S, LOOK_S = 0.3, 0.02
"""So long a compaction's own hook may take to tell of it, too."""
RECENT_S = 5.0


def context_usage(call: Call[ContextUsage]) -> ContextAnswer:
    """Note how full a context is, or that it is being summed up."""
    report = call.body
    session = views.find(call.root, report.session_id)
    if session is None:
        return ContextAnswer("unknown_session")
    if report.event == "compaction":
        _note_compaction(session, report.trigger or "")
        return ContextAnswer("compaction_logged")
    if report.event is None and report.used_percentage is not None:
        _note_reading(session, report)
    return ContextAnswer("ok", used_percentage=report.used_percentage)


def _note_reading(session: AnySession, report: ContextUsage) -> None:
    now, directory = time.time(), session.dir
    if _has_hooks(session) or handoff.is_wanted(directory) or now < _began_at(session) + LATE_S:
        return
    reading = Reading(
        at=now,
        context=agentstate.read(directory).context,
        percent=report.used_percentage,
        window=_whole(report.context_window_size),
        tokens=_whole(report.total_input_tokens),
    )
    readings.note(directory, reading)
    registry.poke(directory)


def _began_at(session: AnySession) -> float:
    """When the present context began to fill up behind another one; 0: it is the first."""
    directory = session.dir
    reset_at, launched = readings.flags(directory).reset_at, agent.load(directory)
    if launched and launched.generation == 1 and reset_at <= launched.launched_at:
        reset_at = 0.0
    told = directory.context.exists()  # else no hook ever has
    return max(reset_at, readings.began_at(directory)) if told else reset_at


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _note_compaction(session: AnySession, trigger: str) -> None:
    """Leave what the hook leaves, unless it does so itself."""
    directory = session.dir
    if _is_told(session):
        return
    context = agentstate.read(directory).context or "-"
    word = trigger if trigger in ("auto", "manual") else "unknown"
    line = f"{time.time():.6f} {lifesigns.COMPACTION} {context} {word}"
    append_line(directory.events, line.encode())
    registry.poke(directory)


def _is_told(session: AnySession) -> bool:
    began = time.time()
    while True:
        if lifesigns.last(session.dir, lifesigns.COMPACTION) > began - RECENT_S:
            return True
        if not _has_hooks(session) or time.time() > began + SAME_S:
            return False
        time.sleep(LOOK_S)


def claude(call: Call[HookEvent]) -> HookAnswer:
    """Run the hook of an event for a session whose agent has none of its own."""
    event = call.body
    session = views.find(call.root, event.session_manager_id)
    if session is None:
        return HookAnswer("unknown_session")
    name = HOOKS.get(event.hook_event_name)
    noted = name is not None and not _has_hooks(session)
    if name and noted:
        _run(session, name, call.raw)
    return HookAnswer("received", event.hook_event_name, noted)


def _has_hooks(session: AnySession) -> bool:
    """Whether the agent was given settings with our hooks in them."""
    return session.dir.settings.exists()


def _run(session: AnySession, name: str, raw: bytes) -> None:
    """Run a hook with the payload as the agent CLI would have written it."""
    payload = msgspec.json.encode(decode(raw, dict[str, object])) + b"\n"
    theirs = {key: text for key, text in os.environ.items() if key not in OWN_VARIABLES}
    env = theirs | session.environment | OVER_HTTP
    script = str(shell_root() / "lib" / "hooks" / name)
    ask("bash", "-p", script, cwd=Path("/"), env=env, stdin=payload, timeout_s=HOOK_S)
