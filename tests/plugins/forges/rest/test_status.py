"""The patterns of required checks."""

from __future__ import annotations

import pytest

from sm.adapters.forge.model import CheckState
from sm.plugins.forges.rest.status import StatusPart, combine, expand, matches


@pytest.mark.parametrize(
    ("pattern", "name", "is_meant"),
    [
        ("ci/*", "ci/a/b", True),
        ("ci/{unit,lint}", "ci/lint", True),
        ("ci/{unit,lint}", "ci/docs", False),
        ("{a,b{c,d}}?", "bdx", True),
        ("CI / {test,lint} (*)", "CI / lint (push)", True),
        ("x{,-slow}", "x", True),
        ("v[!0-9]", "vx", True),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("test [linux]", "test [linux]", True),
        ("{a", "{a", True),
        ("{a", "a", False),
        ("{" * 5000 + "a", "a", False),
        ("{a,b}" * 15, "a" * 15, False),
    ],
)
def test_a_pattern_means_what_the_server_takes_it_for(
    pattern: str, name: str, is_meant: bool
) -> None:
    assert matches(name, pattern) is is_meant
    assert len(expand(pattern)) <= 200


def test_a_required_check_is_found_among_alternatives() -> None:
    parts = [StatusPart("ci/lint", "success"), StatusPart("other", "failure")]
    found = combine(parts, "h", expected=True, required=["ci/{unit,lint}"])
    assert (found.state, found.missing, found.optional) == (CheckState.SUCCESS, (), ("other",))
