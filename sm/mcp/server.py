"""The bridge as an MCP server: five tools over the functions behind `sm bridge`."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from sm.bridge import shapes
from sm.bridge.records import Client
from sm.bridge.shapes import Shape
from sm.errors import SmError, UsageError
from sm.mcp.schemas import INSTRUCTIONS, TOOLS
from sm.workflow import bridge
from sm.workflow.host import Host

Arguments = dict[str, Any]
Context = ServerRequestContext[Any]


def server(host: Host, version: str, *, leaves_calls: bool = False) -> Server[Any]:
    """An MCP server over the handoffs of this host, for any transport.

    `leaves_calls`: it can be stopped while a call waits for the database.
    """

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
        # A thread: another process may hold the database for a moment.
        given = (params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(_called, host, *given, abandon_on_cancel=leaves_calls)

    return Server(
        "sm",
        version=version,
        title="sm: handoffs between chat and code",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _called(host: Host, name: str, arguments: Arguments) -> CallToolResult:
    try:
        return _success(_checked(name, arguments)(host, arguments))
    except SmError as error:
        return _failure(error.message)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return _failure("unexpected error: tell the person to look at what 'sm mcp' printed")


def _checked(name: str, arguments: Arguments) -> Callable[[Host, Arguments], Shape]:
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in TOOLS)
        raise UsageError(f"no tool '{name:.60}': there are {known}")
    if unknown := arguments.keys() - tool.input_schema["properties"].keys():
        known = ", ".join(tool.input_schema["properties"])
        raise UsageError(f"{name} has no parameter '{min(unknown):.60}': it takes {known}")
    return _OPERATIONS[name]


def _create(host: Host, given: Arguments) -> Shape:
    asked = {key: given.get(key) for key in ("title", "content", "project", "issue")}
    return shapes.created(bridge.create(host, **asked, client=_client(given)))


def _get(host: Host, given: Arguments) -> Shape:
    return shapes.got(bridge.get(host, given.get("id"), _client(given)))


def _add(host: Host, given: Arguments) -> Shape:
    asked = (given.get("id"), given.get("type"), given.get("content"))
    return shapes.added(*bridge.add(host, *asked, _client(given)))


def _mark_read(host: Host, given: Arguments) -> Shape:
    return shapes.row(bridge.mark_read(host, given.get("id"), _client(given)))


def _close(host: Host, given: Arguments) -> Shape:
    return shapes.row(bridge.close(host, given.get("id")))


def _client(given: Arguments) -> object:
    return given.get("as_client", Client.CHAT)


_OPERATIONS = {
    "create_handoff": _create,
    "get_handoff": _get,
    "add_to_handoff": _add,
    "mark_handoff_read": _mark_read,
    "close_handoff": _close,
}


def _success(shape: Shape) -> CallToolResult:
    text = json.dumps(shape, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content=shape)


def _failure(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
