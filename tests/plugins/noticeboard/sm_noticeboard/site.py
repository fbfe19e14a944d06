"""The board in a browser."""

from __future__ import annotations

from sm_noticeboard.notices import list_notices
from sm_noticeboard.settings import Noticeboard
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.config.shapes import read_section
from sm.sessions.machine import Machine
from sm.web.sites import Entrance, Site


def make_hall(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make what answers with the notices of the machine."""

    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        asked = Request(scope).headers.get("authorization", "")
        if entrance.token and not entrance.is_brought(asked):
            await PlainTextResponse("a token is needed", 401)(scope, receive, send)
            return
        board = read_section(machine.settings, Noticeboard).board
        texts = [one.read_text("utf-8") for one in list_notices(board)] if board else []
        await PlainTextResponse("".join(texts))(scope, receive, send)

    return show


SITE = Site(("/notices",), make_hall)
