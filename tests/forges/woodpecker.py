"""A small Woodpecker that keeps state: pipelines, workflows, steps and logs, and another run."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.forges.description import Description, describe
from tests.forges.server import Asked, Reply, Site, serving

REPOSITORY = 17
"""Its own id of the repository, which is not the forge's."""
FIRST_UNBEGUN = 1000
PAGE = b"<!DOCTYPE html><html><title>Woodpecker</title></html>"


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
    errors: list[str] = field(default_factory=list)
    unbegun: dict[str, str] = field(default_factory=dict)
    """Commits whose pipelines could not begin, and why; no status is written for them
    (`updatePipelineWithErr` in `server/pipeline/create.go`)."""
    reruns: list[int] = field(default_factory=list)
    may_rerun: bool = True
    description: Description = field(default_factory=lambda: describe("woodpecker.json"))
    site: Site | None = None

    def respond(self, asked: Asked) -> Reply:
        """The answer to a request; its start page for a path that it does not know."""
        path = asked.path.removeprefix("/api")
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, raw=b"User not authorized")
        known = re.fullmatch(r"/repos/lookup/(.+)", path)
        if known:
            found = known[1] == self.name
            reply = Reply(data={"id": REPOSITORY, "full_name": self.name}) if found else Reply(404)
        else:
            self.description.check_request(asked.method, path, asked.query, asked.data)
            reply = self._in_repository(asked, path)
        if reply.data is not None and not known:
            reply.data = self.description.complete(asked.method, path, reply.status, reply.data)
        return reply

    def _in_repository(self, asked: Asked, path: str) -> Reply:
        if path == f"/repos/{REPOSITORY}/pipelines":
            return Reply(data=[self._unbegun(commit) for commit in self.unbegun])
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/pipelines/(\d+)", path):
            number = int(found[1])
            if number > FIRST_UNBEGUN:
                return Reply(data=self._unbegun(list(self.unbegun)[number - FIRST_UNBEGUN - 1]))
            if asked.method == "POST":
                if not self.may_rerun:
                    return Reply(403, {"message": "no push access"})
                self.reruns.append(number)
            return Reply(data=self._pipeline(number))
        if found := re.fullmatch(rf"/repos/{REPOSITORY}/logs/(\d+)/(\d+)", path):
            steps = [one for one in self.steps[int(found[1])] if one.id == int(found[2])]
            return _answer_log(steps[0]) if steps else Reply(404)
        return Reply(raw=PAGE, headers={"Content-Type": "text/html"})

    def _unbegun(self, commit: str) -> dict[str, Any]:
        place = list(self.unbegun).index(commit) + 1
        errors = [{"type": "compiler", "message": self.unbegun[commit], "is_warning": False}]
        number = FIRST_UNBEGUN + place
        found = {"id": number, "number": number, "status": "error", "commit": commit}
        return found | {"errors": errors, "created": int(time.time())}

    def _pipeline(self, number: int) -> dict[str, Any]:
        steps = self.steps[number]
        bad = any(one.state == "failure" for one in steps)
        state = "failure" if bad else "success"
        flows = [
            {"id": axis + 1, "pid": axis + 1, "name": "test", "state": state}
            | {"children": [_step_data(one) for one in steps if one.axis == axis]}
            for axis in sorted({one.axis for one in steps} or {0})
        ]
        errors = [{"message": said, "is_warning": False} for said in self.errors]
        found = {"id": 900 + number, "number": number, "status": state, "workflows": flows}
        return found | {"errors": errors}


def _step_data(step: Made) -> dict[str, Any]:
    found = {"id": step.id, "pid": step.id - 60, "name": step.name, "state": step.state}
    return found | {"type": step.type, "error": step.error}


def _answer_log(step: Made) -> Reply:
    """A step that has no log is `null`: `LogFind` in `server/services/log/file/file.go`."""
    if step.log is None:
        return Reply(raw=b"null")
    return Reply(data=list(_lines(step, step.log)))


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
