"""Reads what Claude Code tells of its requests in OpenTelemetry logs (`http/json`). Pure.

Measured with 2.1.332: one `api_request` for each request that was answered, compactions
(`query_source` is `compact`) and its own small requests among them, with the `requestId` of the
transcript. An answer that was cut off, and a try that failed, are in none. Nor are searches of the
web: `cost_usd` has their fee, and the transcript their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field

from sm.base.decoding import find_decoder
from sm.base.foreign import read_time
from sm.plugins.cost.ledger.records.record import MOST, Agent, Entry, Tokens
from sm.plugins.cost.settings import SESSION

REQUEST = "claude_code.api_request"
MAIN, COMPACT = "repl_main_thread", "compact"
SOURCES = {
    "web_search_tool": Agent.SEARCH,
    "web_fetch_apply": Agent.FETCH,
    "side_question": Agent.ASIDE,
    "away_summary": Agent.ASIDE,
    "generate_session_title": Agent.TITLE,
}
"""What the client asks for by itself, and its record has a trace of."""


class _Value(Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None


class _Attribute(Struct, frozen=True):
    key: str = ""
    value: _Value = _Value()


class _Record(Struct):
    body: _Value = _Value()
    attributes: list[_Attribute] = []


class _Scope(Struct, rename="camel"):
    log_records: list[_Record] = []


class _Resource(Struct, frozen=True):
    attributes: tuple[_Attribute, ...] = ()


class _Logs(Struct, rename="camel"):
    resource: _Resource = _Resource()
    scope_logs: list[_Scope] = []


class _Export(Struct):
    logs: list[_Logs] = field(name="resourceLogs", default_factory=list)


_exports = find_decoder(_Export)


def read(body: bytes) -> Iterator[tuple[str, list[Entry]]]:
    """The requests that an export tells of, with the name of their session.

    Raises:
        ValueError: it is no export.

    """
    try:
        export = _exports.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError("no OpenTelemetry logs in JSON") from error
    for logs in export.logs:
        session = _collect(logs.resource.attributes).get(SESSION, "")
        records = (one for scope in logs.scope_logs for one in scope.log_records)
        told = (_collect(one.attributes) for one in records if one.body.string_value == REQUEST)
        if entries := [entry for one in told if (entry := _read_request(one))]:
            yield session, entries


def _collect(attributes: Iterable[_Attribute]) -> dict[str, str]:
    found = {}
    for one in attributes:
        values = (one.value.string_value, one.value.int_value, one.value.double_value)
        found[one.key] = next((str(value) for value in values if value is not None), "")
    return found


def _read_request(told: dict[str, str]) -> Entry | None:
    """A request; None without an id, by which alone it is known."""
    try:
        written = _count(told, "cache_creation_tokens")
        an_hour = _count(told, "cache_creation_1h_tokens")
        tokens = Tokens(
            _count(told, "input_tokens"),
            _count(told, "output_tokens"),
            _count(told, "cache_read_tokens"),
            max(written - an_hour, 0),
            an_hour,
        )
        at = read_time(told.get("event.timestamp", ""))
    except ValueError:
        return None
    if not told.get("request_id"):
        return None
    fast = " [fast]" if told.get("speed") == "fast" else ""
    return Entry(
        key=told["request_id"],
        at=at,
        context=told.get("session.id", ""),
        agent=_find_agent(told),
        model=told.get("model", "") + fast,
        tokens=tokens,
    )


def _count(told: dict[str, str], name: str) -> int:
    count = int(told.get(name) or 0)
    if not 0 <= count <= MOST:
        raise ValueError(f"{name} is no count of tokens")
    return count


def _find_agent(told: dict[str, str]) -> Agent:
    source = told.get("query_source", "")
    if source.startswith(COMPACT):
        return Agent.COMPACTION
    if source in SOURCES:
        return SOURCES[source]
    if told.get("agent_id") or source.startswith("agent:"):
        return Agent.SUBAGENT
    return Agent.MAIN if source.startswith(MAIN) else Agent.OTHER
