from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent.codex_rollout import (
    TAIL,
    CodexLimits,
    FailedTurn,
    Limit,
    read_failed_turn,
    read_limits,
)

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


FAILED_AT, SECONDS = "2026-11-30T04:38:23.006Z", 1796013503.006


def write(path: Path, *payloads: dict[str, Any]) -> Path:
    lines = [{"timestamp": FAILED_AT, "type": "event_msg", "payload": one} for one in payloads]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text)
    return path


def begun(turn: str) -> dict[str, Any]:
    return {"type": "task_started", "turn_id": turn}


def make_failed_turn(turn: str, info: object, message: str = "no") -> dict[str, Any]:
    error = {"message": message, "codex_error_info": info}
    return {"type": "task_complete", "turn_id": turn, "error": error}


@pytest.mark.parametrize(
    ("info", "message", "error"),
    [
        ({"http_connection_failed": {"http_status_code": 401}}, "no", "authentication_failed"),
        ({"http_connection_failed": {"http_status_code": 403}}, "no", "authentication_failed"),
        ({"http_connection_failed": {"http_status_code": 402}}, "no", "billing_error"),
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, "no", "rate_limit"),
        ({"http_connection_failed": {"http_status_code": 529}}, "no", "server_error"),
        ({"response_stream_disconnected": {"http_status_code": None}}, "no", "server_error"),
        ("internal_server_error", "high demand", "server_error"),
        ("usage_limit_exceeded", "try again at 3:05 PM", "usage_limit"),
        ("unauthorized", "log in again", "authentication_failed"),
        ("other", '{"error": {"type": "invalid_request_error"}}', "invalid_request"),
        ("other", "what is that", "server_error"),
        (None, "", "server_error"),
        ([1], "", "server_error"),
    ],
)
def test_an_error_has_the_name_that_claude_code_gives_it(
    tmp_path: Path, info: object, message: str, error: str
) -> None:
    rollout = write(tmp_path / "rollout", begun("t1"), make_failed_turn("t1", info, message))
    assert read_failed_turn(rollout, "t1") == FailedTurn("t1", error, message, SECONDS)


def test_a_turn_that_succeeded_or_runs_or_is_another_has_not_failed(tmp_path: Path) -> None:
    info = {"http_connection_failed": {"http_status_code": 401}}
    well = {"type": "task_complete", "turn_id": "t1", "error": None}
    for payloads in (
        (begun("t1"), well),
        (begun("t1"), make_failed_turn("t1", info), begun("t2")),
        (begun("t1"), make_failed_turn("t1", info), begun("t1")),
        (begun("t0"), make_failed_turn("t0", info)),
        (begun("t1"), {"type": "task_complete", "turn_id": "t1"}),
        (),
    ):
        assert read_failed_turn(write(tmp_path / "rollout", *payloads), "t1") is None
    assert read_failed_turn(write(tmp_path / "rollout", make_failed_turn("", info)), "") is None
    assert read_failed_turn(tmp_path / "none", "t1") is None


def test_half_a_line_is_none(tmp_path: Path) -> None:
    rollout = write(tmp_path / "rollout", make_failed_turn("t1", "unauthorized"))
    rollout.write_text(rollout.read_text()[:-9])
    assert read_failed_turn(rollout, "t1") is None
