"""Shapes of the lines in Claude Code's files that tell what its requests used.

`claude.py` says what they mean, and with which version that was measured. Any
field may be missing. A count above `MOST` is not believed, as an agent may have written the file.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from sm.plugins.cost.ledger.records.record import MOST, Count, Total


class CacheWrites(Struct):
    """What an answer has written to the cache, by how long that is kept."""

    ephemeral_5m_input_tokens: Count = 0
    ephemeral_1h_input_tokens: Count = 0


class ServedTools(Struct):
    """What the API itself has done for an answer."""

    web_search_requests: Count | None = 0


class TokenCounts(Struct):
    """The counts of an answer, or of a part of it."""

    input_tokens: Count | None = 0
    output_tokens: Count | None = 0
    cache_read_input_tokens: Count | None = 0
    cache_creation_input_tokens: Count | None = 0
    cache_creation: CacheWrites | None = None


class AnswerUsage(TokenCounts):
    """What an answer has used."""

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
    """With what a request was made."""

    model: str = ""


class LineKind(Struct):
    """What a line is."""

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
    """How often a call of `WebSearch` has searched."""

    search_count: Count = 0


class ToolResultLine(CallingLine, rename="camel"):
    """What a tool has answered."""

    timestamp: str = ""
    session_id: str = ""
    tool_use_result: WebFindings | None = None


class TypedLine(Struct, rename="camel"):
    """A line of what people have typed; its time is in milliseconds."""

    display: str = ""
    timestamp: Annotated[float, Meta(ge=0, le=1e14)] = 0.0
    session_id: str = ""


class CountedModel(Struct, rename="camel"):
    """What a process has counted with one model."""

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
