"""A node that is cut off by its network, which tells nobody, and joined again later."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from sm.issues import placements
from sm.issues.runners import NoAnswerError, Placement, Standing
from sm.plugins.hosts.messages.outbox import list_kept
from sm.plugins.hosts.ssh.client import Patience, ask, read_trouble
from sm.plugins.hosts.ssh.node import find_node
from sm.plugins.hosts.ssh.runner import RUNNER
from sm.store.paths import Root, name_session
from tests.cable import Cable
from tests.e2e.stage import count_merges
from tests.e2e.test_journeys import BY_SM
from tests.helpers import REPOSITORY, git, wait_for
from tests.plugins.hosts.world import Machine, World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

SETTINGS: dict[str, object] = {"lost_after": "3s", "ci": {}, **BY_SM}
LATE = "from a node that is cut off"
ANSWERS_S = 2.0
"""Within which a person sees how all hosts stand, also right after one was cut off."""
SOON_S = 8.0
"""Sooner than what is not known to be silent is found to be."""


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str, cable: Cable) -> Iterator[World]:
    told = tmp_path / "told"
    how = SETTINGS | {"notify_command": f'{{ echo "$HOME"; cat; }} >>{told}'}
    with living(tmp_path, auto=False, names=("box", "oak"), cable=cable, **how) as made:
        yield made


def test_what_a_node_does_while_it_is_cut_off_is_seen_by_nobody(world: World, cable: Cable) -> None:
    stage, box, oak = world.stage, world.machines["box"], world.machines["oak"]
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    assert find(world, issue).host == "box"
    pushed = push(box, issue, "work-1.txt")
    box.write_phase(issue, "PHASE:awaiting_ci")
    newest = partial(stage.project.forge.pulls.find_newest, f"fix/{issue}")
    pull = wait_for(newest, "its pull request")
    assert pull
    acts = Acts(stage.folder / "acts")
    stage.sm("send", f"harb#{issue}", acts.spell(issue, pull.number))
    wait_for(acts.have_begun, "the agent to be at it")

    cable.cut()
    commit(box, issue, "late.txt")
    acts.go()
    box.write_phase(issue, "PHASE:awaiting_review")  # what would be merged at once
    assert measure(lambda: stage.sm("status")) < ANSWERS_S
    other = stage.file_issue()
    stage.poll(check=False)
    assert find(world, other).host == "oak", "others go on while it is silent"
    sent = json.loads(stage.sm("send", "--json", f"harb#{issue}", "mind the colour").stdout)
    assert sent["status"] == "waiting"
    assert measure(lambda: stage.sm("status")) < ANSWERS_S

    def is_moved() -> bool:
        stage.poll(check=False)
        return find(world, issue).attempt == 2 and bool(find(world, issue).handle)

    wait_for(is_moved, "the other host to have it", 60)
    assert find(world, issue).host == "oak"
    wait_for(lambda: "You take over" in "".join(stage.told()), "the successor's prompt")
    stage.poll()
    assert not list_kept(world.project.directory)
    wait_for(lambda: stage.told().count("mind the colour") == 1, "the message, by the successor")
    assert not stage.merged(issue), "nobody has said that it may be"
    assert box.has_sessions(), "it does not know"
    assert acts.list_tried() == ["comment", "merge", "push"]
    assert not acts.list_done()

    cable.join()

    def has_ended() -> bool:
        stage.poll(check=False)
        return not box.has_sessions()

    wait_for(has_ended, "the session to find that it is overtaken", 60)
    assert not acts.list_done(), "nothing of the agent's own got through"
    work = git(box.place / "clone", "ls-tree", "--name-only", f"sm/overtaken/{issue}-1").split()
    assert "late.txt" in work
    oak.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.merged(issue), "the merge", 60)
    assert count_merges(stage, issue) == 1
    main = git(stage.repository.bare, "ls-tree", "--name-only", "main").split()
    assert "late.txt" not in main
    assert git(stage.repository.bare, "branch", "main", "--contains", pushed), "its work before"
    said = [one.body for one in stage.project.forge.issues.read(issue).comments]
    assert not [body for body in said if LATE in body]
    assert str(box.place) not in read(stage.folder / "told"), "a person is told by who has it"
    assert stage.told().count("mind the colour") == 1


def test_a_cut_is_noticed_within_seconds_and_a_message_comes_once(
    tmp_path: Path, root: Root, tmux_socket: str, cable: Cable
) -> None:
    assert root.path
    assert tmux_socket
    how = SETTINGS | {"lost_after": "10m"}
    with living(tmp_path, auto=False, names=("box",), cable=cable, **how) as world:
        stage = world.stage
        issue = stage.file_issue()
        stage.poll()
        wait_for(stage.told, "the first prompt")
        stage.poll()  # from then on it is known to run

        cable.cut()
        send = partial(stage.sm, "send", f"harb#{issue}", "mind the colour")
        took_send_s, sent = measure(send), list_kept(world.project.directory)
        assert [one.argv[-1] for one in sent] == ["mind the colour"]
        cable.join()
        wait_for(lambda: "mind the colour" in stage.told(), "the message, without a tick", 60)
        # TCP repeats what was lost in either direction by a clock of its own: what the node
        # says may come later than what it was told, and until then a tick takes it for silent.
        node = find_node(world.project.config, "box")
        wait_for(lambda: read_trouble(node.folder) is None, "the host to be heard again", 60)
        stage.poll()
        assert not list_kept(world.project.directory)

        cable.cut()
        took_tick_s = measure(lambda: stage.poll(check=False))
        took_next_s = measure(lambda: stage.poll(check=False))
        cable.join()
        print(f"send {took_send_s:.1f} s, tick {took_tick_s:.1f} s, next {took_next_s:.1f} s")
        assert took_send_s < SOON_S
        assert took_tick_s < SOON_S
        assert took_next_s < SOON_S
        wait_for(lambda: "working" in stage.sm("status").stdout, "the host to answer", 60)
        stage.poll()
        assert stage.told().count("mind the colour") == 1


def find(world: World, issue: int) -> Placement:
    """Where the issue is worked on."""
    found = placements.read_placement(world.project.directory, issue)
    assert found
    return found


def push(machine: Machine, issue: int, name: str) -> str:
    """Commit a file there, and push it; returns the commit."""
    commit(machine, issue, name)
    worktree = Path(machine.session(issue).worktree)
    git(worktree, "push", "-q", "origin", "HEAD")
    return git(worktree, "rev-parse", "HEAD")


def commit(machine: Machine, issue: int, name: str) -> None:
    """Commit a file there."""
    worktree = Path(machine.session(issue).worktree)
    (worktree / name).write_text("done\n")
    git(worktree, "add", name)
    git(worktree, "commit", "-q", "-m", name)


def measure(act: Callable[[], object]) -> float:
    """How many seconds it takes."""
    began = time.monotonic()
    act()
    return time.monotonic() - began


def read(path: Path) -> str:
    """The text of a file that may not be there."""
    return path.read_text() if path.exists() else ""


class Acts:
    """What an agent does that others would see, all at once, when it is told to go."""

    def __init__(self, folder: Path) -> None:
        """Nobody is told yet."""
        self.folder = folder
        folder.mkdir()

    def spell(self, issue: int, pull: int) -> str:
        """The message by which the puppet does it."""
        sm = REPOSITORY / "bin" / "sm"
        script = self.folder / "script"
        script.write_text(
            dedent(f"""\
            touch {self.folder}/begun
            until test -e {self.folder}/go; do sleep 0.05; done
            attempt() {{
              name={self.folder}/$1; shift
              "$@" >"$name.said" 2>&1 && touch "$name.done"
            }}
            attempt push git push origin HEAD &
            attempt comment {sm} issue comment {issue} --project harb --body "{LATE}" &
            attempt merge {sm} pr merge {pull} --project harb &
            wait
            """)
        )
        return f"run: sh {script}"

    def have_begun(self) -> bool:
        """Whether the agent waits for the word."""
        return (self.folder / "begun").exists()

    def go(self) -> None:
        """Give the word."""
        (self.folder / "go").touch()

    def list_tried(self) -> list[str]:
        """What it has begun to do."""
        return sorted(path.stem for path in self.folder.glob("*.said"))

    def list_done(self) -> list[str]:
        """What has succeeded."""
        return sorted(path.stem for path in self.folder.glob("*.done"))


@pytest.mark.usefixtures("tmux_socket")
def test_others_do_not_wait_long_for_a_host_that_is_known_to_be_silent(
    tmp_path: Path, root: Root
) -> None:
    assert root.path
    with living(tmp_path, auto=False) as world:
        project = world.project
        placed = placed_on_box()
        placements.keep(project.directory, placed)
        mute = make_mute(tmp_path / "mute")
        said = yaml.safe_load(world.stage.config.read_text())
        said["hosts"]["ssh"]["box"]["sm"] = str(mute)
        world.stage.config.write_text(yaml.safe_dump(said))
        node = find_node(world.project.config, "box")

        def is_known() -> bool:
            with pytest.raises(NoAnswerError):
                ask(node, ["--version"], patience=Patience(0.2))
            return read_trouble(node.folder) is not None

        wait_for(is_known, "its trouble to be known")
        began = time.monotonic()
        seen = RUNNER.follow(world.project, [placed])
        assert time.monotonic() - began < SOON_S, "a tick"
        assert seen[placed.session].standing is Standing.SILENT
        placements.keep_seen(project.directory, seen)
        began = time.monotonic()
        assert "does not answer" in world.stage.sm("send", "harb#1", "x").stdout
        assert time.monotonic() - began < SOON_S, "a message"
        assert [one.argv[-1] for one in list_kept(project.directory)] == ["x"]


def placed_on_box() -> Placement:
    """A session that nobody has begun."""
    session = name_session("harb", 1)
    return Placement("harb", 1, session, "ssh", "box", 1, "c" * 40, session, time.time())


def make_mute(path: Path) -> Path:
    """A program that says nothing."""
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    return path
