"""A node and a forge elsewhere: what is seen here reaches it, and without that it goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sm.adapters.forge.model import BOT, CheckState, PullRequest, ReviewState
from sm.issues.look.snapshot import last_snapshot
from sm.store.paths import Root
from tests.e2e.test_polling import looping
from tests.forges.sides import RemoteSide, remote_side
from tests.helpers import git, wait_for
from tests.hub import Hub
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]
TOKEN = "token-of-the-node-4f1d"
A_LOOK = 3
"""Requests of a single look at everything, which a busy machine may let a node take."""


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    assert root.path
    assert tmux_socket
    with living(tmp_path, auto=False, merge={"by": "sm"}) as made:
        yield made


@contextlib.contextmanager
def on_github(world: World, poll: str, *, here: str = "1s") -> Iterator[RemoteSide]:
    """The project on a forge over HTTP; the node has a token of its own, and looks every `poll`.

    This machine looks every `here`.
    """
    stage = world.stage
    hub = Hub(stage.config, stage.project.settings, stage.repository)
    with remote_side("github", hub, stage.folder / "server") as side:
        side.admit("ada", "rita")
        side.state.tokens[TOKEN] = BOT
        own = stage.folder / "node-token"
        own.touch(mode=0o600)
        own.write_text(TOKEN)
        place = {"kind": "github", "repository": side.state.name, "url": side.site.url}
        for config, token, every in (
            (stage.config, side.token_file(BOT), here),
            (world.box.config, own, poll),
        ):
            said = yaml.safe_load(config.read_text())
            said |= {"forge": place | {"token_file": str(token)}, "ci": {"poll": every}}
            config.write_text(yaml.safe_dump(said))
        yield side


def begin(world: World, side: RemoteSide) -> int:
    """An issue whose agent on the node has its first prompt."""
    issue = side.state.add("Mend it", "It is broken.", "ada")
    side.state.label(issue, ["backlog"])
    wait_for(world.stage.told, "the agent's task", 120)
    return issue.number


def push(world: World, side: RemoteSide, issue: int, content: str) -> str:
    """What the agent on the node does; CI begins."""
    worktree = Path(world.box.session(issue).worktree)
    (worktree / "work.txt").write_text(content)
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", content.strip())
    git(worktree, "push", "-q", "origin", "HEAD")
    head = git(worktree, "rev-parse", "HEAD")
    side.begin(head)
    world.box.write_phase(issue, "PHASE:awaiting_ci")
    return head


def find_pull(side: RemoteSide, issue: int) -> PullRequest:
    found = wait_for(lambda: side.open().pulls.find_newest(f"fix/{issue}"), "the pull request", 120)
    assert found
    return found


def hears(world: World, words: str) -> None:
    wait_for(lambda: [one for one in world.stage.told() if words in one], f"'{words}'", 120)


def go_to_merge(world: World, side: RemoteSide, issue: int) -> None:
    """From a failure of CI to the merge."""
    head = push(world, side, issue, "bad\n")
    find_pull(side, issue)
    side.finish(head, CheckState.FAILURE, "build", "line 7 is wrong\n")
    hears(world, "CI failed")
    head = push(world, side, issue, "good\n")
    side.finish(head, CheckState.SUCCESS)
    hears(world, "CI passed")
    world.box.write_phase(issue, "PHASE:awaiting_review")
    number = find_pull(side, issue).number
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    wait_for(lambda: not world.box.has_sessions(), "the end of the session", 120)
    assert side.open().issues.read(issue).state == "closed"
    assert git(world.stage.repository.bare, "show", "main:work.txt") == "good"


def looks_by_node(side: RemoteSide) -> list[str]:
    """Requests of the node by which a look at GitHub begins."""
    return [
        one.line
        for one in side.site.asked
        if one.path == f"/repos/{side.state.name}/issues"
        and one.method == "GET"
        and TOKEN in one.headers.get("authorization", "")
    ]


def test_a_node_is_brought_all_that_it_needs_to_know(world: World) -> None:
    # What a look promises lasts as long as the next one takes: also on a busy machine.
    with on_github(world, poll="1h", here="5s") as side, looping(world.stage):
        issue = begin(world, side)
        go_to_merge(world, side, issue)
        print(
            [one.line for one in side.site.asked if TOKEN in one.headers.get("authorization", "")]
        )
        assert len(looks_by_node(side)) <= A_LOOK


def test_a_node_goes_on_by_itself_from_a_failure_to_the_merge(world: World) -> None:
    with on_github(world, poll="1s") as side:
        with looping(world.stage):
            issue = begin(world, side)
            wait_for(lambda: last_snapshot(world.box.project.directory), "a look to be brought")
        world.box.sshd.stop(cut=True)
        before = len(looks_by_node(side))
        go_to_merge(world, side, issue)
        assert len(looks_by_node(side)) > before
