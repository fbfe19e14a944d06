"""What is walked on Woodpecker beside a forge: tests to be inherited, and their worlds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from sm.adapters.forge.errors import AtWorkError
from sm.adapters.forge.model import BOT, CheckState
from sm.adapters.forge.protocol import Forge
from sm.plugins.forges.rest.convert import UNAPPROVED
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import RestReader
from tests.forges import woodpecker as fakes
from tests.forges.server import Site
from tests.forges.state import Status
from tests.helpers import wait_for
from tests.servers.sides import FakeSide, ServerSide, World, reopen
from tests.servers.woodpecker import FILE, WoodpeckerServer, write_pipeline

SAID = "the mast is broken"
BROKEN = """
when: [{event: push}]
skip_clone: true
steps: {unit: {image: bash, commands: [pwd], depends_on: [nothing]}}
"""
MISTAKE = "specified dependencies do not exist"
"""A file that is no pipeline, and what Woodpecker says of it."""


class Yard(Protocol):
    """A repository whose CI is Woodpecker."""

    side: World
    url: str

    @property
    def token(self) -> str:
        """The token of our account there."""
        ...

    def run(self, branch: str, *, passes: bool) -> str:
        """Push a pipeline that comes to this end; the commit, once it has."""
        ...

    def break_off(self, branch: str) -> str:
        """Push a file that is no pipeline; the commit."""
        ...

    def hold(self, branch: str) -> str:
        """Push a pipeline that a person has to approve before it begins; the commit."""
        ...


def open_with(yard: Yard) -> RestForge[RestReader]:
    """The forge of our account, with Woodpecker as its CI."""
    file = yard.side.folder / "wood-token"
    file.touch(mode=0o600)
    file.write_text(yard.token)
    made = reopen(yard.side, woodpecker_url=yard.url, woodpecker_token_file=file)
    assert isinstance(made, RestForge)
    return made


def list_pipelines(forge: RestForge[RestReader]) -> list[dict[str, Any]]:
    """The pipelines as Woodpecker lists them, the last one first, but for those of one second."""
    import json

    woodpecker = forge.checks.woodpecker
    assert woodpecker
    answer = woodpecker._web.get(f"{woodpecker._at}/pipelines", "test")
    found = json.loads(answer.body)
    assert isinstance(found, list)
    return found


class Pipelines:
    """The tests. A subclass has the fixture `yard`."""

    def test_a_failed_step_comes_with_its_log_and_is_run_again(self, yard: Yard) -> None:
        head = yard.run("fix/1", passes=False)
        forge = open_with(yard)
        forge.pulls.open("fix/1", "main", "a", author=BOT)
        assert forge.observe().pulls[0].check.state is CheckState.FAILURE
        found = wait_for(lambda: read_once_it_has_come(forge, head), "the log")
        assert found.step.endswith("unit")
        assert SAID in found.log
        forge.checks.rerun(head)
        assert sorted(one["number"] for one in list_pipelines(forge)) == [1, 2]

    def test_a_pipeline_that_passes_is_merged(self, yard: Yard) -> None:
        head = yard.run("fix/1", passes=True)
        forge = open_with(yard)
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        assert forge.pulls.merge(number, head=head, author=BOT).merged_as

    def test_a_file_that_is_no_pipeline_is_an_error_without_a_status(self, yard: Yard) -> None:
        head = yard.break_off("fix/1")
        forge = open_with(yard)
        found = forge.checks.read(head)
        assert (found.state, found.head) == (CheckState.FAILURE, head)
        assert MISTAKE in found.log, found.log

    def test_a_pipeline_that_waits_for_an_approval_says_where(self, yard: Yard) -> None:
        yard.hold("fix/1")
        forge = open_with(yard)
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        [pull] = forge.observe().pulls
        assert pull.check.state is CheckState.PENDING
        assert pull.check.url.startswith(f"{yard.url}/repos/"), pull.check
        assert pull.check.unapproved.startswith("ci/woodpecker"), pull.check
        with pytest.raises(AtWorkError):
            forge.pulls.merge(number, author=BOT)
        with pytest.raises(AtWorkError):
            forge.checks.rerun(pull.head)


def read_once_it_has_come(forge: Forge, head: str) -> Any:
    """What CI says of a commit; None while its log has not come."""
    from sm.adapters.forge.errors import UnreachableError

    try:
        return forge.checks.read(head)
    except UnreachableError:
        return None


@dataclass
class ServerYard:
    """A repository of a real Gitea or Forgejo, and its Woodpecker."""

    side: ServerSide
    server: WoodpeckerServer
    ident: int

    @property
    def url(self) -> str:
        """Where Woodpecker is."""
        return self.server.url

    @property
    def token(self) -> str:
        """The token of our account there."""
        return self.server.token

    def run(self, branch: str, *, passes: bool) -> str:
        """Push a pipeline that comes to this end; the commit, once it has."""
        commands = ["echo all is well"] if passes else [f"echo {SAID}", "exit 3"]
        return self._push(branch, write_pipeline(*commands))

    def break_off(self, branch: str) -> str:
        """Push a file that is no pipeline; the commit."""
        return self._push(branch, BROKEN)

    def hold(self, branch: str) -> str:
        """Push a pipeline that a person has to approve before it begins; the commit."""
        self.server.require_approvals(self.ident)
        return self.run(branch, passes=True)

    def _push(self, branch: str, content: str) -> str:
        head = self.side.push_without_ci(branch, FILE, content)
        self.server.wait_for_end(self.ident, head)
        return head


@dataclass
class FakeYard:
    """The same of our fakes."""

    side: FakeSide
    wood: fakes.Woodpecker
    site: Site

    @property
    def url(self) -> str:
        """Where Woodpecker is."""
        return self.site.url

    @property
    def token(self) -> str:
        """The token of our account there."""
        return self.wood.token

    def run(self, branch: str, *, passes: bool) -> str:
        """Push a pipeline that comes to this end; the commit."""
        number = len(self.wood.steps) + 1
        state, log = ("success", "all is well") if passes else ("failure", SAID)
        self.wood.steps[number] = [fakes.Made(60 + number, "unit", state, log)]
        head = self.side.hub.push(branch, FILE, log)
        status = Status(number, head, "ci/woodpecker/push/woodpecker", state, time.time())
        status.url = f"{self.url}/repos/{fakes.REPOSITORY}/pipeline/{number}/1"
        self.side.state.statuses.append(status)
        self.wood.commits[number] = head
        return head

    def hold(self, branch: str) -> str:
        """Push a pipeline that a person has to approve before it begins; the commit."""
        head = self.run(branch, passes=True)
        [number] = self.wood.commits
        self.wood.steps[number][0].state = "blocked"
        status = self.side.state.statuses[-1]
        status.word, status.text = UNAPPROVED
        return head

    def break_off(self, branch: str) -> str:
        """Push a file that is no pipeline; the commit."""
        head = self.side.hub.push(branch, FILE, BROKEN)
        self.wood.unbegun[head] = f"One or more of the {MISTAKE}"
        return head


@contextmanager
def fake_yard(side: FakeSide) -> Iterator[FakeYard]:
    """A fake of Woodpecker beside that of a Gitea."""
    with fakes.woodpecker() as (wood, site):
        yield FakeYard(side, wood, site)
