"""Names of handoff documents, and the sections that are found in them."""

from __future__ import annotations

import time
from datetime import datetime

import pytest

from sm.config.schema import HandoffCycle
from sm.context.documents import NAME, find_missing, find_missing_lines
from sm.context.rotation_texts import name_document

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
    assert name_document(datetime(2026, 1, 2, 3, 4, 59)) == "handoff-2026-01-02-03-04.md"
    assert NAME.fullmatch(name_document(datetime(2026, 12, 22, 14, 30)))


@pytest.mark.parametrize("text", ["handoff-jwt.md", "handoff-2026-01-02-03-04-b.md"])
def test_another_name_of_the_agent_counts(text: str) -> None:
    assert NAME.fullmatch(text)


@pytest.mark.parametrize("text", ["notes.md", "handoff.md", "handoff-1.txt", ".handoff-1.md", ""])
def test_other_files_are_no_documents(text: str) -> None:
    assert not NAME.fullmatch(text)


def test_the_six_sections_are_found_in_a_whole_document() -> None:
    assert find_missing(WHOLE, SECTIONS) == ()


def test_missing_sections_are_named_in_their_order() -> None:
    text = WHOLE.replace("## Notes\n", "").replace("## Next Steps\n", "")
    assert find_missing(text, SECTIONS) == ("Next Steps", "Notes")
    assert find_missing("", SECTIONS) == SECTIONS


HEADER = HandoffCycle().header


def test_the_lines_of_the_header_are_found_wherever_they_are() -> None:
    assert find_missing_lines(WHOLE, HEADER) == ("Project",)
    assert find_missing_lines(f"{WHOLE}\n- project: consilio\n", HEADER) == ()
    assert find_missing_lines("", HEADER) == HEADER
    assert find_missing_lines(WHOLE, ()) == ()


@pytest.mark.parametrize(
    "line",
    [
        "Created: now",
        "**Created**: now",
        "**Created:** now",
        "- **created**: now",
        "> CREATED : now",
        "__Created__: 14:30",
    ],
)
def test_a_line_may_be_written_in_many_ways(line: str) -> None:
    assert find_missing_lines(f"# Handoff\n\n{line}\n", ("Created",)) == ()


@pytest.mark.parametrize(
    "line", ["Created", "Created:", "**Created:**", "Created by: me", "It was created: now"]
)
def test_a_line_without_its_name_or_value_is_missing(line: str) -> None:
    assert find_missing_lines(f"# Handoff\n\n{line}\n", ("Created",)) == ("Created",)


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
    assert find_missing(f"{heading}\n\ntext\n", ("Next Steps",)) == ()


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
    assert find_missing(f"{line}\n\ntext\n", ("Next Steps",)) == ("Next Steps",)


def test_headings_after_a_code_block_count() -> None:
    text = "~~~\n```\n~~~\n## Next Steps\n```sh\nls\n```\n## Notes\nso"
    assert find_missing(text, ("Next Steps", "Notes")) == ()


@pytest.mark.parametrize("heading", ["Blockers/Issues", "Blockers & Issues", "BLOCKERS / ISSUES:"])
def test_marks_between_words_do_not_matter(heading: str) -> None:
    assert find_missing(f"## {heading}\nso", ("Blockers / Issues",)) == ()


def test_sections_in_any_language_are_found() -> None:
    text = "## 次のステップ\nなし\n## GRÖSSERE RISIKEN\nkeine\n"
    assert find_missing(text, ("次のステップ", "Größere Risiken", "Offen")) == ("Offen",)


def test_a_document_of_a_megabyte_is_looked_through() -> None:
    text = "- line\n" * 150_000 + "## Notes\nso\n"
    assert find_missing(text, ("Notes",)) == ()


# What is below a heading

BARE = "".join(f"## {section}\n\n" for section in SECTIONS)


def test_six_headings_with_nothing_below_are_no_document() -> None:
    assert find_missing(BARE, SECTIONS) == SECTIONS
    assert find_missing(f"# Handoff\n\nOf today.\n\n{BARE}", SECTIONS) == SECTIONS


@pytest.mark.parametrize(
    "below",
    [
        *("None", "- None", "**None**", "n/a", "1. Go on.", "> so", "```\nmake\n```", "| a | b |"),
        *("x" * 5000, "\n\n\nso", "so\n---", "- so\n---", "沒有"),
    ],
)
@pytest.mark.parametrize("heading", ["## Notes", "**Notes**", "Notes\n-----"])
def test_any_word_below_a_heading_is_enough(heading: str, below: str) -> None:
    assert find_missing(f"{heading}\n{below}\n\n## Other\n", ("Notes",)) == ()


@pytest.mark.parametrize("heading", ["## Notes", "Notes\n====="])
def test_a_heading_may_have_others_below_it(heading: str) -> None:
    assert find_missing(f"{heading}\n\n### Today\n\nso\n", ("Notes",)) == ()


@pytest.mark.parametrize("heading", ["## Notes: None", "**Notes: none**", "## **Notes:** None"])
def test_a_word_in_the_heading_is_enough(heading: str) -> None:
    assert find_missing(f"{heading}\n\n## Other\n\nso\n", ("Notes",)) == ()


@pytest.mark.parametrize("below", ["", "-", "- [ ]", "1.", "---", "***", "```\n```", "  \n\t", "|"])
@pytest.mark.parametrize("heading", ["## Notes", "**Notes:**", "## Notes (today):"])
def test_what_is_no_word_is_nothing(heading: str, below: str) -> None:
    text = f"{heading}\n{below}\n\n## Next Steps\n\nso\n"
    assert find_missing(text, ("Notes", "Next Steps")) == ("Notes",)


def test_the_section_may_come_twice() -> None:
    assert find_missing("## Notes\n\n## Next\n\nso\n\n## Notes\n\nso\n", ("Notes",)) == ()


def test_a_section_without_a_name_is_not_asked_for() -> None:
    assert find_missing("", ("", " ", "**", "Notes")) == ("Notes",)


@pytest.mark.sweep
@pytest.mark.parametrize("piece", ["# ", "**", "** ", "#" + " " * 300, "=", "- ", "`", ": ", "\n#"])
def test_no_text_takes_long_to_look_through(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    begun = time.process_time()
    assert find_missing(f"{text}x", ("Notes",)) == ("Notes",)
    assert find_missing(f"{text}\n" * 2, ("Notes",)) == ("Notes",)
    assert time.process_time() - begun < 20
