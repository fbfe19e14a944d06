"""By which rules a node merges what was placed on it."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.plugins.hosts.rules import MergeTerms, list_weaker

STRICT = MergeTerms(review=True, ci=True, trusted=("ada", "Rita"))
OPEN = structs.replace(STRICT, trusted=())


@pytest.mark.parametrize(
    ("ours", "theirs", "weaker"),
    [
        (STRICT, STRICT, ""),
        (STRICT, structs.replace(STRICT, trusted=("rita",)), ""),
        (OPEN, OPEN, ""),
        (MergeTerms(review=False, ci=False), OPEN, ""),
        (STRICT, structs.replace(STRICT, review=False), "'review.required' is false there"),
        (STRICT, structs.replace(STRICT, ci=False), "no CI is required there"),
        (STRICT, OPEN, "'trusted' is empty there, and ada, Rita here"),
        (STRICT, structs.replace(STRICT, trusted=("ada", "eve")), "has eve there, and only ada"),
        (OPEN, structs.replace(OPEN, trusted=("eve",)), "has eve there, and it is empty here"),
    ],
)
def test_rules_are_weaker_that_let_more_through(
    ours: MergeTerms, theirs: MergeTerms, weaker: str
) -> None:
    found = list_weaker(ours, theirs)
    assert len(found) == bool(weaker)
    assert weaker in "".join(found)
