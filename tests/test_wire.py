from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.generic import GENERIC
from sm.session.queue import size
from sm.session.wire import pieces, wire
from sm.text import clean

IDENT = "0123456789abcdef"


def body(text: str) -> str:
    answer = wire(CLAUDE, IDENT, text).answer
    return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize(
    "text",
    [
        "[sm] CI passed for 0123456789.",
        "[sm] Review: approved. Merge pull request #6:\n  sm pr merge 6",
        "Two lines:\n  of text with 'quotes', \"more\", $HOME, `id` and a \\ within;",
        "Ünïcode ✓ 👍",
        "Sieh nach: das ist alles.\n\nUnd noch eine Zeile",
    ],
)
def test_plain_short_text_is_typed_as_it_is(text: str) -> None:
    way = wire(CLAUDE, IDENT, text)
    assert (way.pieces, way.expected, way.exact, way.answer) == ((text,), text, True, "")


@pytest.mark.parametrize(
    "text",
    [
        *("/clear", "!id", "exit", ":q", "-l", "1. Yes", "#note", "@README.md", "see @README.md"),
        *("a\tb", "ends in \\", "na\u0308h", "a\u202eb", "  indented", "one\ntwo\nthree\nfour"),
        *("x" * 801, "</pasted_content id=1>", "?"),
    ],
)
def test_other_text_goes_unchanged_with_a_line_that_names_it(text: str) -> None:
    way = wire(CLAUDE, IDENT, text)
    assert body(text) == text
    assert IDENT in way.pieces[0]
    assert len(way.pieces) == 1
    assert "\n" not in way.pieces[0]
    assert way.expected in way.pieces[0]
    assert not way.exact


def test_long_text_is_typed_in_pieces_that_are_not_wrapped() -> None:
    text = "\n".join(f"line {number}" for number in range(2000))
    way = wire(CLAUDE, IDENT, text)
    assert not way.answer
    assert text in "".join(way.pieces)
    assert all(len(p) <= CLAUDE.paste_characters for p in way.pieces)
    assert all(len(p.split("\n")) <= CLAUDE.paste_lines for p in way.pieces)


@given(st.text(st.characters(codec="utf-8"), max_size=3000))
def test_pieces_make_up_the_text_and_none_is_too_large(text: str) -> None:
    found = pieces(CLAUDE, text)
    assert "".join(found) == text
    assert all(0 < len(p) <= CLAUDE.paste_characters for p in found)
    assert all(len(p.split("\n")) <= CLAUDE.paste_lines for p in found)


@pytest.mark.parametrize("letter", ["\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467"])
def test_emoji_count_as_the_client_counts_them(letter: str) -> None:
    text = letter * 1200
    found = pieces(CLAUDE, text)
    assert "".join(found) == text
    assert all(size(piece) <= CLAUDE.paste_characters for piece in found)
    assert all(piece == letter * (len(piece) // len(letter)) for piece in found)
    assert len(wire(CLAUDE, IDENT, "Look: " + "\U0001f600" * 500).line) < 100


@example("aa\u200d\u200d\U0001f469", 4)  # what has to stay together leaves no room for the next
@given(st.text(st.sampled_from("a\u200d\U0001f469\n"), max_size=200), st.integers(1, 9))
def test_pieces_make_up_a_text_of_emoji(text: str, limit: int) -> None:
    found = pieces(structs.replace(CLAUDE, paste_characters=limit), text)
    assert "".join(found) == text
    assert all(0 < size(piece) <= max(2, limit) for piece in found)


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_whatever_is_typed_first_is_no_command_and_shows_nothing_unseen(text: str) -> None:
    if text := clean(text):
        first = wire(CLAUDE, IDENT, text).pieces[0]
        assert first[0] not in "/!#@-? \t\n\\"
        assert not first.endswith("\\")
        assert first.strip().lower() not in CLAUDE.leave


def test_an_agent_without_hooks_gets_one_paste() -> None:
    way = wire(GENERIC, IDENT, "/clear\n\tall\u200b\n")
    assert way.pieces == ("Note: /clear\n    all\n",)
    assert not way.answer


def test_a_command_of_a_profile_is_not_typed_as_it_is() -> None:
    odd = structs.replace(CLAUDE, command_characters="[y", leave=("so long",))
    for text in ("yes", "So long"):
        assert len(wire(CLAUDE, IDENT, text).pieces) == 1
        assert wire(CLAUDE, IDENT, text).exact
        assert not wire(odd, IDENT, text).exact
    first = wire(odd, IDENT, "yes").line  # our own line neither
    assert (first[0], IDENT in first) == ("N", True)
