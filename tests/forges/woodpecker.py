"""A small Woodpecker that keeps state: pipelines, workflows, steps and logs, and another run."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.forges.description import Description, describe
from tests.forges.server import Asked, Reply, Site, serving

REPOSITORY = 17
"""Its own id of the repository, which is not the forge's."""
FIRST_UNBEGUN = 1000
PAGE = b"<!DOCTYPE html><html><title>Woodpecker</title></html>"
Handler = Callable[["Woodpecker", Asked, tuple[str, ...]], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Answer requests to `path`, which begins behind `/api`."""

    def keep(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(path), handler))
        return handler

    return keep


def describe_woodpecker() -> Description:
    """Woodpecker's own description, corrected: without an error, `errors` is null (recorded)."""
    found = describe("woodpecker.json")
    found.data["components"]["schemas"]["Pipeline"]["properties"]["errors"]["type"] = [
        "array",
        "null",
    ]
    return found


@dataclass
class Made:
    """A step; its id is not its place in the pipeline.

    `log` is None for one that has never begun. Then `error` says why (`server/model/step.go`).
    """

    id: int
    name: str
    state: str
    log: str | None = ""
    type: str = "commands"
    error: str = ""
    axis: int = 0
    """Of which combination of the matrix; each is a workflow of its own."""


@dataclass
class Woodpecker:
    """The server's side."""

    name: str = "harbor/harb"
    token: str = "wood-token-77"
    steps: dict[int, list[Made]] = field(default_factory=dict)
    """Of each pipeline. All of its workflows are called `test`."""
    commits: dict[int, str] = field(default_factory=dict)
    """Of each pipeline, as far as a test says so."""
    errors: list[str] = field(default_factory=list)
    unbegun: dict[str, str] = field(default_factory=dict)
    """Commits whose pipelines could not begin, and why; no status is written for them
    (`updatePipelineWithErr` in `server/pipeline/create.go`)."""
    reruns: list[int] = field(default_factory=list)
    may_rerun: bool = True
    description: Description = field(default_factory=describe_woodpecker)
    site: Site | None = None

    def respond(self, asked: Asked) -> Reply:
        """The answer to a request; its start page for a path that it does not know."""
        path = asked.path.removeprefix("/api")
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, raw=b"User not authorized")
        self.description.check_request(asked.method, path, asked.query, asked.data)
        for method, pattern, handler in ROUTES:
            if method == asked.method and (found := pattern.fullmatch(path)):
                reply = handler(self, asked, found.groups())
                break
        else:
            reply = Reply(raw=PAGE, headers={"Content-Type": "text/html"})
        if reply.data is not None:
            reply.data = self.description.complete(asked.method, path, reply.status, reply.data)
        return reply

    def unbegun_data(self, commit: str) -> dict[str, Any]:
        """A pipeline that could not begin."""
        place = list(self.unbegun).index(commit) + 1
        errors = [{"type": "compiler", "message": self.unbegun[commit], "is_warning": False}]
        number = FIRST_UNBEGUN + place
        found = {"id": number, "number": number, "status": "error", "commit": commit}
        return found | {"errors": errors, "created": int(time.time())}

    def pipeline(self, number: int) -> dict[str, Any]:
        """A pipeline that has begun."""
        steps = self.steps[number]
        states = {one.state for one in steps}
        state = next((one for one in ("blocked", "pending", "failure") if one in states), "success")
        flows = [
            {"id": axis + 1, "pid": axis + 1, "name": "test", "state": state}
            | {"children": [_step_data(one) for one in steps if one.axis == axis]}
            for axis in sorted({one.axis for one in steps} or {0})
        ]
        errors = [{"message": said, "is_warning": False} for said in self.errors]
        found = {"id": 900 + number, "number": number, "status": state, "workflows": flows}
        found |= {"errors": errors or None, "commit": self.commits.get(number, "")}
        return found | {"created": int(time.time())}


@route("GET", "/repos/lookup/(.+)")
def look_up(server: Woodpecker, asked: Asked, at: tuple[str, ...]) -> Reply:
    """Look a repository up by its name; the id is its own."""
    if at[0] != server.name:
        return Reply(404)
    return Reply(data={"id": REPOSITORY, "full_name": server.name})


@route("GET", "/repos/17/pipelines")
def show_all(server: Woodpecker, asked: Asked, at: tuple[str, ...]) -> Reply:
    """List the pipelines in that state, the last one first, without their workflows."""
    begun = map(server.pipeline, sorted(server.steps, reverse=True))
    found = [*map(server.unbegun_data, server.unbegun), *begun]
    wanted = asked.query.get("status")
    for one in found:
        one.pop("workflows", None)
    return Reply(data=[one for one in found if wanted in (None, one["status"])])


@route("GET", "/repos/17/pipelines/([0-9]+)")
def show(server: Woodpecker, asked: Asked, at: tuple[str, ...]) -> Reply:
    """Show a pipeline."""
    if int(at[0]) > FIRST_UNBEGUN:
        commit = list(server.unbegun)[int(at[0]) - FIRST_UNBEGUN - 1]
        return Reply(data=server.unbegun_data(commit))
    return Reply(data=server.pipeline(int(at[0])))


@route("POST", "/repos/17/pipelines/([0-9]+)")
def rerun(server: Woodpecker, asked: Asked, at: tuple[str, ...]) -> Reply:
    """Run a pipeline again; for whom may not push there is none (`MustPush`)."""
    if not server.may_rerun:
        return Reply(404)
    server.reruns.append(int(at[0]))
    made = max(server.steps) + 1
    server.steps[made] = [replace(one, state="pending") for one in server.steps[int(at[0])]]
    return Reply(data=server.pipeline(made))


@route("GET", "/repos/17/logs/([0-9]+)/([0-9]+)")
def show_log(server: Woodpecker, asked: Asked, at: tuple[str, ...]) -> Reply:
    """Show a log. A step that has none is `null`: `server/services/log/file/file.go`."""
    step = next((one for one in server.steps[int(at[0])] if one.id == int(at[1])), None)
    if step is None:
        return Reply(404)
    if step.log is None:
        return Reply(raw=b"null")
    return Reply(data=list(_lines(step, step.log)))


def _step_data(step: Made) -> dict[str, Any]:
    found = {"id": step.id, "pid": step.id - 60, "name": step.name, "state": step.state}
    return found | {"type": step.type} | ({"error": step.error} if step.error else {})


def _lines(step: Made, log: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(log.splitlines()):
        data = base64.b64encode(line.encode()).decode()
        yield {"id": number + 1, "step_id": step.id, "line": number, "data": data, "time": 1}


@contextmanager
def woodpecker() -> Iterator[tuple[Woodpecker, Site]]:
    """A Woodpecker until the end of the block; no exchange may be one that it does not describe."""
    server = Woodpecker()
    with serving(server.respond) as site:
        yield server, site
    if server.description.problems:
        pytest.fail("\n".join(server.description.problems[:20]))
