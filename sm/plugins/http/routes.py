"""Table of the endpoints, from which requests are carried out and described."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import anyio
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from sm.base.errors import SmError
from sm.plugins.http import actions, hook_reports, shapes, webhooks
from sm.sessions.machine import Machine
from sm.web import bodies
from sm.web.answers import Answer, HttpError, answer_failure, answer_success, choose_status
from sm.web.endpoint import KIB, Call, Endpoint
from sm.web.worker_pools import Worker, WorkerPools

WEBHOOK_LIMIT = 10 * 1024 * KIB
WEBHOOKS_LIMIT = 64 * 1024 * KIB
"""Bytes of all webhooks that are being read: anyone who reaches the server may send them."""
WAIT_S = 60.0
"""Seconds that an action waits for others of its pool; after that it is not begun any more."""
ACTION_S = 60.0
"""Seconds after which a client is told that the action goes on without it."""


def _of_directory(call: Call[shapes.NewSession]) -> str:
    """Name a pool for each directory: one that does not answer holds up nothing elsewhere."""
    return str(call.body.working_dir)


def _of_all(call: Call[Any]) -> str:
    """Name the pool of what concerns all sessions."""
    return ""


ENDPOINTS = (
    Endpoint(
        "GET", "/sessions", actions.list_sessions, "All sessions.", shapes.Sessions, acts=False
    ),
    Endpoint(
        "GET",
        "/sessions/{session_id}",
        actions.show_session,
        "One session, by id or name.",
        shapes.Session,
        errors=(404,),
        acts=False,
    ),
    Endpoint(
        "GET",
        "/needs",
        actions.list_needs,
        "What waits for a person.",
        shapes.Needs,
        acts=False,
    ),
    Endpoint(
        "GET",
        "/sessions/{session_id}/needs",
        actions.list_needs_of_session,
        "What of that waits in one session.",
        shapes.Needs,
        errors=(404,),
        acts=False,
    ),
    Endpoint(
        "POST",
        "/sessions",
        actions.begin_session,
        "Begin a session that works on no issue.",
        shapes.Session,
        body=shapes.NewSession,
        limit=2048 * KIB,
        errors=(409, 503),
        slow=True,
        pool=_of_directory,
        acts=True,
    ),
    Endpoint(
        "PATCH",
        "/sessions/{session_id}",
        actions.change_session,
        "Change its name, its parent, or whether its context is watched.",
        shapes.Session,
        body=shapes.SessionChange,
        errors=(403, 404),
        acts=True,
    ),
    Endpoint(
        "DELETE",
        "/sessions/{session_id}",
        actions.delete_session,
        "End the session, as a person does.",
        shapes.KillAnswer,
        errors=(404, 409, 503),
        slow=True,
        acts=True,
    ),
    Endpoint(
        "POST",
        "/sessions/{session_id}/handoff",
        actions.schedule_handoff,
        "Replace the session's own context when its turn ends; refusals are in `error`.",
        shapes.HandoffAnswer,
        body=shapes.HandoffRequest,
        acts=True,
    ),
    Endpoint(
        "POST",
        "/sessions/{session_id}/input",
        actions.send_input,
        "Send a message to the session's agent.",
        shapes.InputAnswer,
        body=shapes.InputRequest,
        limit=2048 * KIB,  # for 250,000 characters, most of them escaped
        errors=(404, 409, 503),
        slow=True,
        acts=True,
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
        acts=True,
    ),
    Endpoint(
        "POST",
        "/pause",
        actions.pause_parts,
        "Have everything, projects or sessions rest.",
        shapes.PauseAnswer,
        body=shapes.PauseRequest,
        errors=(403, 503),
        slow=True,
        pool=_of_all,
        acts=True,
    ),
    Endpoint(
        "POST",
        "/resume",
        actions.resume_parts,
        "Let go on what is paused.",
        shapes.PauseAnswer,
        body=shapes.ResumeRequest,
        errors=(403, 409, 503),
        slow=True,
        pool=_of_all,
        acts=True,
    ),
    Endpoint(
        "POST",
        "/hooks/context-usage",
        hook_reports.note_usage,
        "How full an agent's context is, or that it is being summed up.",
        shapes.ContextAnswer,
        body=shapes.ContextUsage,
        acts=True,
    ),
    Endpoint(
        "POST",
        "/hooks/claude",
        hook_reports.run_claude_hook,
        "What the agent CLI told a hook.",
        shapes.HookAnswer,
        body=shapes.HookEvent,
        limit=1024 * KIB,
        acts=True,
    ),
    Endpoint(
        "POST",
        f"{webhooks.PREFIX}{{project}}",
        webhooks.take_webhook,
        "A webhook of the project's forge, signed by it; what matters starts a look at the forge.",
        shapes.WebhookAnswer,
        limit=WEBHOOK_LIMIT,
        errors=(404, 503),
        signed=True,
        status=202,
        acts=True,
    ),
)


class RoutesSite(Struct, frozen=True):
    """Objects of the requests: the machine, receivers of webhooks by project, and their room."""

    machine: Machine
    receivers: Mapping[str, webhooks.Receiver]
    room: bodies.Room


def make_routes(
    machine: Machine, endpoints: Iterable[Endpoint], receivers: Mapping[str, webhooks.Receiver]
) -> list[Route]:
    """Return these endpoints for Starlette, over the sessions of this machine."""
    site = RoutesSite(machine, receivers, bodies.Room(WEBHOOKS_LIMIT))
    quick, slow, signed = WorkerPools(16, 16), WorkerPools(4, 64), WorkerPools(4, 8)

    def choose_pools(endpoint: Endpoint) -> WorkerPools:
        if endpoint.signed:
            return signed
        return slow if endpoint.slow else quick

    return [
        Route(
            each.path,
            functools.partial(_answer, site, each, choose_pools(each)),
            methods=[each.method],
        )
        for each in endpoints
    ]


async def _answer(
    site: RoutesSite, endpoint: Endpoint, pools: WorkerPools, request: Request
) -> Answer:
    try:
        with site.room.share() as share:
            call = await _call(site, endpoint, request, share)
            worker = await _enter(pools, endpoint.pool(call))
            # In the thread, also the answer's encoding, which is slow for a thousand sessions.
            return await _carry_out(
                worker, lambda: answer_success(endpoint.act(call), endpoint.status)
            )
    except SmError as error:
        return answer_failure(choose_status(error), error.message)
    except asyncio.CancelledError:
        return answer_failure(503, "the server stops: nothing was begun")
    except ClientDisconnect:
        return answer_failure(400, "the client has gone")


async def _enter(pools: WorkerPools, pool: str) -> Worker:
    try:
        with anyio.fail_after(WAIT_S):
            return await pools.enter(pool)
    except TimeoutError:
        why = f"not begun: others before it were not done within {WAIT_S:g} s"
        raise HttpError(503, why) from None


async def _carry_out(worker: Worker, act: Callable[[], Answer]) -> Answer:
    try:
        with anyio.fail_after(ACTION_S):
            return await worker.run(act)
    except TimeoutError:
        why = f"not done after {ACTION_S:g} s: it may still be carried out"
        raise HttpError(503, why) from None
    except asyncio.CancelledError:
        raise HttpError(503, "the server stops: it may still be carried out") from None


async def _call(
    site: RoutesSite, endpoint: Endpoint, request: Request, share: bodies.Share
) -> Call[Any]:
    if endpoint.signed:
        return await _receive(site, endpoint, request, share)
    ident = request.path_params.get("session_id", "")
    if endpoint.query:
        return Call(site.machine, ident, bodies.convert(request.query_params, endpoint.query))
    if endpoint.body is None:
        return Call(site.machine, ident, None)
    raw = await bodies.read(request, endpoint.limit)
    return Call(site.machine, ident, bodies.decode(raw, endpoint.body), raw)


async def _receive(
    site: RoutesSite, endpoint: Endpoint, request: Request, share: bodies.Share
) -> Call[webhooks.Delivered]:
    project = request.path_params["project"]
    if (receiver := site.receivers.get(project)) is None:
        raise HttpError(404, "there is nothing here: see /openapi.json")
    raw = await bodies.read(request, endpoint.limit, share)
    delivered = webhooks.Delivered(receiver, webhooks.make_delivery(request, raw))
    return Call(site.machine, project, delivered, raw)
