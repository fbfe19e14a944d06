"""Reads what Claude Code's requests have used from its transcripts.

Measured with 2.1.332, unless said: a line `api-request` as a request begins; a line for each block
of the answer, all with the same `requestId`, with the `id` of the first as `requestRef`. It may
stand before the line of its own request. An answer that was cut off has lines without a reason why
it stopped. One that was cut off behind a whole block has a reason that the client made up, and 1 as
its output; a line of the client's own follows with `streamCutCause`, and `truncatedAfterOutput` if
the block called no tool. A failed try has a line `api-request` and no answer; the next try has the
same digest. A fork copies the answers of its parent with their ids, under an id of its own. A
compaction leaves a `compact_boundary` and no more. Other requests of the client's own leave traces,
too: a call of `WebSearch` or `WebFetch`, a line `ai-title`, and `/btw` a line in `history.jsonl`.

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
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field, structs

from sm.base.decoder import find_decoder
from sm.base.foreign import read_time
from sm.plugins.cost.ledger.records.record import (
    FAILED,
    MOST,
    AgentKind,
    Before,
    Certainty,
    ClientAccount,
    ClientFigure,
    Count,
    Cut,
    Found,
    LedgerEntry,
    RecordReader,
    Settled,
    Tokens,
    Total,
)
from sm.store.files import read_foreign

# The lines that tell what requests used. Any field may be missing. A count above `MOST` is not
# believed, as an agent may have written the file.


class CacheWrites(Struct):
    """Tokens that an answer has written to the cache, by how long that is kept."""

    ephemeral_5m_input_tokens: Count = 0
    ephemeral_1h_input_tokens: Count = 0


class ServedTools(Struct):
    """Calls of tools that the API itself has made for an answer."""

    web_search_requests: Count | None = 0


class TokenCounts(Struct):
    """The counts of an answer, or of a part of it."""

    input_tokens: Count | None = 0
    output_tokens: Count | None = 0
    cache_read_input_tokens: Count | None = 0
    cache_creation_input_tokens: Count | None = 0
    cache_creation: CacheWrites | None = None


class AnswerUsage(TokenCounts):
    """Usage of an answer."""

    server_tool_use: ServedTools | None = None
    iterations: list[TokenCounts] | None = None
    speed: str | None = ""
    inference_geo: str | None = ""


class AnswerMessage(Struct):
    """An answer, or a block of it."""

    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: AnswerUsage | None = None


class RequestParams(Struct):
    """Parameters of a request."""

    model: str = ""


class LineKind(Struct):
    """Kind of a line."""

    type: str = ""
    subtype: str | None = ""


class RequestLine(LineKind, rename="camel"):
    """A line about a request: its beginning, an answer, a compaction, a summary."""

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
    is_api_error_message: bool | None = False
    stream_cut_cause: str | None = ""
    truncated_after_output: bool | None = False
    params: RequestParams | None = None
    message: AnswerMessage | None = None


class TitleLine(Struct, rename="camel"):
    """A line `ai-title`, which has no time."""

    session_id: str = ""


class ContentBlock(Struct):
    """A part of a message."""

    type: str = ""
    name: str | None = ""
    id: str | None = ""
    tool_use_id: str | None = ""


class SpokenMessage(Struct):
    """A message with its parts."""

    content: list[ContentBlock] | str | None = None


class CallingLine(Struct):
    """An answer that may call tools."""

    message: SpokenMessage | None = None


class WebFindings(Struct, rename="camel"):
    """The number of searches of a call of `WebSearch`."""

    search_count: Count = 0


class ToolResultLine(CallingLine, rename="camel"):
    """The answer of a tool."""

    timestamp: str = ""
    session_id: str = ""
    tool_use_result: WebFindings | None = None


class TypedLine(Struct, rename="camel"):
    """A line of what people have typed; its time is in milliseconds."""

    display: str = ""
    timestamp: Annotated[float, Meta(ge=0, le=1e14)] = 0.0
    session_id: str = ""


class CountedModel(Struct, rename="camel"):
    """A process's count with one model."""

    input_tokens: Total = 0
    output_tokens: Total = 0
    cache_read_input_tokens: Total = 0
    cache_creation_input_tokens: Total = 0
    an_hour: Total = field(name="cacheCreationEphemeral1hInputTokens", default=0)
    web_search_requests: Total = 0
    cost: Annotated[float, Meta(ge=0, le=MOST)] | None = field(name="costUSD", default=None)


