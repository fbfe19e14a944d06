"""What the agent is told: the wordings are fixed, the rest has to be short and exact."""

from __future__ import annotations

import textwrap
import time
from typing import Any

import pytest
from msgspec import structs

from sm.config.schema import HandoffCycle
from sm.context.rotation import Cause, MessageKey, MessageKind, RotationRecord, RotationStage, begin
from sm.context.rotation_texts import (
    Form,
    ask_again_for_task,
    ask_for_task,
    find_shown_task,
    find_task,
    write_message,
)

AT = 1_767_322_985.0
"""2026-01-02 03:03:05 UTC."""
SECTIONS, HEADER = HandoffCycle().sections, HandoffCycle().header
FOLDER = "/home/ada/shop-worktrees/shop-7/.sm/handoffs"
KEYS = {
    str(key): key
    for kind in MessageKind
    for key in (MessageKey(kind), MessageKey(kind, 2), MessageKey(kind, 3))
}
TAKEN_UNMARKED = 3, 800
"""Lines and characters of a text that an agent CLI takes as if it had been typed."""


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def record(cause: Cause = Cause.CYCLE, **changes: object) -> RotationRecord:
    begun = structs.replace(begin("r1", cause, AT, "context"), percent=86.6)
    return structs.replace(begun, **changes)


def said(key: str, made: RotationRecord | None = None, **words: Any) -> str:
    known: dict[str, Any] = {
        "folder": FOLDER,
        "form": Form(SECTIONS, HEADER),
        "missing": Form(),
        "path": "/x/handoff.md",
        "resumed": "Resumed:",
    }
    return write_message(made or record(), KEYS[key], **(known | words))


def test_the_request_begins_with_the_percentage() -> None:
    lines = said("ask1").split("\n")
    assert lines[0] == "Create handoff document now - context at 87%"
    assert f"{FOLDER}/handoff-2026-01-02-03-03.md" in lines[1]
    assert all(section in lines[1] for section in SECTIONS)
    assert lines[1].endswith(
        " Lines `**NAME**: value` for: Created, Context Usage, Project, Active Epic, Progress."
    )
    assert lines[2].startswith("Create it as a new file; when it is whole, end your turn.")


def test_by_hand_no_percentage_is_made_up() -> None:
    by_hand = record(Cause.COMMAND, percent=None)
    assert said("ask1", by_hand).split("\n")[0] == "Create handoff document now"


def test_a_percentage_above_100_is_said_as_100() -> None:
    assert "context at 100%\n" in said("ask1", record(percent=130.0))


def test_the_path_is_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    assert "handoff-2026-01-02-08-33.md" in said("ask1")


def test_the_second_request_names_a_file_that_is_not_there_yet() -> None:
    at_once = record(requests=2, since=AT + 3)
    assert "handoff-2026-01-02-03-04.md" in said("ask2", at_once)
    late = record(requests=2, since=AT + 300)
    assert "handoff-2026-01-02-03-08.md" in said("ask2", late)
    assert said("ask2", late).split("\n")[0] == said("ask1").split("\n")[0]


def test_a_third_request_names_another_file_than_the_second_even_in_the_same_minute() -> None:
    second = said("ask2", record(requests=2, since=AT + 300))
    third = said("ask3", record(requests=3, since=AT + 301))
    assert "handoff-2026-01-02-03-08.md" in second
    assert "handoff-2026-01-02-03-09.md" in third


def test_neither_request_names_a_file_that_was_there_before() -> None:
    there = ("handoff-2026-01-02-03-03.md:1:2", "handoff-2026-01-02-03-05.md:1:2")
    assert "handoff-2026-01-02-03-04.md" in said("ask1", record(before=there))
    again = record(before=there, requests=2, since=AT + 3)
    assert "handoff-2026-01-02-03-06.md" in said("ask2", again)


def test_no_sections_are_asked_for_where_none_are_needed() -> None:
    assert said("ask1", form=Form()).split("\n")[1].endswith("handoff-2026-01-02-03-03.md.")


def test_missing_sections_are_asked_for_by_name_and_file() -> None:
    text = said("sections", missing=Form(("Next Steps", "Notes")))
    assert "/x/handoff.md" in text
    assert "Next Steps, Notes" in text
    assert "Current Work" not in text


def test_missing_lines_are_asked_for_alone_or_with_sections() -> None:
    text = said("sections", missing=Form((), ("Created",)))
    assert text.split("\n")[0].endswith("what it lacks. Lines `**NAME**: value` for: Created.")
    both = said("sections", missing=Form(("Notes",), ("Created",)))
    assert "lacks. Headings: Notes. Lines `**NAME**: value` for: Created.\n" in both


@pytest.mark.parametrize("key", ["resume1", "resume2"])
def test_the_first_prompt_of_the_new_context_is_exactly_that(key: str) -> None:
    own = record(Cause.HANDOFF, step=RotationStage.RESUME)
    assert said(key, own) == "Read /x/handoff.md and continue from where you left off."
    for cause in (Cause.CYCLE, Cause.COMMAND):
        assert said(key, record(cause)) == "Read handoff from /x/handoff.md and resume work"


def test_whether_it_goes_on_is_asked_exactly_so() -> None:
    first, last = said("confirm1").split("\n")
    assert first == "Confirm you have resumed work from handoff"
    assert last == "Say in one line that begins with `Resumed:` which task you are at."


@pytest.mark.parametrize("key", ["ask1", "ask2", "sections", "resume1", "confirm1"])
def test_every_text_is_short_enough_to_be_taken_as_typed(key: str) -> None:
    text = said(key, missing=Form(SECTIONS, HEADER), folder="/home/ada/" + "d" * 150)
    lines, characters = TAKEN_UNMARKED
    assert len(text.split("\n")) <= lines
    assert len(text) <= characters


# What its answer says


@pytest.mark.parametrize(
    "answer",
    [
        "Resumed: refresh tokens",
        "I have read it.\nResumed: refresh tokens\nNow to work.",
        "**Resumed:** refresh tokens",
        "**Resumed**: refresh tokens",
        "`Resumed:` refresh tokens",
        "  - Resumed: refresh tokens.",
        "> resumed: refresh tokens",
        "\N{BLACK CIRCLE} Resumed: refresh tokens",
        "\N{BULLET} RESUMED:   refresh tokens",
        "Resumed:\nResumed: refresh tokens",
    ],
)
def test_the_task_is_found_however_the_line_is_decorated(answer: str) -> None:
    assert find_task(answer, "Resumed:") == "refresh tokens"


@pytest.mark.parametrize(
    "answer",
    ["", "Fine.", "Resumed:", "Resumed: ...", "I resumed: work", "Resumed work", "Res", ":"],
)
def test_a_line_that_names_no_task_is_none(answer: str) -> None:
    assert find_task(answer, "Resumed:") == ""


def test_the_line_may_begin_with_other_words() -> None:
    said = "Resuming work from handoff... JWT refresh tokens"
    assert find_task(said, "Resuming work from handoff") == "JWT refresh tokens"


def test_our_own_request_on_the_screen_is_no_answer() -> None:
    asked = f"{ask_for_task('Resumed:')} {ask_again_for_task('Resumed:')}"
    for width in range(10, 120):
        rows = textwrap.wrap(asked, width)
        assert find_shown_task(rows, "Resumed:") == "", width
        shown = find_shown_task([*rows, "\N{BULLET} Resumed: tokens"], "Resumed:")
        assert shown == "tokens", width
