"""`sm serve` as a process of a test's own, and a client that sends what no good one would."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.forked import start_sm
from tests.helpers import HANG_S

NOTHING: Mapping[str, str] = MappingProxyType({})
STARTED = ("-Im", "sm")
"""`sm` as people start it."""


class Said(NamedTuple):
    """An answer: its status, its JSON, its headers in lower case."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def get(self, path: str, **headers: str) -> Said:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: object, **headers: str) -> Said:
        return self.ask("POST", path, json.dumps(body).encode(), headers=headers)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> Said:
        """Send a request; a body is called JSON unless the headers call it otherwise."""
        kind = {"Content-Type": "application/json"} if body is not None else {}
        sent = kind | {name.replace("_", "-").title(): text for name, text in headers.items()}
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        with contextlib.closing(client):
            client.request(method, path, body, sent)
            return read(client.getresponse())

    def open(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop it; returns its exit code and what it said on stderr."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, stderr


def read(response: http.client.HTTPResponse) -> Said:
    """A whole answer, which has to be JSON."""
    data = response.read()
    headers = {name.lower(): text for name, text in response.getheaders()}
    assert headers["content-type"] == "application/json", data
    return Said(response.status, json.loads(data) if data else None, headers)


def heard(connection: socket.socket) -> Said:
    """The answer on a bare connection."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return read(response)


@contextlib.contextmanager
def serving(
    folder: Path,
    *options: str,
    verb: tuple[str, ...] = ("serve",),
    env: Mapping[str, str] = NOTHING,
    base: Mapping[str, str] | None = None,
    clean: bool = True,
    program: tuple[str, ...] = (),
    place: tuple[str, ...] = ("--port", "0"),
) -> Iterator[Served]:
    """A server on a free port, with `env` added to the environment, or to `base`.

    `clean`: it has to end without a word on stderr. `program`: what Python is told to run, if it is
    to be a program and no fork of the test's process. `place`: where it listens if not there; its
    URL is then what it says of that.
    """
    words, known = (*verb, *place, *options), dict(os.environ if base is None else base) | dict(env)
    process = (
        subprocess.Popen(
            [sys.executable, *program, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=known,
        )
        if program
        else start_sm(*words, env=known, cwd=folder)
    )
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("listening on "), process.communicate(timeout=HANG_S)
    served = Served(process, line.split()[-1])
    try:
        yield served
    finally:
        if process.poll() is None:
            code, stderr = served.stop()
            assert not clean or (code, stderr) == (0, ""), f"{code} {stderr}"
