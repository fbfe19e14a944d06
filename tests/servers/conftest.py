"""The servers that a run of the tests starts: each once in a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.forge import ForgeServer
from tests.servers.process import Process
from tests.servers.programs import require_program
from tests.servers.woodpecker import WoodpeckerServer


class Servers:
    """The servers by kind, with their runners; each is started when it is first wanted."""

    def __init__(self, folder: Path) -> None:
        """None yet."""
        self._folder = folder
        self._servers: dict[str, ForgeServer] = {}
        self._runners: dict[str, Process] = {}
        self._woodpeckers: dict[str, WoodpeckerServer] = {}
        self._count = 0

    def get(self, kind: str) -> ForgeServer:
        """The server of that kind; skips the test if none is named."""
        program = require_program(kind)
        if kind not in self._servers:
            self._servers[kind] = ForgeServer(kind, program, self._folder / kind)
            self._servers[kind].start()
        return self._servers[kind]

    def run(self, kind: str) -> Process:
        """The runner of that server's own CI; skips the test if none is named."""
        program = require_program(f"{kind} runner")
        if kind not in self._runners:
            self._runners[kind] = self.get(kind).make_runner(program)
            self._runners[kind].start()
        return self._runners[kind]

    def get_woodpecker(self, kind: str) -> WoodpeckerServer:
        """Woodpecker beside a forge of that kind; skips the test if one of them is not named."""
        program, agent = require_program("woodpecker"), require_program("woodpecker agent")
        if kind not in self._woodpeckers:
            folder = self._folder / f"woodpecker-{kind}"
            self._woodpeckers[kind] = WoodpeckerServer(program, agent, self.get(kind), folder)
            self._woodpeckers[kind].start()
        return self._woodpeckers[kind]

    def name_repository(self) -> str:
        """A name that no repository has."""
        self._count += 1
        return f"harb-{self._count}"

    def stop(self) -> None:
        """End all of them."""
        for wood in self._woodpeckers.values():
            wood.stop()
        for one in (*self._runners.values(), *(one.process for one in self._servers.values())):
            one.stop()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"))
    yield found
    found.stop()
