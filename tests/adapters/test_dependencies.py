"""Which issues a text says it depends on, and which it only mentions."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.model import Issue, IssueState
from sm.base.issue_id import IssueId


def needs(body: str) -> tuple[IssueId, ...]:
    return Issue(7, "", IssueState.OPEN, "ada", 1.0, body=body).dependencies()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Depends on #1.", (1,)),
        ("Depends on #2 (part of epic #1)", (2,)),
        ("```\nDepends on #1\n```\nText.", ()),
        ("<!-- Depends on #123 -->\nText.", ()),
        ("> Depends on #1\n\nThat was before.", ()),
        ("Depends on octo/lib#1", ()),
        ("Depends on #3 and #4", (3, 4)),
        ("Depends on #3, #4\nand see #9", (3, 4)),
        ("    Depends on #1\n\n(an indented block)", ()),
        ("`Depends on #1` is how one writes it.", ()),
        ("- [ ] Depends on #5", (5,)),
        ("Blocked by the release, see #6", ()),
        ("~~~text\n```\nDepends on #1\n~~~\nDepends on #2", (2,)),
        ("````\n```\nDepends on #1\n````", ()),
        ("```\n<!--\n```\nDepends on #2", (2,)),
        ("<!-- a\n\nDepends on #1\n--> Depends on #2 <!-- #3 -->", (2,)),
        ("- a list\n\n    Depends on #2", (2,)),
        ("text\n    Depends on #2", (2,)),
        ("text\n\n\tDepends on #1", ()),
        ("Depends on `#1` and #2", (2,)),
        ("Depends on the parser (#2)", (2,)),
        ("Depends on https://forge/octo/lib/issues/1#1 and #2", (2,)),
        ("* Depends on: #2 (the lexer), #3 (the parser; was #1)", (2, 3)),
    ],
)
def test_only_what_is_said_blocks(body: str, expected: tuple[int, ...]) -> None:
    assert needs(body) == expected


@pytest.mark.sweep
@pytest.mark.parametrize("part", ["`", "``x", "<!--", "-->", "(", "> ", "    ", "- ", "```\n"])
def test_a_long_text_takes_no_time(part: str) -> None:
    body = part * (1_000_000 // len(part)) + "\nDepends on #1"
    began = time.process_time()
    needs(body)
    assert time.process_time() - began < 3
