from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import GENERIC
from sm.adapters.agent.prompt_text import cut_pieces
from sm.base.quotation import fence, take_out
from sm.base.text import clean, utf16_length
from sm.messages.queue import Message
from sm.messages.wire import Match, Wire
from sm.messages.wire import make_wire as way_of

IDENT = "0123456789abcdef"


def wire(profile: Profile, text: str) -> Wire:
    return way_of(profile, Message(id=IDENT, text=text), shown="shown")


def body(text: str) -> str:
    answer = wire(CLAUDE, text).answer
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
    way = wire(CLAUDE, text)
    assert (way.pieces, way.expected, way.match, way.answer) == ((text,), text, Match.EXACT, "")


@pytest.mark.parametrize(
    "text",
    [
        *("/clear", "!id", "exit", ":q", "-l", "1. Yes", "#note", "@README.md", "see @README.md"),
        *(
            "a\tb",
            "a\u2028b",
            "a\u2029b",
            "ends in \\",
            "na\u0308h",
            "a\u202eb",
            "  indented",
            "one\ntwo\nthree\nfour",
        ),
        *("x" * 801, "</pasted_content id=1>", "?"),
    ],
)
def test_other_text_goes_unchanged_with_a_line_that_names_it(text: str) -> None:
    way = wire(CLAUDE, text)
    assert body(text) == text
    assert json.loads(way.answer)["systemMessage"] == "shown"
    assert IDENT in way.pieces[0]
    assert len(way.pieces) == 1
    assert "\n" not in way.pieces[0]
    assert way.expected in way.pieces[0]
    assert way.match is Match.WITHIN


def test_without_hooks_that_run_the_text_itself_is_typed() -> None:
    """Its line said that the text comes with it, and none came."""
    message = Message(id=IDENT, text="one\ntwo\nthree\nfour")
    way = way_of(CLAUDE, message, may_add=False)
    assert message.text in "".join(way.pieces)
    assert not way.answer
    assert way.remedy  # they may run all the same


def test_long_text_is_typed_in_pieces_that_are_not_wrapped() -> None:
    text = "\n".join(f"line {number}" for number in range(2000))
    way = wire(CLAUDE, text)
    assert not way.answer
    assert text in way.expected == "".join(way.pieces)
    assert all(len(p) <= CLAUDE.paste_characters for p in way.pieces)
    assert all(len(p.split("\n")) <= CLAUDE.paste_lines for p in way.pieces)


@pytest.mark.parametrize("profile", [CLAUDE, CODEX])
def test_of_a_damaged_text_the_agent_is_told_how_to_read_it(profile: Profile) -> None:
    way = way_of(
        profile, Message(id=IDENT, text="-" + "long\n" * 9000), command="sm queue x --show y"
    )
    said = json.loads(way.remedy)["hookSpecificOutput"]["additionalContext"]
    assert IDENT in said
    assert "`sm queue x --show y`" in said


@given(st.text(st.characters(codec="utf-8"), max_size=3000))
def test_pieces_make_up_the_text_and_none_is_too_large(text: str) -> None:
    found = cut_pieces(CLAUDE, text)
    assert "".join(found) == text
    assert all(0 < len(p) <= CLAUDE.paste_characters for p in found)
    assert all(len(p.split("\n")) <= CLAUDE.paste_lines for p in found)


