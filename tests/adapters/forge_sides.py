"""The two forges that there are, each with what others do on it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from sm.adapters.forge.local.check_folder import Verdict, fingerprint
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import Check, CheckState
from sm.adapters.forge.protocol import Forge
from sm.store import lock
from sm.store.files import write_json
from tests.adapters.memory_forge import MemoryForge, Server
from tests.hub import Hub

CI = "true"


@dataclass
class LocalSide:
    """The embedded forge. The test is the CI runner of each push."""

    hub: Hub
    running: ExitStack
    runs: dict[str, ExitStack] = field(default_factory=dict)

    def open(self) -> Forge:
        return self.hub.open()

    def admit(self, *authors: str) -> None:
        """Everybody may push: who can write into the folder is a collaborator."""

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        head = self.hub.push(branch, name, content)
        self.begin(head)
        return head

    def begin(self, head: str) -> None:
        """Be at work on a commit as CI."""
        folder = self.hub.open().checks.folder(head)
        folder.path.mkdir(parents=True)
        self.runs[head] = self.running.enter_context(ExitStack())
        self.runs[head].enter_context(lock.hold(folder.lock))

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        forge = self.hub.open()
        folder, of = forge.checks.folder(head), fingerprint(forge.checks.command or "")
        folder.log.write_text(log)
        write_json(folder.result, Verdict(state, step, 0, time.time(), of=of))
        self.runs[head].close()
        forge.folder.touch()


@dataclass
class MemorySide:
    """The forge in memory, beside the same repository."""

    hub: Hub
    server: Server

    def open(self) -> Forge:
        return MemoryForge(self.server)

    def admit(self, *authors: str) -> None:
        self.server.writers |= set(authors)

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        return self.hub.push(branch, name, content)

    def begin(self, head: str) -> None:
        """CI is elsewhere."""

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        self.server.finish(Check(state, head, step, "https://ci.example.com/1", log, time.time()))


def memory_side(hub: Hub) -> MemorySide:
    """A forge in memory for the repository of `hub`."""
    return MemorySide(hub, Server(BareRepository(hub.repository.bare)))