class ProcessAccount(Struct, rename="camel"):
    """A line `cost-state`."""

    session_id: str
    start_time: float = 0.0
    model_usage: dict[str, CountedModel] = {}
    has_unknown_model_cost: bool = False


MARKS = (
    *(b'"usage"', b'"api-request"', b'"compact_boundary"', b'"away_summary"'),
    *(b'"ai-title"', b'"searchCount"'),
)
"""Words in a line that concerns us."""
ACCOUNT, BEGINNING = b'"cost-state"', slice(0, 32)
"""Bytes within which an account says what it is: most lines are long, and not searched for it."""
AGENT = re.compile(r"agent-[^/]*\.jsonl")
HEAD = 16 * 1024
"""Bytes of a first line, which has its session's id at its beginning."""
OWN = "<synthetic>"
"""The model of what the client has written by itself."""
TITLED = "-"
"""Stands for a title that is an entry already."""
FAST, US = "fast", "us"
"""A speed, and a place of the computation, that cost more."""
TOOLS = {"WebSearch": AgentKind.SEARCH, "WebFetch": AgentKind.FETCH}
"""Tools for which the client asks a model by itself, with the kind of that request."""
CALLS = tuple(f'"{name}"'.encode() for name in TOOLS)
HISTORY = "history.jsonl"
ASIDE, ASIDE_MARK = "/btw ", b'"/btw '

_kinds = find_decoder(LineKind)
_lines = find_decoder(RequestLine)
_accounts = find_decoder(ProcessAccount)
_titled = find_decoder(TitleLine)
_calling = find_decoder(CallingLine)
_results = find_decoder(ToolResultLine)
_typed = find_decoder(TypedLine)

UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)
ANSWER = (b'"assistant"', b'"usage"')
"""Words in an answer, though it may be written so that it cannot be read."""


def read(before: Before, line: bytes) -> tuple[Before, Found]:
    """Read what a line says; of those before only the last request matters."""
    if ACCOUNT in line[BEGINNING]:
        return before, _read_account(before, line)
    if not any(mark in line for mark in MARKS):
        return before, ()
    try:
        kind = _kinds.decode(line)
    except UNREADABLE:
        # Half a line, or none of the client's; or it is not to be read.
        is_answer = line.startswith(b"{") and all(mark in line for mark in ANSWER)
        return before, (_make_unread(line),) if is_answer else ()
    step = _STEPS.get((kind.type, kind.subtype or "")) or _STEPS.get((kind.type, ""))
    if step is None:
        return before, ()
    try:
        return step(before, line)
    except UNREADABLE:
        return before, (_make_unread(line),)


def _read_account(before: Before, line: bytes) -> tuple[ClientAccount, ...]:
    try:
        found = _accounts.decode(line)
    except UNREADABLE:
        return ()  # it is a second witness at best
    models = {
        model: _make_figure(counted, not found.has_unknown_model_cost)
        for model, counted in found.model_usage.items()
    }
    if not models or not before.at:
        return ()
    return (ClientAccount(found.session_id, before.at, found.start_time / 1000, models),)


def _make_figure(counted: CountedModel, is_priced: bool) -> ClientFigure:
    tokens = Tokens(
        counted.input_tokens,
        counted.output_tokens,
        counted.cache_read_input_tokens,
        counted.cache_creation_input_tokens - counted.an_hour,
        counted.an_hour,
        counted.web_search_requests,
    )
    return ClientFigure(tokens, counted.cost if is_priced else None)


