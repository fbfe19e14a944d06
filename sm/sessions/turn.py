"""Reads from the agent's hooks whether its turn is over, a dialog is open, or a turn failed."""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sm.base.decoder import find_decoder
from sm.base.errors import StateError
from sm.base.foreign import read_seconds
from sm.base.redact import redact
from sm.base.text import normalise, printable
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import Failure, judge, parse_usage
from sm.sessions.question import find_question
from sm.sessions.signs import PATIENCE_S, Signs
from sm.store.bounded import UnboundedError, check_json
from sm.store.files import open_guarded, read_guarded
from sm.store.paths import SessionDir

AGAIN_S, TRIES = 0.005, 10
"""Seconds between two looks, and their number: a hook empties a payload's file, then fills it."""
TAIL_BYTES = 16_384
QUESTION_LIMIT = 2000
NOTICE_LIMIT = 300
ASKS_NOTHING = "bypassPermissions"
"""Mode of Claude Code that asks for no permission."""
WAYS_TO_IT = (b"--dangerously-skip-permissions", ASKS_NOTHING.encode())
"""Arguments with which Claude Code begins in that mode."""
HOOK_S = 5.0
"""Seconds between a hook's payload and the state that it writes after it, at most."""


class Payload(Struct, frozen=True):
    """The parts of a hook's payload that matter here."""

    session_id: str = ""
    prompt_id: str = ""
    turn_id: str = ""
    error: str = ""
    error_details: str = ""
    last_assistant_message: str = ""
    message: str = ""
    permission_mode: str = ""
    tool_name: str = ""
    tool_input: dict[str, Any] = msgspec.field(default_factory=dict)
    session_crons: list[Any] = msgspec.field(default_factory=list)
    """The timers of its own by which the client will begin another turn: `CronCreate`,
    `ScheduleWakeup`, `/loop` (the schema of the Stop hook in Claude Code 2.1.332)."""

    @property
    def turn(self) -> str:
        """The turn's id, which Codex calls differently."""
        return self.prompt_id or self.turn_id

    def is_of(self, state: AgentState) -> bool:
        """Say whether it belongs to the turn of `state`."""
        of_context = state.context in ("", self.session_id)
        return of_context and self.turn == state.prompt


NOTHING = Payload()
PAYLOAD = find_decoder(Payload)


class _TurnFile(Struct, frozen=True):
    payload: Payload
    written_at: float


MISSING = _TurnFile(NOTHING, 0.0)


def read(directory: SessionDir, state: AgentState) -> Signs:
    """Return what the hooks of the session's agent have said so far; `state` is their last word."""
    failure = ended_at = None
    asks, sleeps = "", False
    if state.state in (State.IDLE, State.LIMITED):
        stop, failed = _file(directory.stop_payload, state), _file(directory.failure, state)
        if failed.written_at > stop.written_at or state.state is State.LIMITED:
            failure = _failure(directory, state, failed.payload)
        elif directory.hold.exists():
            pass  # it goes on in a new context
        elif state.shown:  # a person has ended it, and may want to write something
            ended_at = state.since + PATIENCE_S
        elif stop.written_at:
            asks = find_question(stop.payload.last_assistant_message)
            sleeps = bool(stop.payload.session_crons) and not asks
            ended_at = None if sleeps else state.since
    return Signs(
        doing=str(state.state),
        since=state.since,
        context=state.context,
        active_at=min(state.active_at, time.time()),  # the clock may have been set back
        ended_at=ended_at,
        asks=_shorten(asks, QUESTION_LIMIT),
        starting_at=state.since if state.state is State.STARTING else None,
        dialog_at=state.since if state.state is State.DIALOG else None,
        failure=failure,
        sleeps=sleeps,
    )


def read_question(directory: SessionDir, screen: str = "") -> str:
    """Return the question of the last dialog in the terminal, fit for a person.

    `screen` is what the terminal shows of it, for a dialog of which no hook names the tool.
    """
    payload = _load(directory.dialog) or NOTHING
    asked = _shorten(_tell_dialog(payload, screen), QUESTION_LIMIT)
    changed = describe_changed_mode(directory)
    return f"{asked}\n\n({changed})" if changed else asked


