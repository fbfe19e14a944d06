"""The Responses API, as Codex speaks it, in the terms of the Messages API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from tests.real.wire import HELD_LIMIT_S, Kind, Reply, Tool, count


def exec_command(command: str) -> Tool:
    """Run `command` in Codex's shell."""
    return Tool("exec_command", {"cmd": command})


def spawn_agent(message: str) -> Tool:
    """Have Codex start an agent, which is a thread of its own."""
    return Tool("multi_agent_v1.spawn_agent", {"message": message})


def translated(body: dict[str, Any]) -> dict[str, Any]:
    """What a request's body says, with the messages as the Messages API would have them."""
    return {"messages": [_message(item) for item in body["input"]], "responses": body}


def kind_of(body: dict[str, Any]) -> Kind:
    """What Codex asks for with this body: a title is asked for without tools."""
    return Kind.MAIN if body.get("tools") else Kind.SIDE


def _message(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "message":
        role = "system" if item["role"] == "developer" else item["role"]
        texts = [{"type": "text", "text": part.get("text", "")} for part in item["content"]]
        return {"role": role, "content": texts}
    if item["type"].endswith("_call_output"):
        output = item["output"]
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return {"role": "user", "content": [{"type": "tool_result", "content": text}]}
    return {"role": "assistant", "content": [{"type": item["type"]}]}


def events(reply: Reply) -> Iterator[dict[str, Any]]:
    """The events of the stream that carries the reply; they wait where it is held."""
    id_ = f"resp_{time.monotonic_ns():x}"
    yield {"type": "response.created", "response": {"id": id_}}
    for index, item in enumerate(_items(reply, id_)):
        if item["type"] == "message":
            yield from _spoken(reply, item, index)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if reply.breaks_off:
        reply.breaks_off.wait(HELD_LIMIT_S)
        raise ConnectionError("as the test says")
    yield {"type": "response.completed", "response": {"id": id_, "usage": _usage(reply)}}


def _usage(reply: Reply) -> dict[str, Any]:
    """The same counts: what was read from a cache, or written to it, is a part of the input."""
    used = count(reply)
    written = used.cache_write_5m + used.cache_write_1h
    everything = used.input + used.cache_read + written
    return {
        "input_tokens": everything,
        "input_tokens_details": {"cached_tokens": used.cache_read},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": everything + used.output,
    }


def _items(reply: Reply, id_: str) -> Iterator[dict[str, Any]]:
    if reply.text:
        text = {"type": "output_text", "text": reply.text}
        yield {"type": "message", "id": f"msg_{id_}", "role": "assistant", "content": [text]}
    for index, tool in enumerate(reply.tools):
        space, _, name = tool.name.rpartition(".")
        call = {"id": f"fc_{id_}{index}", "call_id": f"call_{id_}{index}", "name": name}
        call |= {"namespace": space} if space else {}
        yield {"type": "function_call", **call, "arguments": json.dumps(tool.input)}


def _spoken(reply: Reply, item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": item | {"content": []},
    }
    middle = len(reply.text) // 2
    for delta in (reply.text[:middle], reply.text[middle:]):
        where = {"output_index": index, "content_index": 0, "item_id": item["id"]}
        yield {"type": "response.output_text.delta", **where, "delta": delta}
        if reply.hold:
            reply.hold.wait(HELD_LIMIT_S)
