"""A job that runs, as far as Slurm knows, and that nobody reaches: what waits for it, and who."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.issues.kept_messages import list_kept
from sm.plugins.hosts.slurm import runner, step
from tests.helpers import REPOSITORY
from tests.slurm.cluster import MISSING
from tests.slurm.world import MakeWorld, begin, poll_until

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]
SHORT_S, LONG_S, TICK_S = 2.0, 60.0, 20.0


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
