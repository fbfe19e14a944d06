"""Driving the hooks of lib/hooks: as processes, with payloads captured from the real client."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sm.sessions.agent_hooks import HOOKS, STATUS_LINE
from sm.store.paths import Root, SessionDir
from tests.helpers import HANG_S
from tests.shell import REPOSITORY

FOLDER = REPOSITORY / "lib" / "hooks"
PAYLOADS = REPOSITORY / "tests" / "payloads"
CONTEXT = "0c7e1a52-0000-4000-8000-000000000001"
PROMPT = "0c7e1a52-0000-4000-8000-00000000000a"
OTHER = "0c7e1a52-0000-4000-8000-000000000002"
NAME = "dev-shop-7"

FILES = HOOKS | {"statusline": STATUS_LINE}


def payload(sample: str, **changes: object) -> bytes:
    """A captured payload as the client sends it, with some of its values changed."""
    raw = (PAYLOADS / f"{sample}.json").read_bytes()
    return encode(json.loads(raw) | changes) if changes else raw


def encode(value: Mapping[str, object]) -> bytes:
    """As JavaScript's JSON.stringify has it, and a newline."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@dataclass
class Hooks:
    """The hooks of one session; every call must end with 0 and be silent on stderr."""

    root: Root
    name: str = NAME
    env: dict[str, str] = field(default_factory=dict)

    @property
    def dir(self) -> SessionDir:
        return self.root.session(self.name)

    @property
    def marker(self) -> Path:
        return self.root.idle_marker(self.name)

    def make(self) -> Hooks:
        """The session's directory as sm makes it, its agent just launched."""
        self.dir.path.mkdir(mode=0o700, parents=True)
        self.root.private.chmod(0o700)
        for folder in ("tmp", "new", "cur", "done"):
            (self.dir.queue / folder).mkdir(parents=True)
        self.dir.accepted.mkdir()
        os.mkfifo(self.dir.wake)
        self.be("starting", context="-", prompt="-")
        return self

    def be(self, state: str, context: str = CONTEXT, prompt: str = PROMPT) -> None:
        """Put the agent into a state."""
        self.dir.state.write_text(f"{state} 1000.0 {context} {prompt}\n")

    def call(self, sample: str, /, **changes: object) -> str:
        """Call the hook for a captured payload; returns what it answered."""
        return self.send(sample, payload(sample, **changes))

    def send(self, sample: str, data: bytes) -> str:
        """Call the hook for `sample` with a payload of one's own."""
        done = subprocess.run(
            self.argv(sample),
            input=data,
            capture_output=True,
            env=self.environment(),
            timeout=HANG_S,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def poked(self, sample: str) -> bytes:
        """What the hook for `sample` writes into the FIFO."""
        wake = os.open(self.dir.wake, os.O_RDWR | os.O_NONBLOCK)
        try:
            self.call(sample)
            return os.read(wake, 100)
        except BlockingIOError:
            return b""
        finally:
            os.close(wake)

    def argv(self, sample: str) -> list[str]:
        return ["bash", "-p", str(FOLDER / FILES[sample.partition("_")[0]])]

    def environment(self) -> dict[str, str]:
        return os.environ | {"SM_SESSION_DIR": str(self.dir.path)} | self.env

    @property
    def state(self) -> str:
        return self.words[0]

    @property
    def words(self) -> list[str]:
        """The state file's first line: state, since, context, prompt."""
        return self.dir.state.read_text().split("\n")[0].split()

    @property
    def events(self) -> list[str]:
        """`EVENT DETAIL` of every event."""
        lines = [line.split(" ") for line in self.dir.events.read_text().splitlines()]
        return [f"{event} {detail}" for _, event, _, detail in lines]

    def queue(
        self, text: str, mode: str = "sequential", ident: str = "", at: int = 0, shown: str = ""
    ) -> str:
        """Put a message into the queue, with what is shown of it if anything is; returns its id."""
        at = at or time.time_ns()
        ident = ident or f"m{at}"
        size = len(text.encode("utf-16-le")) // 2
        envelope = encode({"size": size, "id": ident, "mode": mode, "sender": '"size":1'})
        file = self.dir.queue / "new" / f"{at:019d}-{ident}.{mode}"
        view = json.dumps(shown).encode() + b"\n" if shown else b""
        file.write_bytes(json.dumps(text).encode() + b"\n" + envelope + view)
        if mode == "steer":
            self.dir.steer.write_text("yes\n")
        return ident

    def waiting(self, place: str = "new") -> list[str]:
        """The ids in a folder of the queue, by age."""
        names = sorted(path.name for path in (self.dir.queue / place).iterdir())
        return [name.partition("-")[2].partition(".")[0] for name in names]

    def accepted(self) -> set[str]:
        return {path.name for path in self.dir.accepted.iterdir()}


def context_of(answer: str, event: str) -> str:
    """The text that an answer adds to the agent's context."""
    found: dict[str, Any] = json.loads(answer)
    assert set(found) <= {"hookSpecificOutput", "systemMessage"}
    assert found["hookSpecificOutput"]["hookEventName"] == event
    return str(found["hookSpecificOutput"]["additionalContext"])


def shown_by(answer: str) -> str | None:
    """What an answer shows to a person; None where that is left to the client."""
    found: str | None = json.loads(answer).get("systemMessage")
    return found
