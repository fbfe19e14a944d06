"""What agents use in jobs counts where they were submitted, and a budget from there holds."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.helpers import wait_for
from tests.plugins.hosts.test_costs import spend
from tests.slurm.cluster import MISSING
from tests.slurm.world import MakeWorld, begin

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}"),
]


def test_what_a_job_has_used_is_known_and_held_from_here(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    config = yaml.safe_load(world.stage.config.read_text())
    config["budget"] = {"issue": "$1", "unknown": "allow"}
    world.stage.config.write_text(yaml.safe_dump(config))
    issue = begin(world)
    node = world.find_node(issue)
    spend(world.folder / node, "r1", 2.0)

    def read_shares() -> list[tuple[str, int]]:
        world.stage.poll()
        found = json.loads(world.stage.sm("cost", "--by", "host", "--json").stdout)
        return [(one["name"], one["requests"]) for one in found]

    wait_for(lambda: read_shares() == [(node, 2)], "its requests", 60)

    def is_held() -> bool:
        world.stage.poll()
        return "of $1.00 for this issue" in world.stage.sm("status").stdout

    wait_for(is_held, "the session there to be held", 60)
