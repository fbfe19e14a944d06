"""Reads what Claude Code's requests have used from its transcripts.

Measured with 2.1.332, unless said: a line `api-request` as a request begins; a line for each block
of the answer, all with the same `requestId`, with the `id` of the first as `requestRef`. It may
stand before the line of its own request. An answer that was cut off has lines without a reason why
it stopped. A failed try has a line `api-request` and no answer; the next try has the same digest. A
fork copies the answers of its parent with their ids, under an id of its own. A compaction leaves a
`compact_boundary` and no more.

At its end (`/exit`, TERM, HUP, INT, its pane is killed, but not KILL), and at `/clear`, a process
writes a line `cost-state`, mostly twice: what it has counted in that context, compactions and its
own small requests included. With `--resume` it goes on from the last such line; a fork goes on from
its parent's. An interrupted answer is in it with its input, and with an estimate of its output.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from sm.adapters.agent.spending import (
    FAILED,
    Account,
    Agent,
    Before,
    Certainty,
    Entry,
    Figure,
    Found,
    Reader,
    Settled,
    Tokens,
)
from sm.base.decoding import find_decoder
from sm.base.foreign import read_time

MARKS = (b'"usage"', b'"api-request"', b'"compact_boundary"')
"""What a line that concerns us has in it."""
ACCOUNT, BEGINNING = b'"cost-state"', slice(0, 32)
"""Where an account says what it is: most lines are long, and need not be searched for that."""
AGENT = re.compile(r"agent-[^/]*\.jsonl")
HEAD = 16 * 1024
"""Bytes of a first line, which has its session's id at its beginning."""
OWN = "<synthetic>"
"""The model of what the client has written by itself."""
FAST = "fast"
"""A speed that costs more, of which there is no list price."""


class _Written(Struct):
    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class _Served(Struct):
    web_search_requests: int | None = 0


