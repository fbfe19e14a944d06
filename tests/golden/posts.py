"""What programs and browsers ask the server to do in the states, and what it answers."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.golden.clock import CLOCK
from tests.golden.states import ANN, World, find_head, make_browser, post_form, send_json

WISHES: tuple[dict[str, str], ...] = (
    {"act": "send", "session": "dev-harb-1", "text": "From the page."},
    {"act": "send", "session": "dev-harb-99", "text": "From the page."},
    {"act": "send", "session": "dev-harb-16", "text": "From the page."},
    {"act": "reply", "project": "harb", "number": "11", "text": "In a cookie."},
    {"act": "reply", "project": "harb", "number": "1", "text": "Nothing was asked."},
    {"act": "request-changes", "project": "harb", "number": "20", "head": "{head}"},
    {"act": "request-changes", "project": "harb", "number": "20", "head": "{head}", "text": "No."},
    {"act": "approve", "project": "harb", "number": "20", "head": "0" * 40},
    {"act": "approve", "project": "harb", "number": "20"},
    {"act": "merge", "project": "harb", "number": "20", "head": "{head}"},
    {"act": "rerun", "project": "harb", "number": "15"},
    {"act": "allow", "project": "harb", "number": "19"},
    {"act": "pause", "session": "dev-harb-7"},
    {"act": "resume", "session": "dev-harb-7"},
    {"act": "resume", "session": "dev-harb-7"},
    {"act": "cycle", "session": "dev-harb-3"},
    {"act": "recover", "project": "harb", "number": "7"},
    {"act": "budget-raise", "session": "dev-harb-8", "limit": "{limit}", "text": "5"},
    {"act": "budget-lower", "session": "dev-harb-8", "limit": "{limit}", "text": "5"},
    {"act": "budget-raise", "session": "dev-harb-8", "limit": "another", "text": "5"},
    {"act": "kill", "session": "dev-harb-14"},
    {"act": "nothing"},
)
"""Forms of the page."""

REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/sessions/dev-harb-1/input", {"text": "Hello."}),
    ("POST", "/sessions/dev-harb-1/input", {"words": "Hello."}),
    ("POST", "/sessions/nobody/input", {"text": "Hello."}),
    ("POST", f"/sessions/{ANN}/input", {"text": "", "delivery_mode": "at once"}),
    ("PATCH", f"/sessions/{ANN}", {"name": "anna"}),
    ("PATCH", f"/sessions/{ANN}", {"name": "ann", "context_monitor": False}),
    ("POST", "/sessions/dev-harb-1/kill", {"requester_session_id": ANN}),
    ("POST", "/sessions/dev-harb-1/handoff", {"requester_session_id": ANN, "file_path": "/no.md"}),
    ("POST", "/pause", {"targets": ["harb#7"], "reason": "until tomorrow"}),
    ("POST", "/resume", {"targets": ["harb#7"]}),
    ("POST", "/resume", {"targets": ["harb#7"]}),
    ("POST", "/pause", {"targets": ["nobody"]}),
    ("POST", "/hooks/context-usage", {"session_id": "dev-harb-1", "used_percentage": 43}),
    ("POST", "/hooks/context-usage", {"session_id": "nobody"}),
    ("POST", "/hooks/claude", {"hook_event_name": "Stop", "session_manager_id": "nobody"}),
    ("POST", "/sessions", {"working_dir": "/nowhere"}),
    ("DELETE", "/sessions/dev-harb-99", None),
    ("GET", "/pause", None),
)
"""What programs send."""


def carry_out(world: World) -> str:
    """Ask for all of it, in order; return the answers."""
    browser, parts = make_browser(world), []
    shown = browser.get("/page/session/dev-harb-8").text
    limit = re.search(r'name="limit" value="([^"]+)"', shown)
    known = {"head": find_head(world, 20), "limit": limit[1] if limit else ""}
    for wish in WISHES:
        CLOCK.at += 1
        fields = {name: text.format(**known) for name, text in wish.items()}
        answer = post_form(browser, "/page/act", fields)
        said = " ".join(f"{name}={text}" for name, text in wish.items())
        parts.append(f"FORM {said}\n{answer.status_code} {answer.text.strip()}\n")
    for method, path, body in REQUESTS:
        CLOCK.at += 1
        answer = send_json(browser, method, path, body)
        said = json.dumps(answer.json(), indent=1, ensure_ascii=False)
        parts.append(f"{method} {path} {json.dumps(body)}\n{answer.status_code}\n{said}\n")
    return "\n".join(parts)