@pytest.mark.parametrize("letter", ["\U0001f600", "\U0001f469\u200d\U0001f469\u200d\U0001f467"])
def test_emoji_count_as_the_client_counts_them(letter: str) -> None:
    text = letter * 1200
    found = cut_pieces(CLAUDE, text)
    assert "".join(found) == text
    assert all(utf16_length(piece) <= CLAUDE.paste_characters for piece in found)
    assert all(piece == letter * (len(piece) // len(letter)) for piece in found)
    assert len(wire(CLAUDE, "Look: " + "\U0001f600" * 500).line) < 100


@example("aa\u200d\u200d\U0001f469", 4)  # what has to stay together leaves no room for the next
@given(st.text(st.sampled_from("a\u200d\U0001f469\n"), max_size=200), st.integers(1, 9))
def test_pieces_make_up_a_text_of_emoji(text: str, limit: int) -> None:
    found = cut_pieces(structs.replace(CLAUDE, paste_characters=limit), text)
    assert "".join(found) == text
    assert all(0 < utf16_length(piece) <= max(2, limit) for piece in found)


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_whatever_is_typed_first_is_no_command_and_shows_nothing_unseen(text: str) -> None:
    if text := clean(text):
        first = wire(CLAUDE, text).pieces[0]
        assert first[0] not in "/!#@-? \t\n\\"
        assert not first.endswith("\\")
        assert first.strip().lower() not in CLAUDE.leave


def test_an_agent_without_hooks_gets_one_paste() -> None:
    way = wire(GENERIC, "/clear\n\tall\u200b\n")
    assert way.pieces == ("Note: /clear\n    all\n",)
    assert not way.answer


def test_a_command_of_a_profile_is_not_typed_as_it_is() -> None:
    odd = structs.replace(CLAUDE, command_characters="[y", leave=("so long",))
    for text in ("yes", "So long"):
        assert len(wire(CLAUDE, text).pieces) == 1
        assert wire(CLAUDE, text).match is Match.EXACT
        assert wire(odd, text).match is Match.WITHIN
    first = wire(odd, "yes").line  # our own line neither
    assert (first[0], IDENT in first) == ("N", True)


@pytest.mark.parametrize("count", [20, 2000])
def test_what_is_typed_in_a_texts_place_says_what_it_is(count: int) -> None:
    log = "one\n" * count
    for message, title in (
        (Message(id=IDENT, text=f"[sm] CI failed, step x.\n{log}"), "CI failed, step x"),
        (
            Message(id=IDENT, text=f"framed\n{log}", source="ann", summary="Look here …"),
            "From ann: Look here …",
        ),
    ):
        lines = f" ({count + 1} lines)" if not message.source else ""
        way = way_of(CLAUDE, message)
        assert way.line.startswith(f"[sm] {title}{lines}, message {IDENT}:")
        assert f"message {IDENT}" in way.expected
        assert way.match is (Match.WITHIN if way.answer else Match.WHOLE)


ESCAPED = [
    *("<system-reminder>", "</system-reminder>", "a <System-Reminder> b", "< system-reminder"),
    *("<\tsystem-reminder>", "< \n / system-reminder a>", "<\u00a0system-reminder>"),
]
"""Claude Code 2.1.329 makes `&lt;` of `<` in these, where a hook adds them."""
KEPT = ["system-reminder", "<//system-reminder>", "<!system-reminder>", "<system_reminder>"]


@pytest.mark.parametrize("part", ESCAPED)
def test_a_text_that_the_client_would_change_in_a_hooks_answer_is_typed(part: str) -> None:
    text = f"/a command\n{part}\nand more"
    way = wire(CLAUDE, text)
    assert not way.answer
    assert text.replace("\t", "    ") in "".join(way.pieces)
    assert wire(CODEX, text).answer


@pytest.mark.parametrize("part", KEPT)
def test_a_text_that_is_only_like_it_comes_by_the_hook(part: str) -> None:
    assert body(f"/a command\n{part}") == f"/a command\n{part}"


def test_a_separator_that_has_to_be_typed_is_a_line_break() -> None:
    way = wire(CLAUDE, "a\u2028" * 9000)
    assert "\u2028" not in "".join(way.pieces)
    assert all(len(p.split("\n")) <= CLAUDE.paste_lines for p in way.pieces)


QUOTING = f"[sm] CI failed.\n{fence('CI log', 'a log', '5eedf00d')}\nMend it."
FILE = Path("/tmp/a place/quoted.txt")


def quoting(profile: Profile, file: Path = FILE) -> Wire:
    return way_of(profile, Message(id=IDENT, text=QUOTING), "shown", "command", file)


def test_what_is_quoted_stands_in_a_file_that_the_line_names() -> None:
    way = quoting(CLAUDE)
    ours, quotes = take_out(QUOTING)
    assert (way.added, way.quotes, way.match) == (ours, quotes, Match.WITHIN)
    assert f'is in @"{FILE}" as data.' in way.line
    assert "a log" not in way.answer.partition('"hookSpecificOutput"')[2]


@pytest.mark.parametrize(
    ("profile", "file"),
    [(CODEX, FILE), (CLAUDE, Path('/a"b/quoted.txt')), (CLAUDE, Path(f"/{'a' * 900}/quoted.txt"))],
)
def test_where_no_line_can_name_it_all_of_it_is_typed(profile: Profile, file: Path) -> None:
    way = quoting(profile, file)
    assert (way.answer, way.quotes) == ("", "")
    assert QUOTING in "".join(way.pieces)
