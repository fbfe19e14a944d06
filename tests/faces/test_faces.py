"""All faces say the same of a random world, and what is so; `bin/soak faces` walks on and on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faces.walk import walk
from tests.faces.world import World

REVIEW_UNDER_HANDS = (
    *("file", "spend", "push", "pass CI", "await review", "come", "type", "approve", "merge"),
    *("begin own", "go on"),
)
BROKEN_CONFIGURATION = (
    *("file", "ask", "come", "type", "break configuration", "mend configuration", "leave", "send"),
    *("leave project out", "put project back", "show there", "escalate", "stop dev-poll"),
)
LOST_LOGIN = ("file", "lock out", "kill", "file", "file", "lock out", "use tool", "use tool")
"""The last session that knows of it ends; then another one has an answer."""


@pytest.mark.parametrize(
    "course",
    [REVIEW_UNDER_HANDS, BROKEN_CONFIGURATION, LOST_LOGIN],
    ids=["review", "configuration", "login"],
)
def test_all_faces_agree_with_each_other_and_with_the_truth(
    course: tuple[str, ...], world_of: Callable[[int], World]
) -> None:
    assert walk(world_of(1), len(course), course=course) == len(course)
