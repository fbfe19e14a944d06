"""A node stands still, its work is taken over, and it goes on: nothing of it is seen any more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.chance import dice
from tests.e2e.stage import make_stage
from tests.issues import frozen
from tests.issues.nodes import make_node

ROUNDS = int(os.environ.get("SM_SOAK_FROZEN", "6"))


@pytest.mark.long_lived
def test_what_a_frozen_node_still_wanted_to_do_is_refused(tmp_path: Path, root: Root) -> None:
    assert root.path
    stage = make_stage(tmp_path, auto=False, settings={"review": {"required": False}, "ci": {}})
    node = make_node(stage, "one")
    chance = dice(4400)
    late = []
    for number in range(ROUNDS):
        before, after = frozen.play(frozen.begin(stage, node, number), chance)
        late += [f"round {number}: {one}" for one in frozen.list_seen(before, after)]
        print(f"round {number}: {len(late)} seen late", flush=True)
    assert not late
