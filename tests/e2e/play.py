"""A journey on any of the forges: the passes and ticks run in the process of the test.

It holds the monitor's lock. So they meet the forge in memory, too, which no other process knows of.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from sm.adapters.forge.protocol import Forge
from sm.issues.poll import tick
from sm.issues.reactor import react
from sm.issues.snapshot import snapshot
from sm.issues.start import put_on_record
from sm.sessions.project import Project
from sm.store import journal, lock
from sm.views.event_words import describe, name_event
from tests.adapters.forge_sides import LocalSide, MemorySide
from tests.e2e.stage import Stage
from tests.forges.sides import KINDS as REMOTE
from tests.forges.sides import RemoteSide
from tests.helpers import wait_for

IN_MEMORY = pytest.mark.parametrize("play", ["memory"], indirect=True)
ELSEWHERE = pytest.mark.parametrize("play", ["memory", *REMOTE], indirect=True)
"""On the embedded forge everybody may write, and all is read each time."""
GITHUB = pytest.mark.parametrize("play", ["github"], indirect=True)


class Counted:
    """A forge whose calls are counted."""

    def __init__(self, forge: Forge, calls: Counter[str]) -> None:
        self._forge, self._calls = forge, calls

    def __getattr__(self, name: str) -> object:
        self._calls[name] += 1
        return getattr(self._forge, name)


@dataclass
class Play:
    """A stage with one of the forges."""

    stage: Stage
    side: LocalSide | MemorySide | RemoteSide
    project: Project
    running: ExitStack
    calls: Counter[str] = field(default_factory=Counter)

    def anew(self) -> Project:
        """The project as another process would have it: nothing is remembered."""
        fresh = Project(self.project.config, self.project.settings)
        fresh.__dict__["forge"] = Counted(self.side.open(), self.calls)
        return fresh

    def start(self, title: str = "Mend it", body: str = "It is broken.") -> int:
        """File an issue and have a tick take it up."""
        issue = self.side.open().add_issue(title, body, ["backlog"], author="ada")
        said = list(tick(self.anew(), dry_run=True))
        assert said == [f"would pick up #{issue.number} {title}"]
        session = put_on_record(self.project, issue)
        self.running.enter_context(lock.hold(session.dir.monitor_lock))
        assert list(tick(self.anew())) == [f"finish the start of #{issue.number} {title}"]
        return issue.number

    def push(self, issue: int, content: str, phase: str) -> str:
        head = self.stage.push_work(issue, content=content)
        self.side.begin(head)
        self.stage.write_phase(issue, phase)
        self.react(issue)
        return head

    def react(self, issue: int) -> None:
        react(self.anew(), f"dev-harb-{issue}")

    def hears(self, issue: int, words: str) -> str:
        """What the agent is told that has these words; passes go on until it was typed."""

        def told() -> str:
            self.react(issue)
            return next((text for text in self.stage.told() if words in text), "")

        return wait_for(told, f"'{words}' to reach the agent")

    def decided(self) -> list[str]:
        events = journal.read(self.project.root.journal)
        return [describe(event).split(" ")[0] for event in events if name_event(event) == "decided"]


def seen_anew(play: Play) -> None:
    """Have the interval be over: a forge elsewhere is not looked at before."""
    snapshot(play.anew(), newer_than=time.time())
