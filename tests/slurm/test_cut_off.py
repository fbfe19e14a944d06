"""A job that runs, as far as Slurm knows, and that nobody reaches: what waits for it, and who."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.plugins.hosts.messages.outbox import list_kept
from sm.plugins.hosts.slurm import runner, step
from tests.helpers import HANG_S, REPOSITORY, wait_for
from tests.slurm.cluster import MISSING, NODES
from tests.slurm.world import MakeWorld, World, begin, poll_until

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]
SHORT_S, LONG_S, TICK_S = 2.0, 60.0, 20.0
SOON_S = 60.0


def write_sm(folder: Path, cut_off: Path) -> Path:
    """An `sm` for the nodes that says nothing while a file is there."""
    made = folder / "sm-on-nodes"
    program = REPOSITORY / "bin" / "sm"
    made.write_text(f'#!/bin/sh\nwhile [ -e {cut_off} ]; do sleep 0.1; done\nexec {program} "$@"\n')
    made.chmod(0o755)
    return made


def test_a_message_for_a_job_that_is_cut_off_holds_no_tick_and_comes_later(
    world_of: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "FIRST_WORD_S", SHORT_S)
    monkeypatch.setattr(runner, "CALL_S", LONG_S)
    cut_off = tmp_path / "cut-off"
    world = world_of(auto=False, sm=str(write_sm(tmp_path, cut_off)))
    issue = begin(world)
    poll_until(world, lambda: "runs" in [str(one.standing) for one in world.seen], "a look")
    cut_off.touch()
    began = time.monotonic()
    said = world.stage.sm("send", f"harb#{issue}", "only the cart")
    assert "does not answer" in said.stdout + said.stderr
    for _ in range(3):
        world.stage.poll()
    assert time.monotonic() - began < TICK_S
    assert len(list_kept(world.project.directory)) == 1
    cut_off.unlink()
    poll_until(world, lambda: "only the cart" in "".join(world.stage.told()), "the message")
    poll_until(world, lambda: not list_kept(world.project.directory), "that it is not kept")
    assert "".join(world.stage.told()).count("only the cart") == 1


def test_a_job_that_cannot_begin_its_session_holds_up_no_other(world_of: MakeWorld) -> None:
    world = world_of(auto=False, licenses=[])
    clones = [world.folder / node / "clone" for node in NODES]
    for clone in clones:
        clone.rename(clone.with_name("aside"))
    first = world.stage.file_issue()
    look_until(world, lambda: "Slurm says failed" in words_of(world), "its failure")
    for clone in clones:
        clone.with_name("aside").rename(clone)
    second = world.stage.file_issue()
    look_until(world, world.stage.told, "the first prompt of the other")
    known = {one.issue: one for one in world.placed}
    assert known[second].handle
    assert known[first].attempt <= 2, "Slurm still tells of the failure"
    assert "could not begin its session" in world.stage.find_need("host")["text"]


def test_a_job_that_knows_nothing_of_its_session_gives_its_issue_to_another(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False, licenses=[])
    issue = begin(world)
    look_until(world, lambda: "working" in world.stage.sm("status").stdout, "its first row")
    node = world.find_node(issue)
    for pid in world.cluster.find_processes(node, world.folder / node):
        if b"host\0job\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGSTOP)
    root = world.root_on(node, issue).path
    root.rename(root.with_name("sm-lost"))
    look_until(world, lambda: world.placed[0].attempt == 2, "another attempt", SOON_S)
    look_until(world, lambda: "You take over" in "".join(world.stage.told()), "its agent")


def words_of(world: World) -> str:
    return " ".join(one.words for one in world.seen)


def look_until(
    world: World, condition: Callable[[], object], what: str, within_s: float = HANG_S
) -> None:
    """Have dev-poll tick until then, whatever it cannot do."""

    def look() -> object:
        world.stage.poll(check=False)
        return condition()

    wait_for(look, what, within_s, every_s=0.3)
