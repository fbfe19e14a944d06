"""Serves one client on standard input and output, which has started us."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from sm.store.sqlite import BUSY_S

Item = SessionMessage | Exception
Write = Callable[[SessionMessage], Awaitable[None]]

PATIENCE_S = 2 * BUSY_S
"""Time that calls may take to finish after the client's last request, in seconds."""


def serve(server: Server[Any]) -> None:
    """Answer until the client closes our standard input, or ends."""

    async def answer() -> None:
        options = server.create_initialization_options()
        async with stdio_server() as (read, write), write, anyio.create_task_group() as tasks:
            sender, messages = anyio.create_memory_object_stream[Item]()
            answers, answered = anyio.create_memory_object_stream[SessionMessage]()
            unanswered = Unanswered()
            tasks.start_soon(_relay, read, sender, write.send, unanswered)
            tasks.start_soon(_pass_on, answered, write.send, unanswered)
            await server.run(messages, answers, options)

    # The thread that waits for a line cannot be interrupted, and Python's own handler would wait.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(answer)
    except* (BrokenPipeError, anyio.BrokenResourceError):
        pass  # the reader of the answers has ended


class Unanswered:
    """Requests that wait for their answers."""

    def __init__(self) -> None:
        """Begin without any request."""
        self._ids: set[int | str] = set()
        self._changed = anyio.Event()

    def note(self, message: JSONRPCMessage) -> None:
        """Note a request, an answer, or a cancelled request."""
        match message:
            case JSONRPCRequest(id=ident):
                self._ids.add(ident)
            case JSONRPCResponse(id=ident) | JSONRPCError(id=int() | str() as ident):
                self._ids.discard(ident)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": ident}):
                self._cancel(ident)
        self._changed.set()
        self._changed = anyio.Event()

    def _cancel(self, ident: object) -> None:
        """Drop a request. Like the SDK, take the number 1 for the text "1", and the reverse."""
        alike = {one for one in self._ids if str(one) == str(ident)}
        self._ids -= {one for one in alike if type(one) is type(ident)} or alike

    async def settled(self) -> None:
        """Wait until no request is left."""
        while self._ids:
            await self._changed.wait()


async def _relay(
    read: AsyncIterator[Item],
    messages: MemoryObjectSendStream[Item],
    write: Write,
    unanswered: Unanswered,
) -> None:
    """Pass on each message, and answer lines that are none, which the SDK ignores.

    At the end of the input the SDK would drop its running calls. So it hears of the end only when
    all calls have their answers.
    """
    async with messages:
        async for item in read:
            if not isinstance(item, ValidationError):
                if isinstance(item, SessionMessage):
                    unanswered.note(item.message)
                await messages.send(item)
            elif error := _refusal(item):
                await write(SessionMessage(error))
        with anyio.move_on_after(PATIENCE_S):
            await unanswered.settled()


async def _pass_on(
    answers: MemoryObjectReceiveStream[SessionMessage], write: Write, unanswered: Unanswered
) -> None:
    """Write what the server says, and note which requests it answers."""
    async with answers:
        async for item in answers:
            await write(item)
            unanswered.note(item.message)


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """Return the answer to a line that is no message; None for an empty line.

    It carries the request's id if one can be found, because the client waits for that.
    """
    found = error.errors(include_url=False)
    if broken := next((each for each in found if each["type"] == "json_invalid"), None):
        line = str(broken["input"])
        data = ErrorData(code=PARSE_ERROR, message=f"cannot read the message: {broken['msg']}")
        return JSONRPCError(jsonrpc="2.0", id=_id(line), error=data) if line.strip() else None
    # If a field is missing, the input of the error is the whole message.
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
