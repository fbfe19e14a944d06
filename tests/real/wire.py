"""The Messages API as it goes over the wire: what a request is for, and a reply as events."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

HELD_LIMIT_S = 120.0
"""A reply that no test lets go ends by itself, so that no run hangs."""

COMPACTING = "Your task is to create a detailed summary"
"""How the client's own instruction for a compaction begins (2.1.329)."""


class Kind(StrEnum):
    """What a request is for."""

    MAIN = "main"
    AGENT = "agent"
    COMPACTION = "compaction"
    SIDE = "side"


@dataclass(frozen=True)
class Tool:
    """A call of one of the client's tools."""

    name: str
    input: dict[str, Any]

    @classmethod
    def bash(cls, command: str, **more: Any) -> Tool:
        """Run `command` in the client's shell."""
        return cls("Bash", {"command": command, "description": "as the test says", **more})


@dataclass(frozen=True)
class Usage:
    """What an answer counts as used, in tokens: each kind apart, as the Messages API has it."""

    input: int = 0
    output: int = 20
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    `tokens` is the size of the context that the answer reports, unless `usage` says more; `hold`
    keeps the stream open, with the text half sent, until it is set. The client shows whole lines
    only. `searches` of the web were made by the API.
    """

    text: str = "Fine."
    tools: tuple[Tool, ...] = ()
    tokens: int = 1000
    usage: Usage | None = None
    hold: threading.Event | None = None
    breaks_off: threading.Event | None = None
    """Once it is set, the connection breaks behind the last block, before the counts are told."""
    searches: int = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """An answer that is an error: such as 401, 429, 500 or 529."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "as the test says"


Turn = Reply | Failure
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def kind_of(body: dict[str, Any]) -> Kind:
    """What the client asks for with this body."""
    # What a Stop hook has added stands behind the instruction.
    last = "\n".join(
        text for one in body["messages"][-3:] for text in texts_of(one["content"], results=False)
    )
    if COMPACTING in last:
        return Kind.COMPACTION
    names = {tool.get("name") for tool in body.get("tools") or ()}
    if "Bash" not in names:
        return Kind.SIDE
    # A subagent cannot start another one, and cannot ask the person.
    return Kind.MAIN if names & {"Agent", "Task"} else Kind.AGENT


def texts_of(content: Any, results: bool = True) -> list[str]:
    """The texts of a message's content, those of tool results among them unless told."""
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content:
        if block.get("type") == "text":
            found.append(block["text"])
        elif block.get("type") == "tool_result" and results:
            found += texts_of(block.get("content") or "")
    return found


def count(reply: Reply) -> Usage:
    """What the whole answer counts."""
    cached = max(reply.tokens - 100, 0)
    return reply.usage or Usage(input=reply.tokens - cached, cache_read=cached)


def _usage(reply: Reply) -> dict[str, Any]:
    used = count(reply)
    return {
        "input_tokens": used.input,
        "cache_creation_input_tokens": used.cache_write_5m + used.cache_write_1h,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.cache_write_5m,
            "ephemeral_1h_input_tokens": used.cache_write_1h,
        },
        "output_tokens": 1,
        "server_tool_use": {"web_search_requests": reply.searches},
    }


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for number in range(reply.searches):
        id_ = f"srvtoolu_{number}"
        blocks.append({"type": "server_tool_use", "id": id_, "name": "web_search", "input": {}})
        blocks.append({"type": "web_search_tool_result", "tool_use_id": id_, "content": []})
    blocks += [{"type": "text", "text": reply.text}] if reply.text else []
    for tool in reply.tools:
        id_ = f"toolu_{time.monotonic_ns():x}{len(blocks)}"
        blocks.append({"type": "tool_use", "id": id_, "name": tool.name, "input": tool.input})
    return blocks


def message(reply: Reply, model: str, *, begun: bool = False) -> dict[str, Any]:
    """The reply as the API's message; as it begins, that is without content, if `begun`."""
    return {
        "id": f"msg_{time.monotonic_ns():x}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [] if begun else _blocks(reply),
        "stop_reason": None if begun else _stop_reason(reply),
        "stop_sequence": None,
        "usage": _usage(reply),
    }


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.tools else "end_turn"


def events(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    """The events of the stream that carries the reply; they wait where it is held."""
    yield {"type": "message_start", "message": message(reply, model, begun=True)}
    for index, block in enumerate(_blocks(reply)):
        begun = block | EMPTY.get(block["type"], {})
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in _deltas(reply, block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if reply.breaks_off:
        reply.breaks_off.wait(HELD_LIMIT_S)
        raise ConnectionError("as the test says")
    end = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": count(reply).output}}
    yield {"type": "message_stop"}


EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}
"""How blocks begin that are filled by what follows."""


def _deltas(reply: Reply, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] not in EMPTY:
        return
    if block["type"] != "text":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return
    middle = len(block["text"]) // 2
    yield {"type": "text_delta", "text": block["text"][:middle]}
    if reply.hold:
        reply.hold.wait(HELD_LIMIT_S)
    yield {"type": "text_delta", "text": block["text"][middle:]}
