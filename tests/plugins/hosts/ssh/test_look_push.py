"""What is brought to a node by its clock, and whose wishes are heard."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from sm.issues import placements
from sm.issues.runners import Placement
from sm.plugins.hosts import health
from sm.plugins.hosts.node.adoption import read_share
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.settings import SshHost
from sm.plugins.hosts.ssh import look_push, wishes
from sm.plugins.hosts.ssh.client import SshNode
from sm.plugins.hosts.wire import CallAnswer, NodeRequest
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.e2e.stage import make_stage

if TYPE_CHECKING:
    from sm.plugins.hosts.ssh.channel import NodeChannel

AHEAD_S = 3600.0


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path
    return make_stage(tmp_path, auto=False).project


@pytest.fixture
def box(project: Project) -> SshNode:
    return SshNode(project.root, "box", SshHost(address="nobody"))


def test_the_clock_of_a_node_is_taken_for_no_further_ahead_than_it_is(
    project: Project, box: SshNode
) -> None:
    said_at = time.time() + AHEAD_S
    report = NodeReport(now=said_at - 1, said_at=said_at)
    health.keep_report(box.folder, "harb", report)
    found = look_push._find_ahead_s(box, project)
    assert found is not None
    assert AHEAD_S - 1 < found <= AHEAD_S


def test_an_older_node_is_brought_nothing(project: Project, box: SshNode) -> None:
    health.keep_report(box.folder, "harb", NodeReport(now=time.time()))
    assert look_push._find_ahead_s(box, project) is None


def test_issues_of_earlier_sessions_are_remembered_the_last_ones(box: SshNode) -> None:
    for number in range(40):
        earlier = look_push._remember(box.folder, "harb", [number])
    assert earlier == list(range(9, 39))


def test_a_node_wishes_only_for_projects_of_which_it_has_sessions(project: Project) -> None:
    directory = project.directory
    made = Placement("harb", 7, "dev-harb-7", "ssh", "box", 1, "c" * 40, "dev-harb-7")
    placements.keep(directory, made)
    for host, text in (("oak", '["harb"]'), ("box", '["../harb", "", "shop"]'), ("box", "{")):
        wishes._note(project.root, host, text)
    assert not directory.look_wanted.exists()
    wishes._note(project.root, "box", '["harb"]')
    assert directory.look_wanted.exists()


class Eager:
    """A channel to a node that answers at once, so often; then it has ended."""

    def __init__(self, said: str, times: int) -> None:
        self.said, self.times, self.asked_at = said, times, list[float]()

    async def ask(self, _: NodeRequest) -> CallAnswer:
        self.asked_at.append(time.monotonic())
        code = 0 if len(self.asked_at) < self.times else 1
        return CallAnswer(id=0, code=code, stdout=self.said)


@pytest.mark.parametrize("said", ["[]", '["harb"]', "nonsense"])
def test_a_node_that_answers_at_once_is_not_asked_all_the_time(
    project: Project, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wishes, "APART_S", 0.2)
    channel = Eager(said, times=4)
    asyncio.run(wishes.hear_wishes(cast("NodeChannel", channel), project.root, "box"))
    gaps_s = [after - before for before, after in itertools.pairwise(channel.asked_at)]
    assert len(gaps_s) == 3
    assert min(gaps_s) >= 0.19


def test_a_look_of_another_clock_counts_as_old_as_it_may_be() -> None:
    text = '{"seen":{"taken_at":5},"covers":{},"basis":"","account":"","lasts_s":1}'
    assert read_share(text).seen.taken_at == 5
    assert abs(read_share(text, 30.0).seen.taken_at - (time.time() - 30)) < 5