def _read_answer(before: Before, data: bytes) -> tuple[Before, Found]:
    line = _lines.decode(data)
    message = line.message
    if message is None or message.usage is None:
        return before, ()
    if message.model == OWN:
        return before, _find_cut(before, line)
    begun = ("", "") if line.request_ref == before.begun[0] else before.begun
    entry = LedgerEntry(
        key=_name_answer(line, message),
        at=read_time(line.timestamp),
        context=line.session_id,
        agent=_find_agent(line),
        model=_name_model(message.model, message.usage),
        tokens=_add_up(message.usage),
        certainty=Certainty.WHOLE if message.stop_reason else Certainty.AT_LEAST,
        settles=_name_begun(line.request_ref) if line.request_ref else "",
    )
    calls = _list_calls(entry, data) if any(call in data for call in CALLS) else ()
    now = structs.replace(_go_on(before, entry.at, begun), answered=entry.key)
    return now, (entry, *calls)


def _name_answer(line: RequestLine, message: AnswerMessage) -> str:
    """A gateway may leave out the request's id, and give many messages the same id.

    So the client's own id of the request goes before the message's, if there is one.
    """
    return line.request_id or f"{line.session_id}/{line.request_ref or message.id}"


def _name_model(model: str, usage: AnswerUsage) -> str:
    """The model, with all that makes it cost more."""
    kinds = (FAST if usage.speed == FAST else "", US if usage.inference_geo == US else "")
    return "".join((model, *(f" [{kind}]" for kind in kinds if kind)))


def _find_cut(before: Before, line: RequestLine) -> tuple[Cut, ...]:
    """The client has noted that the answer before broke off: the end that it has is made up."""
    is_cut = line.is_api_error_message and (line.stream_cut_cause or line.truncated_after_output)
    return (Cut(before.answered),) if is_cut and before.answered else ()


def _list_calls(answer: LedgerEntry, data: bytes) -> Iterator[LedgerEntry]:
    """Calls of tools for which the client asks a model by itself: nothing here counts that."""
    spoken = _calling.decode(data).message
    for block in spoken.content if spoken and isinstance(spoken.content, list) else ():
        if block.type == "tool_use" and block.id and (kind := TOOLS.get(block.name or "")):
            yield _make_own(kind, block.id, answer.at, answer.context)


def _make_own(
    kind: AgentKind, ident: str, at: float, context: str, searches: int = 0
) -> LedgerEntry:
    """A request of the client's own, of which no more is known than that it was made."""
    return LedgerEntry(
        key=f"{kind}:{ident}",
        at=at,
        context=context,
        agent=kind,
        tokens=Tokens(searches=searches),
        certainty=Certainty.UNKNOWN,
    )


def _read_result(before: Before, data: bytes) -> tuple[Before, Found]:
    """Read how often a call of `WebSearch` has searched, which costs a fee."""
    try:
        line = _results.decode(data)
    except UNREADABLE:
        return before, ()  # the result of another tool
    found, spoken = line.tool_use_result, line.message
    blocks = spoken.content if spoken and isinstance(spoken.content, list) else ()
    if found is None or not found.search_count:
        return before, ()
    at = read_time(line.timestamp)
    return before, tuple(
        _make_own(AgentKind.SEARCH, block.tool_use_id, at, line.session_id, found.search_count)
        for block in blocks
        if block.tool_use_id
    )


def _read_title(before: Before, data: bytes) -> tuple[Before, Found]:
    """The line has no time, and is repeated; the next request says when it was."""
    title = _titled.decode(data).session_id
    return (before if before.title else structs.replace(before, title=title)), ()


def _read_begun(before: Before, data: bytes) -> tuple[Before, Found]:
    """A request like the one before, which has no answer, is the next try of the same."""
    line = _lines.decode(data)
    entry = LedgerEntry(
        key=_name_begun(line.id),
        at=read_time(line.timestamp),
        context=line.session_id,
        agent=_find_agent(line),
        model=line.params.model if line.params else "",
        certainty=Certainty.UNKNOWN,
    )
    now = _go_on(before, entry.at, (line.id, line.request_digest or ""))
    titled: Found = ()
    if before.title and before.title != TITLED:
        titled = (_make_own(AgentKind.TITLE, before.title, entry.at, line.session_id),)
        now = structs.replace(now, title=TITLED)
    last, digest = before.begun
    if not digest or digest != line.request_digest:
        return now, (*titled, entry)
    failed = structs.replace(entry, key=f"{FAILED}{last}", at=before.at)
    return now, (*titled, Settled(_name_begun(last)), failed, entry)


