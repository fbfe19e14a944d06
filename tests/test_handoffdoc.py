"""Names of handoff documents, and the sections that are found in them."""

from __future__ import annotations

from datetime import datetime

import pytest

from sm.config.schema import HandoffCycle
from sm.handoffdoc import is_name, missing, name

SECTIONS = HandoffCycle().sections

WHOLE = """\
# Handoff Document

**Created**: 2026-01-22 14:30:00
**Context Usage**: 87%

## Current Work

**Active Epic**: Epic 003
**Progress**: 65% complete

## Completed Since Last Handoff

- [ ] Created database migration

## Next Steps

1. Complete the endpoint

## Critical State

- Active spawns: None

## Blockers / Issues

- None

## Notes

- Access token expiry remains 1 hour
"""


def test_a_name_has_the_local_time_to_the_minute() -> None:
    assert name(datetime(2026, 1, 2, 3, 4, 59)) == "handoff-2026-01-02-03-04.md"
    assert is_name(name(datetime(2026, 12, 22, 14, 30)))


@pytest.mark.parametrize("text", ["handoff-jwt.md", "handoff-2026-01-02-03-04-b.md"])
def test_another_name_of_the_agent_counts(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", ["notes.md", "handoff.md", "handoff-1.txt", ".handoff-1.md", ""])
def test_other_files_are_no_documents(text: str) -> None:
    assert not is_name(text)


def test_the_six_sections_are_found_in_a_whole_document() -> None:
    assert missing(WHOLE, SECTIONS) == ()


def test_missing_sections_are_named_in_their_order() -> None:
    text = WHOLE.replace("## Notes\n", "").replace("## Next Steps\n", "")
    assert missing(text, SECTIONS) == ("Next Steps", "Notes")
    assert missing("", SECTIONS) == SECTIONS


@pytest.mark.parametrize(
    "heading",
    [
        "# Next Steps",
        "###### next steps",
        "## NEXT   STEPS ##",
        "## 3. Next Steps",
        "## 3) Next Steps:",
        "## b) Next Steps",
        "## ➡️ Next Steps",
        "## **Next Steps**",
        "## _Next Steps_ (today)",
        "## `Next Steps`",
        "## Next-Steps",
        "   ## Next Steps",
        "**Next Steps**",
        "**Next Steps:**",
        "**Next Steps**:",
        "__Next Steps__",
        "Next Steps\n==========",
        "Next Steps\n---",
        "\ufeff# Next Steps",
        "## Next\u00a0Steps",
        "## Next Steps\r",
    ],
)
def test_a_heading_may_be_written_in_many_ways(heading: str) -> None:
    assert missing(f"{heading}\n\ntext\n", ("Next Steps",)) == ()


@pytest.mark.parametrize(
    "line",
    [
        "Next Steps",
        "- Next Steps",
        "#Next Steps",
        "##",
        "The next steps are clear.",
        "## Next",
        "## Nextsteps",
        "## Our Next Steps",
        "## Next Stepsisters",
        "```\n## Next Steps\n```",
        "~~~~\n```\n## Next Steps\n~~~~",
        "\n---\nNext Steps",
    ],
)
def test_what_is_no_such_heading_is_none(line: str) -> None:
    assert missing(f"{line}\n", ("Next Steps",)) == ("Next Steps",)


def test_headings_after_a_code_block_count() -> None:
    text = "~~~\n```\n~~~\n## Next Steps\n```sh\nls\n```\n## Notes"
    assert missing(text, ("Next Steps", "Notes")) == ()


@pytest.mark.parametrize("heading", ["Blockers/Issues", "Blockers & Issues", "BLOCKERS / ISSUES:"])
def test_marks_between_words_do_not_matter(heading: str) -> None:
    assert missing(f"## {heading}", ("Blockers / Issues",)) == ()


def test_sections_in_any_language_are_found() -> None:
    text = "## 次のステップ\n## GRÖSSERE RISIKEN\n"
    assert missing(text, ("次のステップ", "Größere Risiken", "Offen")) == ("Offen",)


def test_a_document_of_a_megabyte_is_looked_through() -> None:
    text = "- line\n" * 150_000 + "## Notes\n"
    assert missing(text, ("Notes",)) == ()
