"""The time limit as Slurm holds it by itself: it looks each half minute."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.helpers import git, wait_for
from tests.plugins.hosts.test_journey import has_file
from tests.slurm.cluster import MISSING, NODES, signal_within
from tests.slurm.world import (
    MakeWorld,
    begin,
    begin_half,
    find_request,
    has_half,
    poll_until,
    write_document,
)

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_slurm_gives_the_notice_and_the_session_goes_on_with_its_document(
    world_of: MakeWorld,
) -> None:
    # Two minutes: it comes when less than 70 and 30 s of them are left (job_mgr.c, line 19071).
    world = world_of(auto=False, time_limit="2m", notice="70s")
    issue = begin_half(world)
    asked = wait_for(lambda: find_request(world), "Slurm's notice", every_s=0.5)
    assert asked
    document = write_document(asked)
    poll_until(world, lambda: "You take over" in world.stage.told()[-1], "the next attempt")
    assert world.cluster.list_jobs()[-2].startswith("COMPLETED"), "it was not killed"
    assert [one.attempt for one in world.placed] == [2]
    assert has_half(world, issue)
    now = world.session_on(world.find_node(issue), issue)
    assert now
    told = re.search(r"read its handoff document: (\S+)", world.stage.told()[-1])
    assert told
    assert Path(told[1]).is_relative_to(now.worktree)
    assert Path(told[1]).read_text() == document


def test_a_job_that_is_killed_at_its_time_limit_goes_on_from_the_last_turn(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False, time_limit="1h", notice="1s")
    issue = begin(world)
    node, job = world.find_node(issue), world.placed[0].handle
    session = world.session_on(node, issue)
    assert session
    bare, kept = world.stage.repository.bare, f"refs/sm/wip/{issue}/1"
    (session.worktree / "first.txt").write_text("of the turn that ended\n")
    session.root.phase("harb", issue).write_text("PHASE:awaiting_ci\n")

    def is_kept() -> bool:
        return git(bare, "for-each-ref", kept) != "" and has_file(bare, f"{kept}~1", "first.txt")

    wait_for(is_kept, "the push of that turn's work")

    # All of it stands still, so it makes nothing of the SIGTERM, and `KillWait` later it is killed.
    place = world.root_on(node, issue).path
    signal_within(place, signal.SIGSTOP)
    world.cluster.call("scontrol", "update", f"jobid={job}", "endtime=now+1")
    wait_for(lambda: world.cluster.list_jobs()[-1].startswith("TIMEOUT"), "its end", every_s=0.5)
    signal_within(place, signal.SIGKILL)  # as a cgroup ends what is left of a job
    poll_until(world, lambda: "You take over" in world.stage.told()[-1], "the next attempt")
    assert [one.attempt for one in world.placed] == [2]
    assert "Attempt 1 at this issue was cut off" in world.stage.told()[-1]
    found = (world.session_on(one, issue) for one in NODES)
    new = next(one for one in found if one and one.attempt == 2)
    assert (new.worktree / "first.txt").read_text() == "of the turn that ended\n"
