"""What we lean on in the pinned Claude Code, and what leaves it as it was: one client for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.real.api import Api, Reply
from tests.real.client import Clients
from tests.real.lasting import begin_terminal_anew, lasting_terminal
from tests.real.terminal import BUSY, IDLE, Terminal
from tests.real.test_client import asked


@pytest.fixture(scope="module")
def stays(pinned: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with lasting_terminal(pinned.claude, tmp_path_factory.mktemp("stays")) as terminal:
        yield terminal


@pytest.fixture
def client(stays: Terminal) -> Terminal:
    """An idle client in a new context."""
    begin_terminal_anew(stays)
    return stays


@pytest.fixture
def api(client: Terminal) -> Api:
    """Its API, which was not asked for anything in that."""
    return client.api


def test_prompt_glyph_tells_idle_from_busy_by_its_colour(client: Terminal, api: Api) -> None:
    go = threading.Event()
    api.say(Reply("a long story", hold=go))
    client.paste("begin")
    client.wait_busy()
    client.type("a draft")
    client.wait_screen(
        lambda screen: BUSY in screen and "a draft" in screen, "a draft", colours=True
    )
    go.set()
    client.wait_screen(lambda screen: IDLE + "a draft" in screen, "an idle draft", colours=True)


def test_stashed_draft_comes_back_after_the_prompt(client: Terminal, api: Api) -> None:
    client.type("my own words")
    client.wait_screen(lambda screen: "my own words" in screen, "the draft")
    client.keys("C-s")
    client.paste("from the machine")
    asked(api, 1)
    assert api.main[0].said[-1] == "from the machine"
    client.wait_screen(lambda screen: "❯\u00a0my own words" in screen, "the draft again")


@pytest.mark.parametrize(("lines", "wrapped"), [(3, False), (4, True)])
def test_paste_of_four_lines_is_marked_as_pasted(
    client: Terminal, api: Api, lines: int, wrapped: bool
) -> None:
    text = "\n".join(f"line {n}" for n in range(lines))
    client.paste(text)
    asked(api, 1)
    assert ("<pasted_content" in api.main[0].said[-1]) is wrapped
    assert api.appearances(text) == 1


def test_context_added_at_a_stop_goes_on_with_the_turn(client: Terminal) -> None:
    client.add_context("Stop", "there is more")
    client.paste("begin")
    first, second = client.wait_events("Stop", 2)
    assert (first.payload["stop_hook_active"], second.payload["stop_hook_active"]) == (False, True)
    assert first.payload["prompt_id"] == second.payload["prompt_id"]


def test_payload_is_one_line_of_json_with_unicode_as_it_is(client: Terminal) -> None:
    client.paste('say "é 漢" \\ twice')
    (event,) = client.wait_events("UserPromptSubmit")
    assert event.raw.endswith(b'"prompt":"say \\"' + "é 漢".encode() + b'\\" \\\\ twice"}\n')
    assert event.raw.count(b"\n") == 1


def test_added_context_above_10000_characters_is_kept_from_the_model(
    client: Terminal, api: Api
) -> None:
    client.add_context("UserPromptSubmit", "é" * 10_001)
    client.paste("begin")
    asked(api, 1)
    assert api.appearances("<persisted-output>") == 1


def test_many_short_pastes_make_one_prompt_that_is_not_marked(client: Terminal, api: Api) -> None:
    lines = [f"{n:03d} `$x` 'y' \\ {'é' * 30}\n" for n in range(200)]
    pastes = ["".join(lines[n : n + 2]) for n in range(0, len(lines), 2)]
    client.paste(*pastes, "the end")
    asked(api, 1)
    assert api.main[0].said[-1] == "".join(lines) + "the end"


def test_stash_key_on_an_empty_box_brings_the_stash_back(client: Terminal) -> None:
    client.type("my own words")
    client.wait_screen(lambda screen: "my own words" in screen, "the draft")
    client.keys("C-s")
    client.wait_screen(lambda screen: "draft stashed" in screen, "the hint")
    client.keys("C-s")
    client.wait_screen(lambda screen: "❯\u00a0my own words" in screen, "the draft again")
