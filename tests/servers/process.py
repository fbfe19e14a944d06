"""A server of others as a process on loopback, with all that it keeps in one folder."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.helpers import wait_for

TIMEOUT_S = 120.0
"""As long as one request of the tests themselves may take."""
STOP_S = 30.0
UNREADY = (OSError, http.client.HTTPException)


def environment(home: Path) -> dict[str, str]:
    """What such a program may see of this machine: nothing that belongs to a person."""
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "USER": "git",
    }


class Process:
    """A program that is started, stopped and killed; its output is in `log`."""

    def __init__(
        self, argv: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
    ) -> None:
        """Nothing runs yet."""
        self.argv, self.folder = [str(one) for one in argv], folder
        self.variables = environment(folder) | dict(variables or {})
        self.log = folder / f"{Path(self.argv[0]).name}.log"
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, with whatever it starts itself in a group of its own."""
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self, number: signal.Signals) -> None:
        """Send its group a signal, and wait for its end."""
        running, self._running = self._running, None
        if running is None or running.poll() is not None:
            return
        os.killpg(running.pid, number)
        try:
            running.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait(STOP_S)

    def stop(self) -> None:
        """End it as an administrator does."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.end(signal.SIGKILL)

    def run(self, *args: str | Path) -> str:
        """Run the program once with other arguments; what it printed."""
        argv = [self.argv[0], *(str(one) for one in args)]
        done = subprocess.run(
            argv, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def tail(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-3000:]


class RefusalError(AssertionError):
    """A server has refused what a test has asked of it beside `sm`."""

    def __init__(self, status: int, words: str) -> None:
        """What it answered."""
        super().__init__(words)
        self.status = status


def send(
    port: int,
    method: str,
    path: str,
    body: object = None,
    *,
    token: str = "",
    password: tuple[str, str] | None = None,
) -> Any:
    """One request to a server on loopback; the JSON of its answer, or its text."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = token
    if password:
        headers["Authorization"] = "Basic " + b64encode(":".join(password).encode()).decode()
    data = None if body is None else json.dumps(body)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as client:
        client.request(method, path, data, headers)
        answer = client.getresponse()
        said = answer.read()
    if answer.status >= 300:
        raise RefusalError(answer.status, f"{method} {path}: {answer.status} {said[:500]!r}")
    is_json = "json" in answer.headers.get("Content-Type", "")
    return json.loads(said) if said and is_json else said.decode(errors="replace")


def wait_until_it_answers(process: Process, port: int, path: str) -> None:
    """Wait until a server answers a request for `path`."""

    def answers() -> bool:
        running = process._running
        assert running is not None
        assert running.poll() is None, process.tail()
        try:
            send(port, "GET", path)
        except UNREADY:
            return False
        except RefusalError as error:
            return error.status < 500
        return True

    wait_for(answers, f"{process.argv[0]}: see {process.log}")
