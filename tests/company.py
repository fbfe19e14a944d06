"""Sessions for tests of messages: a configuration of peers, and `sm` as a person calls it."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import yaml

from sm.messages import wait as until
from sm.sessions import address
from sm.sessions.session import AnySession
from sm.store.paths import Root
from tests.forked import run_sm
from tests.helpers import HANG_S, wait_for
from tests.helpers import REPOSITORY as REPOSITORY
from tests.teardown import end_sessions

PEER = Path(__file__).with_name("peer.py")
DEAF = "trap '' HUP; printf '❯ '; exec tail -f /dev/null"
"""An agent that shows its prompt, hears nothing, and outlives its terminal."""
WRAPPER = '"$0" "$@"; exec tail -f /dev/null'
"""A script around an agent CLI, which leaves something that runs."""
SM = f"{sys.executable} -Im sm"


@dataclass
class Company:
    """Everything of one test; `config` None: there is none."""

    folder: Path
    root: Root
    config: Path

    def sm(
        self,
        *args: str,
        code: int | None = 0,
        stdin: str = "",
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Run `sm` as a person; `code` is the exit code that it must have, None: any."""
        own = os.environ | {"SM_CONFIG": str(self.config)} | dict(env)
        done = run_sm(*args, env=own, cwd=self.folder, stdin=stdin)
        assert code is None or done.returncode == code, (
            f"{done.returncode} {done.stdout}{done.stderr}"
        )
        return done

    def configure(self, **sections: object) -> None:
        """Put sections into the machine's configuration."""
        known = yaml.safe_load(self.config.read_text())
        self.config.write_text(yaml.safe_dump(known | sections))

    def new(self, name: str = "", *, provider: str = "peer", prompt: str = "") -> str:
        """Begin a session that is ready for messages; returns its id."""
        named = ["--name", name] if name else []
        done = self.sm("new", "--provider", provider, *named, "--", prompt)
        ident = done.stdout.split()[0]
        self.wait(ident)
        wait_for(self.session(ident).dir.seen.exists, "the monitor's first pass")
        return ident

    def wait(self, session: str) -> None:
        """What `sm wait` does, without a process of its own."""
        came = until.await_event(self.session(session), until.AwaitedEvent.IDLE, HANG_S)
        assert came, f"'{session}' did not come to the end of its turn: {came}"

    def session(self, target: str) -> AnySession:
        """The session of that id or name."""
        return address.find(self.root, target)

    def noted(self, session: str, kind: str = "message") -> list[str]:
        """What the agent of that session was told, or ran, in order."""
        mine = (self.session(session).name, kind)
        entries = peers_log(self.folder)
        return [one["text"] for one in entries if (one["session"], one["kind"]) == mine]

    def run_in(self, session: str, command: str) -> str:
        """Have the agent of that session run a command; returns exit code and output."""
        before = len(self.noted(session, "ran"))
        self.sm("send", session, f"Do this.\nrun: {command}")
        ran = wait_for(lambda: self.noted(session, "ran")[before:], f"'{command}'")
        return ran[0]

    def send_from(self, session: str, target: str, text: str, *options: str) -> str:
        """Have the agent of one session send something to another; returns what came of it."""
        letter = self.folder / f"letter-{secrets.token_hex(4)}"
        letter.write_text(text)
        return self.run_in(session, f"{SM} send {target} {' '.join(options)} - <{letter}")

    def hears(self, session: str, part: str) -> str:
        """Wait until the agent was told something that holds `part`; returns it."""

        def found() -> str:
            return next((text for text in self.noted(session) if part in text), "")

        return wait_for(found, f"{session} to hear '{part}'")

    def end(self) -> None:
        """End all agents and monitors."""
        end_sessions(self.root)


def peers_log(folder: Path) -> list[dict[str, str]]:
    """What the agents of a test have kept, in order; tests/peer.py says what that is."""
    log = folder / "peers.jsonl"
    whole = log.read_text().rpartition("\n")[0] if log.exists() else ""
    return [json.loads(line) for line in whole.split("\n") if line]


def make_company(folder: Path, root: Root) -> Company:
    """Sessions of these agents, which need no more than a folder."""
    config = folder / "machine.yaml"
    config.write_text(yaml.safe_dump({"profiles": profiles(folder)}))
    return Company(folder, root, config)


def transcripts(folder: Path) -> Path:
    """Where peers with hooks write down what is said, if there is that folder."""
    return folder / "transcripts"


def profiles(folder: Path) -> dict[str, dict[str, object]]:
    """Four kinds of agents.

    `peer` has hooks, `wrapped` as well but a script around it, `mute` has none, `deaf` outlives
    its terminal.
    """
    log = f"PEER_LOG={folder / 'peers.jsonl'}"
    mute = ["env", log, sys.executable, str(PEER)]
    hooks_in = f"PEER_HOOKS={REPOSITORY / 'lib' / 'hooks'}"
    peer = ["env", hooks_in, f"PEER_TRANSCRIPTS={transcripts(folder)}", *mute[1:]]
    common: dict[str, object] = {"like": "generic", "busy": ["^working"], "clear": "/clear"}
    hooks = {"hooks": "claude", "settings": ["--settings={file}"], "hook_characters": 9000}
    hooks |= {"tells_of_clear": True}
    return {
        "peer": common | hooks | {"command": shlex.join(peer)},
        "mute": common | {"command": shlex.join(mute)},
        "wrapped": common | hooks | {"command": shlex.join(["bash", "-c", WRAPPER, *peer])},
        "deaf": common | {"command": shlex.join(["bash", "-c", DEAF])},
    }
