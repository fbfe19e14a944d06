"""Reads what Codex's requests have used from its rollouts.

Measured with 0.171.0: a `token_usage_record` for each answer, with the response's id, compactions
among them; `token_count` repeats the running totals as it likes. The request for a thread's title
is in no rollout. A fork names its parent, and goes on with its totals. Earlier versions have only
`token_count`, and their forks begin with the lines of their parents: https://github.com/ryoppippi/ccusage/issues/1349.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from sm.adapters.agent.spending import (
    Agent,
    Before,
    Certainty,
    Entry,
    Found,
    Reader,
    Settled,
    Tokens,
)
from sm.base.foreign import read_time

MARKS = tuple(
    f'"{word}"'.encode()
    for word in (
        *("session_meta", "turn_context", "token_usage_record", "token_count"),
        *("task_started", "task_complete", "compacted", "spawn_agent"),
    )
)
REPLAY_S = 2.0
"""A fork writes the lines of its parent within so long of its beginning."""
TITLES_SINCE = (0, 169)
"""From this version on a new thread is given a title, by a request of its own."""
VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")


class _Usage(Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0


class _Info(Struct):
    total_token_usage: _Usage | None = None
    last_token_usage: _Usage | None = None


class _Payload(Struct):
    type: str | None = ""
    id: str | None = ""
    model: str | None = ""
    name: str | None = ""
    call_id: str | None = ""
    turn_id: str | None = ""
    response_id: str | None = ""
    compaction_response_id: str | None = ""
    forked_from_id: str | None = ""
    originator: str | None = ""
    cli_version: str | None = ""
    source: Any = None
    usage: _Usage | None = None
    info: _Info | None = None


class _Line(Struct):
    type: str = ""
    timestamp: str = ""
    payload: _Payload | None = None


_lines = msgspec.json.Decoder(_Line)


def read(before: Before, line: bytes) -> tuple[Before, Found]:
    """What a line says, after those before."""
    if not any(mark in line for mark in MARKS):
        return before, ()
    try:
        found = _lines.decode(line)
        at = read_time(found.timestamp)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return before, ()
    if found.payload is None:
        return before, ()
    kind = found.payload.type if found.type in ("event_msg", "response_item") else found.type
    step = _STEPS.get(kind or "")
    return step(before, found.payload, at) if step else (before, ())


def _begin(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    """The first line names the thread; a fork of old repeats that of its parent."""
    if before.thread or not payload.id:
        return before, ()
    parent = payload.forked_from_id or ""
    is_subagent = isinstance(payload.source, dict) and "subagent" in payload.source
    agent = Agent.SUBAGENT if is_subagent else Agent.MAIN
    now = Before(payload.id, parent, at if parent else 0.0, agent=agent)
    if parent or payload.originator != "codex-tui" or not _gives_titles(payload.cli_version or ""):
        return now, ()
    title = Entry(
        key=f"title:{payload.id}",
        at=at,
        context=payload.id,
        agent=Agent.TITLE,
        certainty=Certainty.UNKNOWN,
    )
    return now, (title,)


def _gives_titles(version: str) -> bool:
    found = VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= TITLES_SINCE


def _choose_model(before: Before, payload: _Payload, _at: float) -> tuple[Before, Found]:
    return structs.replace(before, model=payload.model or before.model), ()


def _begin_turn(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    """A turn that never ends has had a request of which no line tells."""
    if not payload.turn_id:
        return before, ()
    begun = _make_unknown(before, f"begun:{payload.turn_id}", at, before.agent)
    return before, (begun,)


def _end_turn(before: Before, payload: _Payload, _at: float) -> tuple[Before, Found]:
    return before, ((Settled(f"begun:{payload.turn_id}"),) if payload.turn_id else ())


def _count_response(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    if payload.usage is None or not payload.response_id:
        return before, ()
    entry = _make_entry(before, payload.response_id, at, _split(payload.usage))
    return structs.replace(before, has_records=True, last=entry), (entry,)


def _count_difference(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    """What the running totals have grown by. The totals themselves are the key.

    Those that a fork has from its parent are the parent's.
    """
    info = payload.info
    if before.has_records or info is None or info.total_token_usage is None:
        return before, ()
    total = info.total_token_usage
    totals = (total.input_tokens, total.cached_input_tokens, total.output_tokens)
    if totals == before.totals:
        return before, ()
    now = structs.replace(before, totals=totals)
    grown = [new - old for new, old in zip(totals, before.totals or (0, 0, 0), strict=True)]
    if before.totals is None or min(grown) < 0:
        usage = info.last_token_usage or total
    else:
        usage = _Usage(input_tokens=grown[0], cached_input_tokens=grown[1], output_tokens=grown[2])
    is_parents = before.parent and at <= before.forked_at + REPLAY_S
    thread = before.parent if is_parents else before.thread
    key = f"{thread}:{'/'.join(map(str, totals))}"
    entry = structs.replace(_make_entry(before, key, at, _split(usage)), context=thread)
    return now, (entry,)


def _compact(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    """The answer before was that of the compaction; earlier versions count none."""
    last = before.last
    if last and payload.compaction_response_id in (None, "", last.key):
        return before, (structs.replace(last, agent=Agent.COMPACTION),)
    key = f"compaction:{before.thread}:{at:.3f}"
    return before, (_make_unknown(before, key, at, Agent.COMPACTION),)


def _call_tool(before: Before, payload: _Payload, at: float) -> tuple[Before, Found]:
    """A subagent is a thread of its own, with a rollout that the session does not know of."""
    if payload.name != "spawn_agent":
        return before, ()
    key = f"agent:{before.thread}:{payload.call_id}"
    return before, (_make_unknown(before, key, at, Agent.SUBAGENT),)


_STEPS = {
    "session_meta": _begin,
    "turn_context": _choose_model,
    "task_started": _begin_turn,
    "task_complete": _end_turn,
    "token_usage_record": _count_response,
    "token_count": _count_difference,
    "compacted": _compact,
    "function_call": _call_tool,
}


def _make_entry(before: Before, key: str, at: float, tokens: Tokens) -> Entry:
    return Entry(
        key=key,
        at=at,
        context=before.thread,
        agent=before.agent,
        model=before.model,
        tokens=tokens,
    )


def _make_unknown(before: Before, key: str, at: float, agent: Agent) -> Entry:
    return Entry(
        key=key,
        at=at,
        context=before.thread,
        agent=agent,
        model=before.model,
        certainty=Certainty.UNKNOWN,
    )


def _split(usage: _Usage) -> Tokens:
    """Codex counts what was read from the cache, and written to it, within the input."""
    cached, written = usage.cached_input_tokens, usage.cache_write_input_tokens
    return Tokens(
        input=max(usage.input_tokens - cached - written, 0),
        output=usage.output_tokens,
        cache_read=cached,
        cache_write_5m=written,
    )


def list_files(conversation: Path, _ident: str) -> Iterator[Path]:
    """The rollout."""
    yield conversation


def find_other(_conversation: Path, _ident: str) -> Path | None:
    """A rollout's name has the time of its beginning, which no hook tells."""
    return None


READER = Reader(list_files, find_other, read)
