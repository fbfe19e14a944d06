"""What of a message stands in a composer, and whether a person has added to it."""

from __future__ import annotations

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.messages.draft import TypedMessage, begins_like, holds_only
from sm.messages.wire import make_last_line

LONG = "".join(f"line {number} of it\n" for number in range(100))
CUT = "line 7[...Truncated text #1 +20 lines...]28 of it\nline 29 of"


@pytest.mark.parametrize(
    ("draft", "scrolled", "is_ours"),
    [
        (LONG, False, True),
        ("line 0 of it\nline 1\nof it\nline", False, True),
        ("line 0 of it\nline 1", False, False),  # a person may begin like that
        ("line 1 of it\nline 2 of it\nline 3", False, False),
        ("line 0 of it\nline 1 of it, and mine", False, False),
        ("mine: line 0 of it", False, False),
        ("line 50 of it\nline 51 of it\nli", True, True),
        ("line 50 of it\nline 51 of it. No!", True, False),
        (f"line 6 of it\n{CUT}", True, True),
        (f"line 6 of it\n{CUT} mine", True, False),
        (f"line 0 of it\n{CUT}", False, False),
        ("line 0 of it\nline 201~1 of it\nline 2", False, True),  # of a paste's end mark
        ("line 0 of it\nline 1 of it\n[201~li1~ne 2", False, True),
        ("line 0 of it\nline 201~1 of it, no", False, False),
        ("", False, False),
        (".", True, False),
    ],
)
def test_a_long_text_is_ours_as_far_as_it_is_there_alone(
    draft: str, scrolled: bool, is_ours: bool
) -> None:
    screen = Screen(Prompt.IDLE, draft, scrolled=scrolled)
    assert holds_only(CLAUDE, screen, LONG) is is_ours


@pytest.mark.parametrize(("draft", "is_ours"), [("Begin.", True), ("Be", False), ("", False)])
def test_a_short_text_is_ours_as_a_whole(draft: str, is_ours: bool) -> None:
    assert holds_only(CLAUDE, Screen(Prompt.IDLE, draft), "Begin.") is is_ours


@pytest.mark.parametrize("draft", ["!", "No!"])
def test_a_text_without_letters_is_ours_as_it_is(draft: str) -> None:
    assert holds_only(CLAUDE, Screen(Prompt.IDLE, draft), "!") is (draft == "!")


@pytest.mark.parametrize(
    ("draft", "is_ours"), [("l", True), ("m", False), ("", False), (".", False)]
)
def test_of_what_is_being_erased_a_letter_is_enough(draft: str, is_ours: bool) -> None:
    assert holds_only(CLAUDE, Screen(Prompt.IDLE, draft), LONG, least=1) is is_ours


WIDE = f"[sm] {'far ' * 30}"


@pytest.mark.parametrize(
    ("draft", "begins"),
    [
        (WIDE, True),
        (f"{WIDE[:80]}\n{WIDE[80:]} and mine", True),
        (WIDE[:30], False),
        (f"mine {WIDE}", False),
        ("", False),
    ],
)
def test_a_draft_begins_like_a_message_whatever_follows(draft: str, begins: bool) -> None:
    typed = TypedMessage("aaaaaaaa", 1, WIDE, 2000.0)
    assert begins_like(Screen(Prompt.IDLE, draft), typed) is begins


def test_of_a_draft_that_is_longer_than_the_screen_the_end_tells() -> None:
    typed = TypedMessage("aaaaaaaa", 1, WIDE, 2000.0)
    end = make_last_line("aaaaaaaa")
    assert begins_like(Screen(Prompt.NONE, f"far away\n{end}", scrolled=True), typed)
    assert not begins_like(Screen(Prompt.NONE, f"{end} and mine", scrolled=True), typed)
