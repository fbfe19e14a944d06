"""Texts of every kind, and drafts, with one real Claude Code that hears them all.

A new one for each text would cost more than all that is tested here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from sm.adapters.composer import type_once
from sm.adapters.tmux import Pane, Tmux
from sm.base.refusal import Refusal
from sm.base.text import utf16_length
from sm.messages import queue
from sm.messages.display import summarise
from sm.messages.queue import MessageFolder
from sm.sessions.agent_state import State
from tests.helpers import wait_for
from tests.real.client import Clients
from tests.real.lasting import lasting_session, settle
from tests.real.managed import ACCEPTED, NOTE, Managed

ADDED = "UserPromptSubmit hook additional context: "
"""What the client says before a text that a hook has added (2.1.329)."""


@pytest.fixture(scope="module")
def listener(pinned: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    """A session whose agent is the client; it has heard one message, and is idle."""
    with lasting_session(pinned.claude, tmp_path_factory.mktemp("listener")) as managed:
        managed.start()
        managed.send("Begin.")
        managed.wait_state(State.IDLE)
        yield managed


@pytest.fixture
def managed(listener: Managed) -> Managed:
    """The same, with an empty composer and nothing on its way."""
    settle(listener)
    return listener


def new_texts(managed: Managed, text: str) -> list[str]:
    """What an idle agent is told in the one request that follows when `text` is sent."""
    before = len(managed.api.main)
    assert managed.send(text) == ACCEPTED
    wait_for(lambda: len(managed.api.main) > before, "the request")
    managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    assert len(managed.api.main) == before + 1
    then, now = (request.texts for request in managed.api.main[before - 1 :])
    assert now[: len(then)] == then
    return now[len(then) + 1 :]  # behind the answer of the model


def arrives_as(managed: Managed, text: str, expected: str) -> None:
    """The agent is told just that, as a prompt or by the hook that hears of ours."""
    told = new_texts(managed, text)
    named = f"message {last_id(managed)}: its text comes with this prompt."
    ours = f"[sm] {summarise(text)}, {named}"
    assert told in ([expected], [ours, ADDED + expected])
    assert not (managed.session.record.cwd / "broken").exists()


def last_id(managed: Managed) -> str:
    """The id of the message that was sent last."""
    return queue.list_messages(managed.session.dir, MessageFolder.DONE)[-1].id


@pytest.mark.parametrize(
    "text",
    [
        *("/clear", "!touch broken", "exit", ":q", "-l", "1. Yes", "x", "?", "# note", "@work"),
        *("quit", "/clear and more", "It ends here;", "\tone tab\tand another"),
        "tabs\tand \u202einvisible\u202c ones; $(id) `id` 'a' \"b\" \\",
        "one\ntwo\n\n  three\nfour\nfive",
        "e\u0301" + "é" * 2000,
        "one\u2028two\u2029three",
    ],
)
def test_text_that_the_client_would_act_upon_arrives_as_text(managed: Managed, text: str) -> None:
    arrives_as(managed, text, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An ESC \x1b, \x1b[31mred\x1b[0m and \x1b]0;a title\x07 all", "An ESC , red and  all"),
        ("A NUL \x00 and a bell \a", "A NUL  and a bell"),
        ("one\r\ntwo\rthree\r\n", "one\ntwo\nthree"),
        ("half \ud83d of a pair, \udce9 that is no UTF-8", "half  of a pair,  that is no UTF-8"),
    ],
)
def test_what_a_terminal_would_act_upon_is_gone_and_the_rest_arrives(
    managed: Managed, text: str, expected: str
) -> None:
    arrives_as(managed, text, expected)


def arrives_whole(managed: Managed, text: str) -> None:
    """It is typed in pieces. On a busy machine the client may damage one, but not twice."""
    for _ in range(2):
        ident = queue.make_id()
        assert managed.send(text, ident=ident) == ACCEPTED
        managed.wait_state(State.IDLE)
        assert "pasted_content" not in "".join(managed.api.main[-1].texts)
        is_whole = managed.api.appearances(text) == 1
        assert managed.api.appearances(managed.note_of(ident)) == (not is_whole)
        if is_whole:
            return
    raise AssertionError("it was damaged twice")


def test_long_text_arrives_whole_and_unmarked(managed: Managed) -> None:
    text = "\n".join(
        f"{number} 'q' \"d\" $x `c` \\ é ✓ {'x' * (number % 90)}" for number in range(1000)
    )
    arrives_whole(managed, text)


@pytest.mark.parametrize("character", ["\U0001f600", "👩‍👩‍👧", "字"])
def test_long_text_of_wide_characters_arrives_whole_and_unmarked(
    managed: Managed, character: str
) -> None:
    """The client counts UTF-16 units where it takes a paste for a document."""
    text = character * (10_000 // utf16_length(character))
    arrives_whole(managed, text)


def test_a_line_of_emoji_arrives_unmarked(managed: Managed) -> None:
    text = "So: " + "\U0001f600" * 700
    arrives_whole(managed, text)


DRAFTS = ("half a li", "two lines\nof a draft", "/cle")
IN_PIECES = ("long " * 150 + "\n") * 15
IN_A_THOUSAND = "long\n" * 2000


@pytest.mark.parametrize(
    ("draft", "text"),
    [
        *product(DRAFTS, ["Plain.", "\twith a tab", IN_PIECES]),
        (DRAFTS[1], IN_A_THOUSAND),
    ],
)
def test_a_persons_draft_survives(managed: Managed, draft: str, text: str) -> None:
    managed.paste(draft)
    managed.wait_screen(lambda screen: screen.draft == draft, "the draft")
    assert managed.send(text) == ACCEPTED
    managed.wait_state(State.IDLE)
    managed.wait_screen(lambda screen: screen.draft == draft, "the draft again")
    assert draft not in managed.api.main[-1].said[-1]


@pytest.mark.parametrize("draft", ["", DRAFTS[1]])
def test_of_a_text_that_was_damaged_on_its_way_the_agent_is_told(
    managed: Managed, draft: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the client took the rest of a paste's end mark for text."""

    def type_damaged(
        tmux: Tmux, pane: Pane, key: str, chunks: Sequence[str], **how: Any
    ) -> Refusal | None:
        chunks = (*chunks[:2], f"{chunks[2]}[201~", *chunks[3:])
        return type_once(tmux, pane, key, chunks, **how)

    monkeypatch.setattr("sm.messages.draft.type_once", type_damaged)
    if draft:
        managed.paste(draft)
    managed.wait_screen(lambda screen: screen.draft == draft, "the draft")
    ident = queue.make_id()
    assert managed.send(IN_PIECES, ident=ident) == ACCEPTED
    managed.wait_state(State.IDLE)
    managed.wait_screen(lambda screen: screen.draft == draft, "the draft again")
    assert managed.api.appearances(managed.note_of(ident)) == 1
    told = [told for said in managed.api.main[-1].texts for told in NOTE.findall(said)]
    assert told.count(ident) == 1
