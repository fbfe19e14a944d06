"""Reads what Codex's requests have used from its rollouts.

Measured with 0.171.0: a `token_usage_record` for each answer, with the response's id, compactions
among them, and behind it a `token_count` with the running totals. A try that broke off has the
`token_count` alone, and its turn goes on; one that was refused (500) has nothing. The request for a
thread's title is in no rollout. A fork names its parent, and goes on with its totals. An agent that
is spawned is a thread of its own: its rollout begins with `session_id` as the id of the first
thread, and `source.subagent`; the answer to the call `spawn_agent` has its id. It gets no title.
Earlier versions have only `token_count`, and their forks begin with the lines of their parents: https://github.com/ryoppippi/ccusage/issues/1349.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from sm.base.decoder import find_decoder
from sm.base.foreign import read_time
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    Before,
    Certainty,
    Count,
    Found,
    LedgerEntry,
    RecordReader,
    Settled,
    Tokens,
    Total,
)

MARKS = tuple(
    f'"{word}"'.encode()
    for word in (
        *("session_meta", "turn_context", "token_usage_record", "token_count"),
        *("task_started", "task_complete", "compacted", "spawn_agent"),
    )
)
REPLAY_S = 2.0
"""A fork writes the lines of its parent within so long of its beginning."""
END = ".jsonl"
ANSWER = b'"function_call_output"'
HEAD = 256 * 1024
"""Bytes of a rollout's first line, which has all of the instructions in it."""
TITLES_SINCE = (0, 169)
"""Version from which on a new thread is given a title, by a request of its own."""
DAY = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2}")
VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")


RECORDS_SINCE = (0, 171)
"""Version since which, at least, each request has a line of its own: the oldest that was tried."""
RECORD, TOTALS = b'"token_usage_record"', b'"total_token_usage"'


class _Usage(Struct):
    input_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_write_input_tokens: Count = 0
    output_tokens: Count = 0


class _Totals(Struct):
    input_tokens: Total = 0
    cached_input_tokens: Total = 0
    output_tokens: Total = 0


class _Info(Struct):
    total_token_usage: _Totals | None = None
    last_token_usage: _Usage | None = None


class _RolloutPayload(Struct):
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
    session_id: str | None = ""
    parent_thread_id: str | None = ""
    output: Any = None
    source: Any = None
    usage: _Usage | None = None
    info: _Info | None = None


class _RolloutLine(Struct):
    type: str = ""
    timestamp: str = ""
    payload: _RolloutPayload | None = None


class _Spawned(Struct):
    agent_id: str


_lines = find_decoder(_RolloutLine)
_spawned = find_decoder(_Spawned)


def read(before: Before, line: bytes) -> tuple[Before, Found]:
    """Read what a line says, after those before."""
    if not any(mark in line for mark in MARKS) and not (before.spawning and ANSWER in line):
        return before, ()
    try:
        found = _lines.decode(line)
        at = read_time(found.timestamp)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        is_count = line.startswith(b"{") and (RECORD in line or TOTALS in line)
        return before, (_make_unread(before, line),) if is_count else ()
    if found.payload is None:
        return before, ()
    kind = found.payload.type if found.type in ("event_msg", "response_item") else found.type
    step = _STEPS.get(kind or "")
    return step(before, found.payload, at) if step else (before, ())


