"""What is read from the files that an agent's hooks leave."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sm.sessions import agent_state, turn
from sm.sessions.failure import SLACK_S, FailureCause
from sm.sessions.signs import Signs
from sm.sessions.turn import read_question
from sm.store.paths import Root, SessionDir

NOW = 1_795_276_800.0
CONTEXT, PROMPT = "c1", "p1"


@pytest.fixture
def directory(root: Root) -> SessionDir:
    found = root.session("dev-harb-1")
    found.path.mkdir(parents=True, mode=0o700)
    return found


def read(directory: SessionDir) -> Signs:
    return turn.read(directory, agent_state.read(directory))


def put(path: Path, at: float = NOW, **payload: object) -> None:
    """A hook's payload of the current turn, written at that moment."""
    path.write_text(json.dumps({"session_id": CONTEXT, "prompt_id": PROMPT} | payload))
    path.chmod(0o600)
    os.utime(path, (at, at))


def is_at(directory: SessionDir, state: str, since: float = NOW) -> None:
    directory.state.write_text(f"{state} {since:.6f} {CONTEXT} {PROMPT}      \n")
    directory.state.chmod(0o600)


def happened(directory: SessionDir, *events: str) -> None:
    directory.events.write_text("".join(f"{event}\n" for event in events))
    directory.events.chmod(0o600)


def fails(directory: SessionDir, error: str, said: str = "", state: str = "limited") -> None:
    put(directory.failure, error=error, last_assistant_message=said)
    is_at(directory, state)


def test_an_agent_that_never_spoke_gives_no_sign(directory: SessionDir) -> None:
    found = read(directory)
    assert (found.doing, found.active_at, found.ended_at) == ("", 0.0, None)
    assert (found.dialog_at, found.failure) == (None, None)


def test_a_turn_has_ended_when_its_own_stop_says_so(directory: SessionDir) -> None:
    put(directory.stop_payload)
    is_at(directory, "idle")
    assert read(directory).ended_at == NOW


def test_a_turn_of_codex_has_ended_too(directory: SessionDir) -> None:
    directory.stop_payload.write_text(json.dumps({"session_id": CONTEXT, "turn_id": PROMPT}))
    directory.stop_payload.chmod(0o600)
    is_at(directory, "idle")
    assert read(directory).ended_at == NOW
    directory.stop_payload.write_text(json.dumps({"session_id": CONTEXT, "turn_id": "p0"}))
    assert read(directory).ended_at is None


@pytest.mark.parametrize("state", ["busy", "waiting", "dialog", "starting", "dead"])
def test_a_turn_that_goes_on_has_not_ended(directory: SessionDir, state: str) -> None:
    put(directory.stop_payload)
    is_at(directory, state)
    assert read(directory).ended_at is None


@pytest.mark.parametrize("other", [{"prompt_id": "p0"}, {"session_id": "c0"}])
def test_the_end_of_another_turn_is_not_that_of_this_one(
    directory: SessionDir, other: dict[str, Any]
) -> None:
    put(directory.stop_payload, **other)
    put(directory.failure, error="rate_limit", **other)
    is_at(directory, "idle")
    assert read(directory).ended_at is None
    assert read(directory).failure is None


def test_who_waits_for_a_timer_of_its_own_has_not_ended_unless_it_asks(
    directory: SessionDir,
) -> None:
    timer = {"id": "c1", "schedule": "7 3 * * *", "recurring": False, "prompt": "go on"}
    is_at(directory, "idle")
    put(directory.stop_payload, at=NOW, session_crons=[timer])
    assert (read(directory).sleeps, read(directory).ended_at) == (True, None)
    said = "Which colour do you want?"
    put(directory.stop_payload, at=NOW, session_crons=[timer], last_assistant_message=said)
    assert (read(directory).sleeps, read(directory).asks) == (False, said)
    assert read(directory).ended_at == NOW


def test_any_hook_is_a_sign_of_life(directory: SessionDir) -> None:
    happened(directory, "1.0 PostToolUse c1 Bash")
    at = time.time() - 60
    os.utime(directory.events, (at, at))
    assert read(directory).active_at == pytest.approx(at)
    os.utime(directory.events, (at + 1e6, at + 1e6))
    assert read(directory).active_at <= time.time()


