"""Many hosts: one process has the channels to all, and their sessions begin side by side."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.issues import placements, poll
from sm.issues.runners import NoAnswerError
from sm.plugins.hosts.folder import LinkFiles
from sm.plugins.hosts.ssh import link, links
from sm.plugins.hosts.ssh.client import Patience, SshNode, ask
from sm.plugins.hosts.ssh.node import list_nodes
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git, wait_for
from tests.plugins.hosts.conftest import end_link, find_link
from tests.plugins.hosts.crowd import Crowd, gathered

HOSTS, SESSIONS = 6, 2

pytestmark = pytest.mark.long_lived


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    assert root.path
    return make_stage(tmp_path, auto=False)


@pytest.fixture
def crowd(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    with gathered(tmp_path, stage.config, HOSTS, SESSIONS) as (made, programs):
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        try:
            yield made
        finally:
            end_link(list_nodes(stage.project.config)[0])


@pytest.fixture
def nodes(stage: Stage, crowd: Crowd) -> list[SshNode]:
    assert crowd.port
    return list_nodes(stage.project.config)


def test_one_process_has_all_channels_and_a_silent_host_holds_up_no_other(
    nodes: list[SshNode], crowd: Crowd
) -> None:
    for node in nodes:
        assert ask(node, ["anything"]).code == 0
    assert len(crowd.open) == len(nodes) == HOSTS
    process = find_link(nodes[0])
    crowd.mute.add(nodes[0].name)

    def ask_in_vain() -> None:
        with pytest.raises(NoAnswerError):
            ask(nodes[0], ["anything"], patience=Patience(silent_s=8.0))

    waiting = [threading.Thread(target=ask_in_vain) for _ in range(4)]
    for one in waiting:
        one.start()
    began = time.monotonic()
    for node in nodes[1:]:
        assert ask(node, ["anything"]).code == 0
    assert time.monotonic() - began < 6.0
    for one in waiting:
        one.join()
    assert find_link(nodes[0]) == process


def test_a_channel_that_nobody_uses_is_closed_alone(
    nodes: list[SshNode], crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "REST_S", 1.0)
    monkeypatch.setattr(links, "LOOK_S", 0.1)
    serving = threading.Thread(target=links.serve, args=[nodes[0].root])
    serving.start()
    wait_for(LinkFiles(nodes[0].root).socket.exists, "the links")
    used, unused = nodes[:2]
    ask(unused, ["anything"])

    def is_closed() -> bool:
        ask(used, ["anything"])
        return not crowd.open[unused.name]

    wait_for(is_closed, "the unused channel's end")
    assert crowd.open[used.name] == 1
    assert ask(unused, ["anything"]).code == 0, "it is opened again"
    serving.join(20)
    assert not serving.is_alive(), "the last one ends the process"


def test_issues_are_claimed_and_begun_on_all_hosts_side_by_side(stage: Stage, crowd: Crowd) -> None:
    for _ in range(HOSTS * SESSIONS):
        stage.file_issue()
    lines = [str(line) for line in poll.tick(stage.project)]
    assert len([one for one in lines if one.startswith("placed #")]) == HOSTS * SESSIONS, lines
    assert {len(sessions) for sessions in crowd.begun.values()} == {SESSIONS}
    claims = git(stage.repository.bare, "for-each-ref", "refs/sm/claims").splitlines()
    assert len(claims) == HOSTS * SESSIONS
    kept = placements.list_placements(stage.project.directory)
    assert all(one.handle for one in kept)
