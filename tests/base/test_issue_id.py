"""Ids of issues: what is one, how it is written, and what becomes a part of a name."""

from __future__ import annotations

import pytest

from sm.base.errors import UsageError
from sm.base.issue_id import (
    IssueId,
    check_pull,
    is_id,
    name_part,
    rank,
    read_issue,
    read_part,
    spell,
)
from sm.store.paths import NAME

HOSTILE = (
    *("", "-", "-1", "ENG-", "-7", "ENG", "7-ENG", "ENG-0", "ENG-07", "ENG-7-8", "ENG 7", "ENG_7"),
    *(
        "../x",
        "../ENG-7",
        "ENG/7-1",
        "ENG-7/..",
        ".ENG-7",
        "ENG.A-7",
        "ENG-7\n",
        "ENG-7\0",
        "#ENG-7",
    ),
    *("ENG-" + "7" * 10, "E" * 300 + "-7", "E" * 32 + "-7", "7" * 300, "0", "007", "#E-7"),
    *("ÄNG-7", "ENG-٧", "ﬁ-7", "ıx-7", "ENG\u20117", "ENG\u200b-7", "E\u0301NG-7"),
    *("ENG-7; rm -rf /", "$(x)-7", "`x`-7", "{x}-7", "@{u}-7", "ENG-7.lock", "--force", "HEAD~1"),
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_id_is_read_as_none(text: str) -> None:
    assert read_issue(text) is None
    if not text.lstrip("#").isdigit():
        assert not is_id(text)
        with pytest.raises(ValueError, match="is no id"):
            name_part(text)


def test_an_id_is_read_in_any_case_and_written_in_one() -> None:
    assert [read_issue(one) for one in ("7", "#7", "eng-7", "Eng-7", "ENG-7")] == [
        *(7, 7, "ENG-7", "ENG-7", "ENG-7")
    ]
    assert (is_id("eng-7"), is_id("ENG-7"), is_id(7), is_id(0)) == (False, True, True, False)
    assert (spell(7), spell("ENG-7")) == ("#7", "ENG-7")


LONGEST = "E" * 31 + "-" + "9" * 9
IDS: tuple[IssueId, ...] = (
    7,
    70,
    "A-7",
    "A-70",
    "A_7-1",
    "A_7-11",
    "A7-1",
    "A_-7",
    "AB-7",
    "E" * 31 + "-" + "9" * 9,
)


def test_no_two_ids_have_one_part_and_each_part_has_its_id() -> None:
    parts = [name_part(one) for one in IDS]
    assert len(set(parts)) == len({part.lower() for part in parts}) == len(IDS)
    assert [read_part(part) for part in parts] == [*IDS]
    assert all(NAME.fullmatch(part) and "-" not in part for part in parts)
    assert [read_part(one) for one in ("ENG-7", "ENG_07", "eng_7", "_7", "../x", "")] == [None] * 6


def test_issues_are_sorted_as_people_expect_it() -> None:
    given: list[IssueId] = ["ENG-10", "ENG-9", "API-11", 12, 2]
    assert sorted(given, key=rank) == [2, 12, "API-11", "ENG-9", "ENG-10"]


def test_a_pull_request_has_a_number() -> None:
    assert check_pull(7) == 7
    with pytest.raises(UsageError, match="'ENG-7' is an issue"):
        check_pull("ENG-7")