def describe_changed_mode(directory: SessionDir) -> str:
    """Say that the agent was started to ask nothing and asks now; '' if neither is known.

    The "yes" to a plan has that effect (Claude Code 2.1.332), and so has Shift+Tab.
    """
    mode = (_load(directory.dialog) or NOTHING).permission_mode
    with contextlib.suppress(StateError):
        started = (read_guarded(directory.launch_argv) or b"").split(b"\0")
        if mode not in ("", ASKS_NOTHING) and any(word in started for word in WAYS_TO_IT):
            now = printable(mode)
            return f"It was started to ask for no permission, and its mode is '{now}' now"
    return ""


def read_last_words(directory: SessionDir, state: AgentState) -> str:
    """Return all that the agent said at the end of the turn of `state`; '' while none has ended."""
    if state.state is not State.IDLE:
        return ""
    return _file(directory.stop_payload, state).payload.last_assistant_message


def read_dialog(directory: SessionDir, state: AgentState) -> str:
    """Return what the dialog of `state` asks, with its choices; '' if no hook has told of it."""
    found = _file(directory.dialog, state)
    # No hook tells of an agent that is starting, and the payload is an earlier dialog's.
    is_of_it = state.state is State.DIALOG and found.written_at >= state.since - HOOK_S
    return _tell_dialog(found.payload) if is_of_it else ""


def _tell_dialog(payload: Payload, screen: str = "") -> str:
    asked = json.dumps(payload.tool_input, indent=2, ensure_ascii=False)
    return f"{payload.tool_name}\n{asked}" if payload.tool_name else screen or payload.message


def read_notice(directory: SessionDir) -> str:
    """Return the agent CLI's own message about its last failure, in one line for a person."""
    payload = _load(directory.failure) or NOTHING
    return " ".join(_shorten(payload.last_assistant_message, NOTICE_LIMIT).split())


def _shorten(text: str, limit: int) -> str:
    clean = normalise(redact(text))
    return clean if len(clean) <= limit else clean[:limit] + " …"


def _file(path: Path, state: AgentState) -> _TurnFile:
    """Return a payload of the turn of `state`, and its time."""
    try:
        written_at = path.lstat().st_mtime
    except OSError:
        return MISSING
    payload = _load(path)
    return _TurnFile(payload, written_at) if payload and payload.is_of(state) else MISSING


def _load(path: Path) -> Payload | None:
    for _ in range(TRIES):
        try:
            data = read_guarded(path)
            return None if data is None else PAYLOAD.decode(check_json(data))
        except StateError:
            return None
        except UnboundedError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            time.sleep(AGAIN_S)
    return None


def _failure(directory: SessionDir, state: AgentState, payload: Payload) -> Failure:
    since, count = _in_a_row(directory, state)
    return judge(
        payload.error,
        f"{payload.last_assistant_message} {payload.error_details}",
        at=state.since,
        since=min(since, state.since),
        count=count,
        usage=parse_usage(_tail(directory.usage)),
        zones=_zone,
    )


def _in_a_row(directory: SessionDir, state: AgentState) -> tuple[float, int]:
    """Return the time of the first of the failures in a row, and their number."""
    since, count = state.since, 0
    for line in reversed(_tail(directory.events).splitlines()):
        words = line.split()
        if len(words) != 4 or words[3] == "stale":
            continue
        if words[2] != (state.context or "-") or words[1] in ("Stop", "PostToolUse"):
            break
        if words[1] == "StopFailure":
            at = read_seconds(words[0])
            since, count = since if at is None else at, count + 1
    return since, max(count, 1)


def _tail(path: Path) -> str:
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            os.lseek(fd, max(0, os.fstat(fd).st_size - TAIL_BYTES), os.SEEK_SET)
            return os.read(fd, TAIL_BYTES).decode("utf-8", "replace")
    except (OSError, StateError):
        return ""


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    if not name:
        return datetime.now().astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
