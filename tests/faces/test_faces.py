"""All faces say the same of a random world, and what is so; `bin/soak faces` walks on and on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faces.walk import walk
from tests.faces.world import World


@pytest.mark.parametrize("seed", [1, 3])
def test_all_faces_agree_with_each_other_and_with_the_truth(
    seed: int, world_of: Callable[[int], World]
) -> None:
    assert walk(world_of(seed), 14) == 14
