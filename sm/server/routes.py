"""The endpoints in one table: from it requests are carried out, and the description is made."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import anyio
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from sm.errors import SmError
from sm.server import actions, bodies, hooks, shapes
from sm.server.actions import Call
from sm.server.answers import Answer, failure, success
from sm.server.errors import status_of
from sm.server.lanes import Lanes
from sm.store.paths import Root

KIB = 1024
ACTION_S = 60.0
"""After so long a client is told that it goes on without it."""


class Endpoint(Struct, frozen=True):
    """One of them. `limit`: bytes that its body may have; `errors`: which statuses refusals have.

    A `slow` one has to do with terminals and forges: few at a time for each session.
    """

    method: str
    path: str
    act: Callable[[Call[Any]], Struct]
    summary: str
    answer: type[Struct]
    body: type[Struct] | None = None
    limit: int = 64 * KIB
    errors: tuple[int, ...] = ()
    slow: bool = False


ENDPOINTS = (
    Endpoint("GET", "/sessions", actions.list_sessions, "All sessions.", shapes.Sessions),
    Endpoint(
        "GET",
        "/sessions/{session_id}",
        actions.show_session,
        "One session, by id or name.",
        shapes.Session,
        errors=(404,),
    ),
    Endpoint(
        "POST",
        "/sessions/{session_id}/handoff",
        actions.schedule_handoff,
        "Replace the session's own context when its turn ends; refusals are in `error`.",
        shapes.HandoffAnswer,
        body=shapes.HandoffRequest,
    ),
    Endpoint(
        "POST",
        "/sessions/{session_id}/input",
        actions.send_input,
        "Send a message to the session's agent.",
        shapes.InputAnswer,
        body=shapes.InputRequest,
        limit=2048 * KIB,  # of 250,000 characters, most of them escaped
        errors=(404, 409, 503),
        slow=True,
    ),
    Endpoint(
        "POST",
        "/sessions/{session_id}/kill",
        actions.kill,
        "End the session.",
        shapes.KillAnswer,
        body=shapes.KillRequest,
        errors=(403, 404, 409, 503),
        slow=True,
    ),
    Endpoint(
        "POST",
        "/hooks/context-usage",
        hooks.context_usage,
        "How full an agent's context is, or that it is being summed up.",
        shapes.ContextAnswer,
        body=shapes.ContextUsage,
    ),
    Endpoint(
        "POST",
        "/hooks/claude",
        hooks.claude,
        "What the agent CLI told a hook.",
        shapes.HookAnswer,
        body=shapes.HookEvent,
        limit=1024 * KIB,
    ),
)


def routes(root: Root) -> list[Route]:
    """The table as Starlette has it, over the sessions of this state root."""
    lanes = {True: Lanes(each=4, total=64), False: Lanes(each=16, total=16)}
    return [
        Route(
            each.path,
            functools.partial(_answer, root, each, lanes[each.slow]),
            methods=[each.method],
        )
        for each in ENDPOINTS
    ]


async def _answer(root: Root, endpoint: Endpoint, lanes: Lanes, request: Request) -> Answer:
    try:
        call = await _call(root, endpoint, request)
        with anyio.fail_after(ACTION_S):
            return await lanes.run(call.ident, functools.partial(_act, endpoint, call))
    except SmError as error:
        return failure(status_of(error), error.message)
    except TimeoutError:
        return failure(503, f"not done after {ACTION_S:g} s: it may still be carried out")
    except asyncio.CancelledError:
        return failure(503, "the server stops: it may still be carried out")
    except ClientDisconnect:
        return failure(400, "the client has gone")


async def _call(root: Root, endpoint: Endpoint, request: Request) -> Call[Any]:
    ident = request.path_params.get("session_id", "")
    if endpoint.body is None:
        return Call(root, ident, None)
    raw = await bodies.read(request, endpoint.limit)
    return Call(root, ident, bodies.decode(raw, endpoint.body), raw)


def _act(endpoint: Endpoint, call: Call[Any]) -> Answer:
    """In a thread, the answer's encoding included: of a thousand sessions it takes a while."""
    return success(endpoint.act(call))
