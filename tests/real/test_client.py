"""What we lean on in the pinned Claude Code: when one of these fails, look at the profile."""

from __future__ import annotations

import threading

import pytest

from tests.helpers import wait_for
from tests.real.api import Api, Failure, Kind, Reply, Tool
from tests.real.terminal import BUSY, IDLE, Terminal

HOSTILE = "\n".join(
    f"{n:03d} \"q\" 'q' $HOME `id` \\n é 漢 👩‍💻 <b> #a @b; tab\tend" for n in range(120)
)


def asked(api: Api, count: int) -> None:
    wait_for(lambda: len(api.main) >= count, f"{count} requests")


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


def test_reason_of_a_blocked_stop_arrives_unchanged_but_twice(client: Terminal, api: Api) -> None:
    client.answer("Stop", {"decision": "block", "reason": HOSTILE})
    client.paste("begin")
    asked(api, 2)
    assert api.main[1].said[-1] == f"Stop hook feedback:\n{HOSTILE}"
    assert api.appearances(HOSTILE) == 2, "the client says it again as a blocking error"


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "SessionStart", "Stop"])
def test_added_context_of_9000_characters_arrives_unchanged(
    terminal: Terminal, api: Api, event: str
) -> None:
    text = (HOSTILE * 3)[:9000]
    terminal.add_context(event, text)
    terminal.start()
    api.say(Reply(tools=(Tool.bash("echo done"),)), "Done.")
    terminal.paste("begin")
    asked(api, 3 if event == "Stop" else 2)
    assert api.appearances(text) == 1


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


def test_session_start_tells_what_it_is_for(client: Terminal, api: Api) -> None:
    client.paste("begin")
    client.wait_events("Stop")
    client.wait_idle()
    client.paste("/clear")
    client.wait_events("SessionStart", 2)
    client.paste("again")
    client.wait_events("Stop", 2)
    client.wait_idle()
    client.paste("/compact")
    started = [event.payload for event in client.wait_events("SessionStart", 3)]
    assert [one["source"] for one in started] == ["startup", "clear", "compact"]
    first, cleared, compacted = (one["session_id"] for one in started)
    assert first != cleared == compacted
    assert [one.kind for one in api.seen if one.kind is not Kind.SIDE][-1] is Kind.COMPACTION


def test_failed_authentication_is_told_to_the_hook(client: Terminal, api: Api) -> None:
    api.model = lambda _request: Failure(401)
    client.paste("begin")
    (failed,) = client.wait_events("StopFailure")
    assert failed.payload["error"] == "authentication_failed"


def test_client_goes_on_when_the_api_is_back(client: Terminal, api: Api) -> None:
    api.down()
    client.paste("begin")
    client.wait_events("UserPromptSubmit")
    api.up()
    client.wait_events("Stop")
    assert api.main[-1].said[-1] == "begin"


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
