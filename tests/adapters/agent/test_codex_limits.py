from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent.codex_limits import TAIL, CodexLimits, Limit, read_limits

AT = "2026-11-28T14:39:55.297Z"
AT_S = 1795876795.297
PRIMARY = {"used_percent": 94.5, "window_minutes": 300, "resets_at": 1795877793}
SECONDARY = {"used_percent": 12.0, "window_minutes": 10080, "resets_at": 1796376793}
BOTH = CodexLimits(Limit(94.5, 1795877793), Limit(12.0, 1796376793))


def line(primary: Any = None, secondary: Any = None) -> str:
    """As Codex 0.171.0 writes it."""
    limits = {
        "limit_id": "codex",
        "limit_name": "codex",
        "primary": primary,
        "secondary": secondary,
        "credits": None,
        "plan_type": None,
        "rate_limit_reached_type": None,
    }
    payload = {"type": "token_count", "info": None, "rate_limits": limits}
    record = {"timestamp": AT, "ordinal": 12, "type": "event_msg", "payload": payload}
    return json.dumps(record, separators=(",", ":")) + "\n"


OTHER = '{"timestamp":"x","type":"response_item","payload":{"type":"message"}}\n'
NULL = line().replace(line()[line().index('"rate_limits":') : -3], '"rate_limits":null')


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        (OTHER, None),
        (NULL, None),
        (line(PRIMARY, SECONDARY), BOTH),
        (line(SECONDARY, PRIMARY), BOTH),
        (line(SECONDARY), CodexLimits(week=BOTH.week)),
        (line({}, {}), CodexLimits()),
        (line(PRIMARY | {"window_minutes": 43200}), CodexLimits()),
        (line({"used_percent": 1}) + line(PRIMARY, SECONDARY) + NULL + OTHER, BOTH),
        (line(PRIMARY, SECONDARY) + line({"used_percent": 50})[:90], BOTH),
        (
            line({"used_percent": 50, "window_minutes": 299, "resets_in_seconds": 600}),
            CodexLimits(Limit(50.0, AT_S + 600)),
        ),
        (line(PRIMARY, SECONDARY) + "x" * TAIL, None),
        (line(PRIMARY, SECONDARY) + '{"rate_limits":{' + "[" * 5000 + "\n", BOTH),
    ],
)
def test_the_last_line_counts(tmp_path: Path, text: str, found: CodexLimits | None) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_text(text)
    assert read_limits(path) == found


def test_a_rollout_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "none.jsonl") is None
