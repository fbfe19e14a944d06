"""The server on standard input and output: one client, which has started us."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

Item = SessionMessage | Exception


def serve(server: Server[Any]) -> None:
    """Answer until the client closes our standard input, or is gone."""

    async def answer() -> None:
        options = server.create_initialization_options()
        async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
            sender, messages = anyio.create_memory_object_stream[Item]()
            tasks.start_soon(_relay, read, sender, write.send)
            await server.run(messages, write, options)

    # The thread that waits for a line cannot be interrupted: Python's own way would wait for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(answer)
    except* BrokenPipeError:
        pass  # who was to read the answer has ended


async def _relay(
    read: AsyncIterator[Item],
    messages: MemoryObjectSendStream[Item],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Pass on what is a message; the SDK leaves what is none without an answer."""
    async with messages:
        async for item in read:
            if not isinstance(item, ValidationError):
                await messages.send(item)
            elif error := _refusal(item):
                await answer(SessionMessage(error))


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """What to answer to a line that is no message, None for an empty one.

    It carries the id of the request as far as one can be made out: the client waits for that.
    """
    found = error.errors(include_url=False)
    if broken := next((each for each in found if each["type"] == "json_invalid"), None):
        line = str(broken["input"])
        data = ErrorData(code=PARSE_ERROR, message=f"cannot read the message: {broken['msg']}")
        return JSONRPCError(jsonrpc="2.0", id=_id(line), error=data) if line.strip() else None
    # Where a field is missing, what it is missing in is the whole.
    whole = next((each["input"] for each in found if each["type"] == "missing"), None)
    data = ErrorData(code=INVALID_REQUEST, message="this is no request of JSON-RPC 2.0")
    return JSONRPCError(jsonrpc="2.0", id=_id(whole), error=data)


def _id(sent: object) -> int | str | None:
    try:
        request = json.loads(sent) if isinstance(sent, str) else sent
        if isinstance(request, dict) and "method" in request:
            ident = request.get("id")
            json.dumps(ident, ensure_ascii=False).encode()
            return ident if type(ident) in (int, str) else None
    except (ValueError, RecursionError):
        pass
    return None