class _Counts(Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_creation: _Written | None = None


class _Usage(_Counts):
    server_tool_use: _Served | None = None
    iterations: list[_Counts] | None = None
    speed: str | None = ""


class _Message(Struct):
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Params(Struct):
    model: str = ""


class _Kind(Struct):
    type: str = ""
    subtype: str | None = ""


class _Line(_Kind, rename="camel"):
    timestamp: str = ""
    session_id: str = ""
    uuid: str | None = ""
    id: str = ""
    request_id: str | None = ""
    request_ref: str | None = ""
    is_sidechain: bool | None = False
    agent_id: str | None = ""
    query_source: str | None = ""
    request_digest: str | None = ""
    params: _Params | None = None
    message: _Message | None = None


class _Counted(Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    an_hour: int = field(name="cacheCreationEphemeral1hInputTokens", default=0)
    web_search_requests: int = 0
    cost: float | None = field(name="costUSD", default=None)


class _Account(Struct, rename="camel"):
    session_id: str
    start_time: float = 0.0
    model_usage: dict[str, _Counted] = {}
    has_unknown_model_cost: bool = False


_kinds = find_decoder(_Kind)
_lines = find_decoder(_Line)
_accounts = find_decoder(_Account)


def read(before: Before, line: bytes) -> tuple[Before, Found]:
    """What a line says; of those before only the last request matters."""
    if ACCOUNT in line[BEGINNING]:
        return before, _read_account(before, line)
    if not any(mark in line for mark in MARKS):
        return before, ()
    try:
        kind = _kinds.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return before, ()  # half a line, or none of the client's
    step = {"assistant": _read_answer, "api-request": _read_begun}.get(kind.type)
    if kind.subtype == "compact_boundary":
        step = _read_compaction
    if step is None:
        return before, ()
    try:
        return step(before, _lines.decode(line))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return before, (_make_unread(line),)


def _read_account(before: Before, line: bytes) -> tuple[Account, ...]:
    try:
        found = _accounts.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ()  # it is a second witness at best
    models = {
        model: _make_figure(counted, not found.has_unknown_model_cost)
        for model, counted in found.model_usage.items()
    }
    if not models or not before.at:
        return ()
    return (Account(found.session_id, before.at, found.start_time / 1000, models),)


def _make_figure(counted: _Counted, is_priced: bool) -> Figure:
    tokens = Tokens(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_input_tokens,
        counted.cache_creation_input_tokens - counted.an_hour,
        counted.an_hour,
        counted.web_search_requests,
    )
    return Figure(tokens, counted.cost if is_priced else None)


def _read_answer(before: Before, line: _Line) -> tuple[Before, Found]:
    message = line.message
    if message is None or message.usage is None or message.model == OWN:
        return before, ()
    model = f"{message.model} [{FAST}]" if message.usage.speed == FAST else message.model
    begun = ("", "") if line.request_ref == before.begun[0] else before.begun
    entry = Entry(
        key=line.request_id or f"{line.session_id}/{message.id}",
        at=read_time(line.timestamp),
        context=line.session_id,
        agent=_find_agent(line),
        model=model,
        tokens=_add_up(message.usage),
        certainty=Certainty.WHOLE if message.stop_reason else Certainty.AT_LEAST,
        settles=_name_begun(line.request_ref) if line.request_ref else "",
    )
    return _go_on(before, entry.at, begun), (entry,)


def _read_begun(before: Before, line: _Line) -> tuple[Before, Found]:
    """A request like the one before, which has no answer, is the next try of the same."""
    entry = Entry(
        key=_name_begun(line.id),
        at=read_time(line.timestamp),
        context=line.session_id,
        agent=_find_agent(line),
        model=line.params.model if line.params else "",
        certainty=Certainty.UNKNOWN,
    )
    last, digest = before.begun
    now = _go_on(before, entry.at, (line.id, line.request_digest or ""))
    if not digest or digest != line.request_digest:
        return now, (entry,)
    failed = structs.replace(entry, key=f"{FAILED}{last}", at=before.at)
    return now, (Settled(_name_begun(last)), failed, entry)


def _read_compaction(before: Before, line: _Line) -> tuple[Before, Found]:
    entry = Entry(
        key=f"compaction:{line.uuid}",
        at=read_time(line.timestamp),
        context=line.session_id,
        agent=Agent.COMPACTION,
        certainty=Certainty.UNKNOWN,
    )
    return _go_on(before, entry.at, before.begun), (entry,)


def _go_on(before: Before, at: float, begun: tuple[str, str]) -> Before:
    return structs.replace(before, at=max(before.at, at), begun=begun)


def _make_unread(line: bytes) -> Entry:
    """An answer in words that we do not know: what it has used is not, either."""
    name = hashlib.sha256(line).hexdigest()[:24]
    return Entry(key=f"unread:{name}", at=0.0, context="", certainty=Certainty.UNKNOWN)


def _name_begun(ident: str | None) -> str:
    return f"begun:{ident}"


def _find_agent(line: _Line) -> Agent:
    if (line.query_source or "").startswith("compact"):
        return Agent.COMPACTION
    return Agent.SUBAGENT if line.is_sidechain or line.agent_id else Agent.MAIN


def _add_up(usage: _Usage) -> Tokens:
    """The tokens of an answer.

    An answer in which the API itself has gone on has counts for each part, and the first of them
    need not be in those of the whole; unproven, so whichever is more counts.
    """
    whole = _count(usage)
    parts = [_count(one) for one in usage.iterations or ()]
    searches = (usage.server_tool_use.web_search_requests if usage.server_tool_use else 0) or 0
    most = [max(one, sum(part[at] for part in parts)) for at, one in enumerate(whole)]
    return Tokens(most[0], most[1], most[2], most[3], most[4], searches)


def _count(counts: _Counts) -> tuple[int, int, int, int, int]:
    """Input, output, cache reads, and cache writes of both kinds.

    Older clients have only the sum of the writes; five minutes are the API's default.
    """
    written = counts.cache_creation or _Written()
    an_hour = written.ephemeral_1h_input_tokens
    minutes = max(
        written.ephemeral_5m_input_tokens, (counts.cache_creation_input_tokens or 0) - an_hour
    )
    return (
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cache_read_input_tokens or 0,
        minutes,
        an_hour,
    )


def list_files(conversation: Path, ident: str) -> Iterator[Path]:
    """The transcript, and those of its subagents, however deep.

    Earlier clients kept those of subagents beside it; the first line says whose they are.
    """
    yield conversation
    for folder, _, names in os.walk(conversation.with_suffix("")):
        yield from (Path(folder, name) for name in sorted(names) if AGENT.fullmatch(name))
    for _, _, names in itertools.islice(os.walk(conversation.parent), 1):
        for name in sorted(filter(AGENT.fullmatch, names)):
            if _begins_with(beside := conversation.with_name(name), ident):
                yield beside


def _begins_with(path: Path, ident: str) -> bool:
    try:
        with path.open("rb") as file:
            return bool(ident) and ident.encode() in file.readline(HEAD)
    except OSError:
        return False


def find_other(conversation: Path, ident: str) -> Path | None:
    """The transcripts of a directory lie beside each other."""
    return conversation.with_name(f"{ident}.jsonl")


READER = Reader(list_files, find_other, read)
