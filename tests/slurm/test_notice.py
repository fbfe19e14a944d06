"""The notice of a time limit as Slurm gives it by itself: it looks each half minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import wait_for
from tests.slurm.cluster import MISSING
from tests.slurm.world import MakeWorld, begun, find_request, poll_until, write_document

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_slurm_gives_the_notice_and_the_session_goes_on_with_its_document(
    world_of: MakeWorld,
) -> None:
    # Two minutes: it comes when less than 70 and 30 s of them are left (job_mgr.c, line 19071).
    world = world_of(auto=False, time_limit="2m", notice="70s")
    begun(world)
    asked = wait_for(lambda: find_request(world), "Slurm's notice", every_s=0.5)
    assert asked
    document = write_document(asked)
    poll_until(world, lambda: "You take over" in world.stage.told()[-1], "the next attempt")
    assert world.cluster.list_jobs()[-2].startswith("COMPLETED"), "it was not killed"
    assert [one.attempt for one in world.placed] == [2]
    assert "read its handoff document: " in world.stage.told()[-1]
    place = world.stage.told()[-1].partition("read its handoff document: ")[2].split()[0]
    assert Path(place).read_text() == document
