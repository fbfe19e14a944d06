"""Takes over HTTP what the hooks of agents report; `context_reports.py` says what it means."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from sm.plugins.http import context_reports, views
from sm.plugins.http.shapes import ContextAnswer, ContextUsage, HookAnswer, HookEvent
from sm.web.bodies import decode
from sm.web.endpoint import Call


def note_usage(call: Call[ContextUsage]) -> ContextAnswer:
    """Note how full a context is, or that it is being compacted."""
    report = call.body
    session = views.find(call.root, report.session_id)
    if session is None:
        return ContextAnswer("unknown_session")
    if report.event == "compaction":
        context_reports.note_compaction(session, report.trigger or "")
        return ContextAnswer("compaction_logged")
    reason, percent = "", report.used_percentage
    if report.event is None and percent is not None:
        size = _cut_fraction(report.context_window_size)
        tokens = _cut_fraction(report.total_input_tokens)
        reason = context_reports.note_reading(session, percent, size, tokens)
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
    noted = context_reports.run_hook(session, event.hook_event_name, payload)
    return HookAnswer("received", event.hook_event_name, noted)
