"""The notice of a time limit as Slurm gives it by itself: it looks each half minute."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import wait_for
from tests.slurm.cluster import MISSING
from tests.slurm.world import (
    MakeWorld,
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