def test_a_dialog_is_open_since_its_state(directory: SessionDir) -> None:
    is_at(directory, "dialog")
    assert read(directory).dialog_at == NOW


def test_a_limit_lasts_until_the_status_line_says(directory: SessionDir) -> None:
    directory.usage.write_text(f"{NOW} c1 50 200000 100 {NOW + 7200:.0f} 10 {NOW + 9e4:.0f}\n")
    directory.usage.chmod(0o600)
    fails(directory, "rate_limit", "You've hit your limit · resets 3pm")
    failure = read(directory).failure
    assert failure is not None
    assert failure.fault is FailureCause.LIMIT
    assert failure.until == NOW + 7200 + SLACK_S


def test_a_failure_that_the_hook_calls_idle_is_one_all_the_same(directory: SessionDir) -> None:
    put(directory.stop_payload, at=NOW - 10)
    fails(directory, "invalid_request", "Prompt is too long", state="idle")
    found = read(directory)
    assert found.ended_at is None
    assert found.failure is not None
    assert found.failure.fault is FailureCause.CONVERSATION


def test_a_turn_that_ended_well_after_a_failure_has_ended(directory: SessionDir) -> None:
    fails(directory, "unknown", state="idle")
    put(directory.stop_payload, at=NOW + 1)
    assert read(directory).failure is None
    assert read(directory).ended_at == NOW


def test_failures_between_which_nothing_was_done_are_counted(directory: SessionDir) -> None:
    happened(
        directory,
        f"{NOW - 900} StopFailure c1 server_error",
        f"{NOW - 800} PostToolUse c1 Bash",
        f"{NOW - 600} StopFailure c1 server_error",
        f"{NOW - 500} UserPromptSubmit c1 -",
        "garbage",
        f"{NOW - 450} Stop c0 stale",
        f"{NOW - 400} StopFailure c1 overloaded",
        f"{NOW - 300} UserPromptSubmit c1 -",
        f"{NOW} StopFailure c1 server_error",
    )
    fails(directory, "server_error")
    failure = read(directory).failure
    assert failure is not None
    assert (failure.count, failure.since, failure.until) == (3, NOW - 600, NOW + 240)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00", '{"error": 3}', "\xff"])
def test_damaged_files_are_trouble_that_may_pass(directory: SessionDir, content: str) -> None:
    for path in (directory.failure, directory.stop_payload, directory.usage, directory.events):
        path.write_bytes(content.encode("latin-1"))
        path.chmod(0o600)
    is_at(directory, "limited")
    failure = read(directory).failure
    assert failure is not None
    assert (failure.fault, failure.until) == (FailureCause.SERVICE, NOW + 60)
    is_at(directory, "idle")
    assert read(directory).ended_at is None


def test_the_question_of_a_dialog_is_shown_without_secrets_or_escapes(
    directory: SessionDir,
) -> None:
    put(
        directory.dialog, tool_name="Bash", tool_input={"command": "x --password=hunter2222\x1b[2J"}
    )
    shown = read_question(directory)
    assert shown.startswith("Bash\n{")
    assert "hunter2222" not in shown
    assert "\x1b" not in shown
    put(directory.dialog, message="needs your permission")
    assert read_question(directory) == "needs your permission"
    assert read_question(directory, "Do you want to proceed?") == "Do you want to proceed?"
    put(directory.dialog, tool_name="Write", tool_input={"text": "a" * 10**6})
    assert len(read_question(directory)) < turn.QUESTION_LIMIT + 10


def test_a_payload_that_is_just_being_written_is_read_again(
    directory: SessionDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(directory.stop_payload)
    is_at(directory, "idle")
    whole, reads = directory.stop_payload.read_text(), []

    def writer_goes_on(seconds: float) -> None:
        reads.append(seconds)
        directory.stop_payload.write_text(whole)

    directory.stop_payload.write_text(whole[:20])
    monkeypatch.setattr(time, "sleep", writer_goes_on)
    assert read(directory).ended_at == NOW
    assert len(reads) == 1
