"""Which requests still wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from mcp.types import (
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from sm.plugins.chat.mcp.stdio import Unanswered


def request(ident: int | str) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=ident, method="tools/list")


def response(ident: int | str) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=ident, result={})


def cancel(ident: int | str) -> JSONRPCNotification:
    params = {"requestId": ident}
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)


def is_settled(*messages: JSONRPCMessage) -> bool:
    async def wait() -> bool:
        unanswered = Unanswered()
        for message in messages:
            unanswered.note(message)
        try:
            async with asyncio.timeout(0):
                await unanswered.settled()
        except TimeoutError:
            return False
        return True

    return asyncio.run(wait())


@pytest.mark.parametrize("done", [response, cancel])
def test_a_number_and_a_text_are_two_requests(
    done: Callable[[int | str], JSONRPCMessage],
) -> None:
    both = (request(1), request("1"))
    assert not is_settled(*both, done(1))
    assert not is_settled(*both, done("1"))
    assert is_settled(*both, done(1), done("1"))


def test_a_cancelled_request_is_found_under_either_form() -> None:
    assert is_settled(request(1), cancel("1"))
    assert is_settled(request("1"), cancel(1))