def _begin(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """The first line names the thread; a fork of old repeats that of its parent."""
    if before.thread or not payload.id:
        return before, ()
    parent = payload.forked_from_id or ""
    agent = AgentKind.SUBAGENT if _is_subagent(payload) else AgentKind.MAIN
    version = _read_version(payload.cli_version or "")
    now = Before(
        thread=payload.id,
        parent=parent,
        forked_at=at if parent else 0.0,
        agent=agent,
        has_records=version >= RECORDS_SINCE,
    )
    if (
        parent
        or agent is AgentKind.SUBAGENT
        or payload.originator != "codex-tui"
        or version < TITLES_SINCE
    ):
        return now, ()
    title = LedgerEntry(
        key=f"title:{payload.id}",
        at=at,
        context=payload.id,
        agent=AgentKind.TITLE,
        certainty=Certainty.UNKNOWN,
    )
    return now, (title,)


def _is_subagent(payload: _RolloutPayload) -> bool:
    return isinstance(payload.source, dict) and "subagent" in payload.source


def _read_version(version: str) -> tuple[int, int]:
    found = VERSION.match(version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _choose_model(before: Before, payload: _RolloutPayload, _at: float) -> tuple[Before, Found]:
    return structs.replace(before, model=payload.model or before.model), ()


def _begin_turn(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """A turn that never ends has had a request of which no line tells."""
    if not payload.turn_id:
        return before, ()
    begun = _make_unknown(before, f"begun:{payload.turn_id}", at, before.agent)
    now = structs.replace(before, turn=payload.turn_id, is_recorded=False, broken="")
    return now, (begun,)


def _end_turn(before: Before, payload: _RolloutPayload, _at: float) -> tuple[Before, Found]:
    """All requests of a whole turn have lines of their own, or were found to have broken off."""
    settled = (Settled(f"begun:{payload.turn_id}"),) if payload.turn_id else ()
    return structs.replace(before, turn=""), settled


def _count_response(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    if payload.usage is None or not payload.response_id:
        return before, ()
    entry = _make_entry(before, payload.response_id, at, _split(payload.usage))
    now = structs.replace(before, has_records=True, last=entry, is_recorded=True)
    return now, (entry,)


def _count_totals(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """The totals come after each try: if no request has had its line, it broke off."""
    if not before.has_records:
        return _count_difference(before, payload, at)
    now = structs.replace(before, is_recorded=False)
    if before.is_recorded or not before.turn:
        return now, ()
    now = structs.replace(now, broken=f"broken:{before.thread}:{at:.3f}")
    return now, (_make_unknown(before, now.broken, at, before.agent),)


def _count_difference(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """Count what the running totals have grown by. The totals themselves are the key.

    Those that a fork has from its parent are the parent's.
    """
    info = payload.info
    if info is None or info.total_token_usage is None:
        return before, ()
    total = info.total_token_usage
    totals = (total.input_tokens, total.cached_input_tokens, total.output_tokens)
    if totals == before.totals:
        return before, ()
    now = structs.replace(before, totals=totals)
    grown = [new - old for new, old in zip(totals, before.totals or (0, 0, 0), strict=True)]
    if before.totals is None or min(grown) < 0:
        first = _Usage(total.input_tokens, total.cached_input_tokens, 0, total.output_tokens)
        usage = info.last_token_usage or first
    else:
        usage = _Usage(input_tokens=grown[0], cached_input_tokens=grown[1], output_tokens=grown[2])
    is_parents = before.parent and at <= before.forked_at + REPLAY_S
    thread = before.parent if is_parents else before.thread
    key = f"{thread}:{'/'.join(map(str, totals))}"
    entry = structs.replace(_make_entry(before, key, at, _split(usage)), context=thread)
    return now, (entry,)


def _compact(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """The answer before was that of the compaction; earlier versions count none.

    The totals are written once more before that answer, and once more behind this line.
    """
    settled = (Settled(before.broken),) if before.broken else ()
    now = structs.replace(before, broken="", is_recorded=True)
    last = before.last
    if last and payload.compaction_response_id in (None, "", last.key):
        return now, (*settled, structs.replace(last, agent=AgentKind.COMPACTION))
    key = f"compaction:{before.thread}:{at:.3f}"
    return now, (*settled, _make_unknown(before, key, at, AgentKind.COMPACTION))


def _call_tool(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """A subagent is a thread of its own, of which nothing is known yet."""
    if payload.name != "spawn_agent" or not payload.call_id:
        return before, ()
    now = structs.replace(before, spawning=(*before.spawning, payload.call_id))
    key = f"agent:{before.thread}:{payload.call_id}"
    return now, (_make_unknown(before, key, at, AgentKind.SUBAGENT),)


def _answer_call(before: Before, payload: _RolloutPayload, at: float) -> tuple[Before, Found]:
    """Now its id is known, or that there is none; its own requests settle the rest."""
    call = payload.call_id or ""
    if call not in before.spawning:
        return before, ()
    left = tuple(one for one in before.spawning if one != call)
    settled = Settled(f"agent:{before.thread}:{call}")
    now = structs.replace(before, spawning=left)
    try:
        agent = _spawned.decode(str(payload.output)).agent_id
    except (msgspec.MsgspecError, RecursionError):
        return now, (settled,)  # it was refused
    return now, (settled, _make_unknown(before, f"agent:{agent}", at, AgentKind.SUBAGENT))


_STEPS = {
    "session_meta": _begin,
    "turn_context": _choose_model,
    "task_started": _begin_turn,
    "task_complete": _end_turn,
    "token_usage_record": _count_response,
    "token_count": _count_totals,
    "compacted": _compact,
    "function_call": _call_tool,
    "function_call_output": _answer_call,
}


def _make_entry(before: Before, key: str, at: float, tokens: Tokens) -> LedgerEntry:
    return LedgerEntry(
        key=key,
        at=at,
        context=before.thread,
        agent=before.agent,
        model=before.model,
        tokens=tokens,
        settles=f"agent:{before.thread}" if before.agent is AgentKind.SUBAGENT else "",
    )


def _make_unknown(before: Before, key: str, at: float, agent: AgentKind) -> LedgerEntry:
    return LedgerEntry(
        key=key,
        at=at,
        context=before.thread,
        agent=agent,
        model=before.model,
        certainty=Certainty.UNKNOWN,
    )


def _make_unread(before: Before, line: bytes) -> LedgerEntry:
    """A count in words that we do not know: what the request has used is not, either."""
    name = hashlib.sha256(line).hexdigest()[:24]
    return _make_unknown(before, f"unread:{name}", 0.0, before.agent)


def _split(usage: _Usage) -> Tokens:
    """Codex counts what was read from the cache, and written to it, within the input."""
    cached, written = usage.cached_input_tokens, usage.cache_write_input_tokens
    return Tokens(
        input=max(usage.input_tokens - cached - written, 0),
        output=usage.output_tokens,
        cache_read=cached,
        cache_write_5m=written,
    )


def list_files(conversation: Path, ident: str) -> Iterator[Path]:
    """The rollout, and those of its agents: they are in the folder of the day of their beginning.

    The ids of threads have the time in front, and agents begin after their thread.
    """
    yield conversation
    if not ident or not DAY.fullmatch("/".join(conversation.parts[-4:-1])):
        return
    for folder in _list_days(conversation.parent):
        for name in sorted(next(os.walk(folder), ("", [], []))[2]):
            if name.endswith(END) and name[-len(ident) - len(END) : -len(END)] > ident:
                path = os.path.join(folder, name)  # noqa: PTH118 - 10 times as fast, in each pass
                with contextlib.suppress(OSError, ValueError, RecursionError):
                    if _read_root(path) == ident:
                        yield Path(path)


def _list_days(first: Path) -> Iterator[Path]:
    """The folder of a day, and those of all days after it."""
    root = first.parents[2]
    for year in _list_from(root, first.parts[-3]):
        for month in _list_from(year, first.parts[-2] if year == first.parents[1] else ""):
            yield from _list_from(month, first.name if month == first.parent else "")


def _list_from(folder: Path, name: str) -> list[Path]:
    _, folders, _ = next(os.walk(folder), ("", [], []))
    return [folder / one for one in sorted(folders) if one >= name and one.isdigit()]


@lru_cache(maxsize=4096)
def _read_root(path: str) -> str:
    """The thread for which, in the end, an agent works whose rollout this is; '' of others.

    Raises:
        OSError: it cannot be read.
        ValueError: its first line is not whole yet.

    """
    with open(path, "rb", opener=_open_nonblocking) as file:  # a FIFO would wait
        found = _lines.decode(file.readline(HEAD)).payload
    if found is None or not _is_subagent(found):
        return ""
    return found.session_id or found.parent_thread_id or ""


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def find_other(_conversation: Path, _ident: str) -> Path | None:
    """A rollout's name has the time of its beginning, which no hook tells."""
    return None


def find_history(_conversation: Path) -> Path | None:
    """Return no history: what people type leads to no request beside the rollout."""
    return None


def read_history(_line: bytes) -> LedgerEntry | None:
    """See `find_history`."""
    return None


READER = RecordReader(list_files, find_other, read, find_history, read_history, has_accounts=False)
