"""A body that comes byte by byte keeps no connection: a form of the page, and any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from sm.plugins.page import route
from sm.plugins.page.access import DeniedError
from sm.web import guard
from sm.web.guard import Guard, GuardRules

SLOWLY_S = 0.02


def make_scope(**more: Any) -> Scope:
    headers = [
        (b"host", b"127.0.0.1:9"),
        (b"content-type", b"application/x-www-form-urlencoded"),
        (b"content-length", b"1000"),
    ]
    address = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 9), "scheme": "http"}
    return {
        "type": "http",
        "method": "POST",
        "path": "/x",
        "raw_path": b"/x",
        "query_string": b"",
        "http_version": "1.1",
        "headers": headers,
        **address,
        **more,
    }


async def drip() -> Message:
    """A byte now and then, for ever."""
    await asyncio.sleep(SLOWLY_S)
    return {"type": "http.request", "body": b"x", "more_body": True}


def test_a_form_that_comes_slowly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "FORM_S", 0.2)
    with pytest.raises(DeniedError, match="did not arrive in") as refused:
        asyncio.run(route.read_form(Request(make_scope(), drip)))
    assert refused.value.status == 408


def test_a_form_that_comes_in_pieces_is_read() -> None:
    pieces = iter([b"a=1&", b"b=%20x", b""])

    async def receive() -> Message:
        await asyncio.sleep(SLOWLY_S)
        body = next(pieces)
        return {"type": "http.request", "body": body, "more_body": bool(body)}

    found = asyncio.run(route.read_form(Request(make_scope(), receive)))
    assert found == {"a": "1", "b": " x"}


def ask(read: Callable[[Receive], Any], receive: Receive) -> list[Message]:
    """What the guard before an application that reads so sends."""
    said = list[Message]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await read(receive)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(Guard(app, GuardRules())(make_scope(), receive, send))
    return said


def test_whatever_reads_a_body_is_not_kept_by_one_that_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "SLOWEST_S", 0.2)

    async def read(receive: Receive) -> None:
        await Request(make_scope(), receive).body()

    with pytest.raises(ClientDisconnect):
        ask(read, drip)


def test_who_waits_for_the_end_of_a_client_has_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "SLOWEST_S", 0.05)
    messages = iter(
        [
            {"type": "http.request", "body": b"x" * 1000, "more_body": False},
            {"type": "http.disconnect", "late": True},
        ]
    )

    async def receive() -> Message:
        message = next(messages)
        if message.get("late"):
            await asyncio.sleep(0.2)
        return message

    async def read(receive: Receive) -> None:
        await receive()
        assert (await receive()).get("late"), "it was told of an end that was none"

    assert ask(read, receive)[0]["status"] == 200
