"""A runner whose hosts are folders: what runs there is a file, in which a test says how it does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec import structs

from sm.base import plugin
from sm.base.errors import TemporaryError
from sm.base.plugin import Plugin, Registry
from sm.issues.runners import (
    Hindrance,
    KnownState,
    NoAnswerError,
    NodeAnswer,
    NodeRefusedError,
    NodeRow,
    Placement,
    Runner,
    Standing,
)
from sm.plugins.hosts.plugin import PLUGIN as HOSTS
from sm.sessions.project import Project
from tests.helpers import wait_for


class Farm:
    """A `Runner` in the folder that SM_TEST_FARM names; each folder in it is a host."""

    shown: Mapping[str, NodeRow] = MappingProxyType({})
    """What a test has it show."""
    hindrances: Sequence[Hindrance] = ()
    """What a test has be in the way of its hosts."""

    @property
    def folder(self) -> Path:
        """Where the hosts are."""
        return Path(os.environ["SM_TEST_FARM"])

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return the hosts with a file `free`, as often as that says, less what is there."""
        self._note("list_free")
        found = []
        for host in sorted(one for one in self.folder.iterdir() if (one / "free").exists()):
            used = sum(one.host == host.name for one in placements)
            found += [host.name] * max(0, int((host / "free").read_text()) - used)
        return found

    def place(self, project: Project, placement: Placement) -> Placement:
        """Begin it, or find that it runs."""
        self._note(f"place {placement.issue} {placement.attempt} {placement.host}")
        host = self.folder / placement.host
        if (host / "away").exists():
            raise TemporaryError("it does not answer")
        if (host / "refuses").exists():
            words = (host / "refuses").read_text()
            raise NodeRefusedError(words, of_host=not words.startswith("issue"))
        if (host / "meets").exists():
            wait_for(lambda: list(self.folder.glob("*/meeting")), "another host")
        (host / "meeting").touch()
        handle = f"{placement.session}.{placement.attempt}"
        if not (host / handle).exists():
            (host / handle).write_text(Standing.RUNNING)
        return structs.replace(placement, handle=handle)

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Say what the files say."""
        self._note(f"follow {len(placements)}")
        if (self.folder / "mute").exists():
            raise TemporaryError("it does not answer")
        return {one.session: self._read(one) for one in placements}

    def _read(self, placement: Placement) -> KnownState:
        host = self.folder / placement.host
        if (host / "away").exists():
            standing = Standing((host / "away").read_text())
            return KnownState(standing, placement.host, (host / "away").stat().st_mtime)
        path = host / placement.handle
        said = Standing(path.read_text()) if path.exists() else Standing.OVER
        return KnownState(said, placement.host, time.time())

    def show(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, NodeRow]:
        """Nothing is shown of a file, unless a test says what."""
        return self.shown

    def list_hindrances(self, project: Project) -> Sequence[Hindrance]:
        """Say what the test has said."""
        return self.hindrances

    def call(
        self,
        project: Project,
        placement: Placement,
        argv: Sequence[str],
        stdin: str = "",
        *,
        patience_s: float | None = None,
        silent_s: float | None = None,
    ) -> NodeAnswer:
        """Say what was asked, or what the host's file `answer` says: an exit code, and a text."""
        self._note(f"call {' '.join(argv)} < {stdin}")
        host = self.folder / placement.host
        if (host / "away").exists():
            raise NoAnswerError("it does not answer", sent=(host / "doubt").exists())
        if (host / "answer").exists():
            code, _, said = (host / "answer").read_text().partition(" ")
            return NodeAnswer(int(code), said, said if int(code) else "")
        return NodeAnswer(0, " ".join(argv), "")

    def attach(
        self, project: Project, placement: Placement, *, read_only: bool = False
    ) -> list[str]:
        """Return a command that does nothing."""
        return ["true"]

    def stream(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the same."""
        return ["true"]

    def end(self, project: Project, placement: Placement) -> None:
        """End it."""
        self._note(f"end {placement.issue} {placement.attempt} {placement.host}")
        (self.folder / placement.host / placement.handle).unlink(missing_ok=True)

    def _note(self, what: str) -> None:
        with (self.folder / "calls").open("a") as file:
            file.write(f"{what}\n")

    # What a test does

    def add(self, name: str, places: int) -> None:
        """Add a host."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "free").write_text(str(places))

    def say(self, placement: Placement, standing: Standing) -> None:
        """Have a session stand so."""
        (self.folder / placement.host / placement.handle).write_text(standing)

    def lose(self, name: str, standing: Standing = Standing.LOST) -> None:
        """Have a host be away."""
        (self.folder / name / "away").write_text(standing)
        (self.folder / name / "free").unlink(missing_ok=True)

    def list_running(self) -> list[str]:
        """Return what runs on hosts that are not away: 'HOST SESSION.ATTEMPT'."""
        hosts = (one for one in self.folder.iterdir() if one.is_dir())
        there = (one for one in hosts if not (one / "away").exists())
        return sorted(f"{one.name} {path.name}" for one in there for path in one.glob("dev-*"))

    def list_calls(self) -> list[str]:
        """Return what was asked, in order."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


RUNNER = Farm()
_CHECKED: Runner = RUNNER
PLUGIN = Plugin(
    runners={"farm": f"{__name__}:RUNNER"},
    dispatchers=HOSTS.dispatchers,  # once, also where the plugin itself is in use
    places=HOSTS.places,
)


def use_farm(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    find_others: Callable[[], Iterable[tuple[str, str]]] = tuple,
) -> Farm:
    """Have issues be placed in `folder`, where host `one` has two places; with other plugins."""
    place = folder / "farm"
    place.mkdir()
    monkeypatch.setenv("SM_TEST_FARM", str(place))
    places = ("farm", f"{__name__}:PLUGIN")
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: [*find_others(), places]))
    for name in ("shown", "hindrances"):  # what a test sets of them ends with it
        monkeypatch.setattr(RUNNER, name, getattr(Farm, name))
    RUNNER.add("one", 2)
    return RUNNER
