"""The server on standard input and output: one client, which has started us."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def serve(server: Server[Any]) -> None:
    """Answer until the client closes our standard input."""

    async def answer() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(answer)
