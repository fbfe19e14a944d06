"""A journey on any of the forges: the passes and ticks run in the process of the test.

It holds the monitor's lock. So they meet the forge in memory, too, which no other process knows of.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from sm.adapters.forge.model import CheckState, PullRequest
from sm.base.issue_id import IssueId
from sm.issues.act.reactor import react
from sm.issues.look.snapshot import snapshot
from sm.issues.poll import tick
from sm.issues.start import put_on_record
from sm.sessions.project import Project
from sm.store import journal, lock
from sm.store.events import Event
from sm.views.event_words import describe, name_event
from tests.adapters.forge_sides import LocalSide, MemorySide
from tests.e2e.stage import Stage
from tests.forges.sides import KINDS, PARTS, RemoteSide
from tests.helpers import wait_for

REMOTE = tuple(kind for kind in KINDS if kind != "forgejo" or "SM_SOAK_MESSAGES" in os.environ)
"""Those with an API. What reads and writes a Forgejo is what does that with a Gitea: a journey on
it shows what tests/adapters/test_forge_contract.py does with both, and is for bin/soak.
"""
IN_MEMORY = pytest.mark.parametrize("play", ["memory"], indirect=True)
ELSEWHERE = pytest.mark.parametrize("play", ["memory", *REMOTE], indirect=True)
"""On the embedded forge everybody may write, and all is read each time."""
GITHUB = pytest.mark.parametrize("play", ["github"], indirect=True)


class Counted:
    """A forge whose calls are counted, or a part of one."""

    def __init__(self, forge: object, calls: Counter[str]) -> None:
        self._forge, self._calls = forge, calls

    def __getattr__(self, name: str) -> object:
        found = getattr(self._forge, name)
        if name in PARTS:
            return Counted(found, self._calls)

        def call(*args: object, **kwargs: object) -> object:
            self._calls[name] += 1
            return found(*args, **kwargs)

        return call


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
        issue = self.side.open().issues.add(title, body, ["backlog"], author="ada")
        said = list(tick(self.anew(), dry_run=True))
        assert said == [f"would pick up #{issue.number} {title}"]
        session = put_on_record(self.project, issue)
        self.running.enter_context(lock.hold(session.dir.monitor_lock))
        seen_anew(self)  # on some forges what others file shows only after the interval
        assert list(tick(self.anew())) == [f"finish the start of #{issue.number} {title}"]
        return int(issue.number)

    def push(self, issue: int, content: str, phase: str) -> str:
        head = self.stage.push_work(issue, content=content)
        self.side.begin(head)
        self.stage.write_phase(issue, phase)
        self.react(issue)
        return head

    def react(self, issue: IssueId) -> None:
        react(self.anew(), f"dev-harb-{issue}")

    def hears(self, issue: int, words: str) -> str:
        """What the agent is told that has these words; passes go on until it was typed."""

        def told() -> str:
            self.react(issue)
            heard = self.stage.told(session=f"dev-harb-{issue}")
            return next((text for text in heard if words in text), "")

        return wait_for(told, f"'{words}' to reach the agent")

    def decided(self, issue: int = 0) -> list[str]:
        """The rows of the matrix that were taken, for one issue or for all."""
        events = [one for one in journal.read(self.project.root.journal) if _is_of(one, issue)]
        return [describe(event).split(" ")[0] for event in events if name_event(event) == "decided"]

    def check(self, head: str, state: CheckState = CheckState.SUCCESS, log: str = "") -> None:
        """CI comes to a result, and is looked at."""
        self.side.finish(head, state, "build", log)
        seen_anew(self)

    def pull_of(self, issue: int) -> PullRequest:
        """The pull request of the issue's branch."""
        found = self.side.open().pulls.find_newest(f"fix/{issue}")
        assert found
        return found

    def wait_for_end(self, issue: int) -> None:
        """Passes go on until the session is over."""

        def is_over() -> bool:
            self.react(issue)
            return not self.stage.sessions()

        wait_for(is_over, "the end of the session")


def _is_of(event: Event, issue: int) -> bool:
    return not issue or event.session == f"dev-harb-{issue}"


def seen_anew(play: Play) -> None:
    """Have the interval be over: a forge elsewhere is not looked at before."""
    snapshot(play.anew(), newer_than=time.time())
