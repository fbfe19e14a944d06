"""The bridge as an MCP server: five tools, which call the functions behind `sm bridge`."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from sm.base.errors import SmError, UsageError
from sm.base.output import say_text
from sm.plugins.chat import operations
from sm.plugins.chat.mcp.schemas import INSTRUCTIONS, TOOLS
from sm.plugins.chat.threads import records
from sm.plugins.chat.threads.records import HandoffClient, Shape
from sm.sessions.caller import Caller
from sm.sessions.machine import Machine

Arguments = dict[str, Any]
Context = ServerRequestContext[Any]


class Tools:
    """The five tools over the threads of a machine, for this `caller`."""

    def __init__(self, machine: Machine, caller: Caller) -> None:
        """Serve one client, or several that cannot be told apart."""
        self.machine = machine
        self.caller = caller
        self._operations: dict[str, Callable[[Arguments], Shape]] = {
            "create_handoff": self._create,
            "get_handoff": self._get,
            "add_to_handoff": self._add,
            "mark_handoff_read": self._mark_read,
            "close_handoff": self._close,
        }

    def call(self, name: str, arguments: Arguments) -> CallToolResult:
        """Run a tool, and return its result. An error is a result, too, for the model to read."""
        try:
            _check(name, arguments)
            return _success(self._operations[name](arguments))
        except SmError as error:
            return _failure(error.message)
        except Exception:
            say_text(traceback.format_exc(), err=True, nl=False)
            return _failure("unexpected error: tell the person to look at what 'sm mcp' printed")

    def _create(self, given: Arguments) -> Shape:
        asked = {key: given.get(key) for key in ("title", "content", "project", "issue")}
        return records.shape_created(
            operations.create(self.machine, **asked, client=self._client(given))
        )

    def _get(self, given: Arguments) -> Shape:
        return records.shape_thread(
            operations.get(self.machine, given.get("id"), self._client(given))
        )

    def _add(self, given: Arguments) -> Shape:
        asked = (given.get("id"), given.get("type"), given.get("content"))
        return records.shape_added(*operations.add(self.machine, *asked, self._client(given)))

    def _mark_read(self, given: Arguments) -> Shape:
        return records.shape_handoff(
            operations.mark_read(self.machine, given.get("id"), self._client(given))
        )

    def _close(self, given: Arguments) -> Shape:
        return records.shape_handoff(operations.close(self.machine, given.get("id")))

    def _client(self, given: Arguments) -> HandoffClient:
        return operations.find_speaker(self.caller, given.get("as_client"))


def make_server(tools: Tools, version: str, *, leaves_calls: bool = False) -> Server[Any]:
    """Make an MCP server with these tools, for any transport.

    With `leaves_calls` the server may stop while a call waits for the database.
    """

    async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
        # In a thread, because another process may hold the database for a moment.
        given = (params.name, params.arguments or {})
        return await anyio.to_thread.run_sync(tools.call, *given, abandon_on_cancel=leaves_calls)

    return Server(
        "sm",
        version=version,
        title="sm: handoffs between chat and code",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _check(name: str, arguments: Arguments) -> None:
    """Refuse what the SDK does not refuse itself.

    Raises:
        UsageError: there is no such tool, or no such parameter.

    """
    tool = next((tool for tool in TOOLS if tool.name == name), None)
    if tool is None:
        known = ", ".join(tool.name for tool in TOOLS)
        raise UsageError(f"no tool '{name:.60}': there are {known}")
    if unknown := arguments.keys() - tool.input_schema["properties"].keys():
        known = ", ".join(tool.input_schema["properties"])
        raise UsageError(f"{name} has no parameter '{min(unknown):.60}': it takes {known}")


def _success(shape: Shape) -> CallToolResult:
    text = json.dumps(shape, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content=shape)


def _failure(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