def _read_compaction(before: Before, data: bytes) -> tuple[Before, Found]:
    line = _lines.decode(data)
    at = read_time(line.timestamp)
    entry = _make_own(AgentKind.COMPACTION, line.uuid or "", at, line.session_id)
    return _go_on(before, entry.at, before.begun), (entry,)


def _read_recap(before: Before, data: bytes) -> tuple[Before, Found]:
    """A summary that the client has made by itself while nobody was there."""
    line = _lines.decode(data)
    at = read_time(line.timestamp)
    return before, (_make_own(AgentKind.ASIDE, line.uuid or "", at, line.session_id),)


_STEPS = {
    ("assistant", ""): _read_answer,
    ("user", ""): _read_result,
    ("ai-title", ""): _read_title,
    ("api-request", ""): _read_begun,
    ("system", "compact_boundary"): _read_compaction,
    ("system", "away_summary"): _read_recap,
}


def _go_on(before: Before, at: float, begun: tuple[str, str]) -> Before:
    return structs.replace(before, at=max(before.at, at), begun=begun)


def _make_unread(line: bytes) -> LedgerEntry:
    """An answer in words that we do not know: what it has used is not, either."""
    name = hashlib.sha256(line).hexdigest()[:24]
    return LedgerEntry(key=f"unread:{name}", at=0.0, context="", certainty=Certainty.UNKNOWN)


def _name_begun(ident: str | None) -> str:
    return f"begun:{ident}"


def _find_agent(line: RequestLine) -> AgentKind:
    if (line.query_source or "").startswith("compact"):
        return AgentKind.COMPACTION
    return AgentKind.SUBAGENT if line.is_sidechain or line.agent_id else AgentKind.MAIN


def _add_up(usage: AnswerUsage) -> Tokens:
    """The tokens of an answer.

    An answer in which the API itself has gone on has counts for each part, and the first of them
    need not be in those of the whole; unproven, so whichever is more counts.
    """
    whole = _count(usage)
    parts = [_count(one) for one in usage.iterations or ()]
    searches = (usage.server_tool_use.web_search_requests if usage.server_tool_use else 0) or 0
    most = [max(one, sum(part[at] for part in parts)) for at, one in enumerate(whole)]
    return Tokens(most[0], most[1], most[2], most[3], most[4], searches)


def _count(counts: TokenCounts) -> tuple[int, int, int, int, int]:
    """Input, output, cache reads, and cache writes of both kinds.

    Older clients have only the sum of the writes; five minutes are the API's default.
    """
    written = counts.cache_creation or CacheWrites()
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
        return bool(ident) and ident.encode() in read_foreign(path, HEAD).partition(b"\n")[0]
    except OSError:
        return False


def find_other(conversation: Path, ident: str) -> Path | None:
    """The transcripts of a directory lie beside each other."""
    return conversation.with_name(f"{ident}.jsonl")


def find_history(conversation: Path) -> Path | None:
    """Find the history, which lies beside the folder of all transcripts."""
    folders = conversation.parents
    return folders[2] / HISTORY if len(folders) > 2 else None


def read_history(line: bytes) -> LedgerEntry | None:
    """A question beside the conversation is in no transcript."""
    if ASIDE_MARK not in line:
        return None
    try:
        typed = _typed.decode(line)
    except UNREADABLE:
        return None
    if not typed.display.startswith(ASIDE) or not typed.session_id:
        return None
    ident = f"{typed.session_id}:{typed.timestamp:.0f}"
    return _make_own(AgentKind.ASIDE, ident, typed.timestamp / 1000, typed.session_id)


READER = RecordReader(list_files, find_other, read, find_history, read_history, has_accounts=True)
