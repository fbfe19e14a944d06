"""What we lean on in the pinned Claude Code: when one of these fails, look at the profile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers import wait_for
from tests.real.api import Api, Failure, Kind, Reply, Tool
from tests.real.client import hooks
from tests.real.terminal import Terminal

HOSTILE = "\n".join(
    f"{n:03d} \"q\" 'q' $HOME `id` \\n é 漢 👩‍💻 <b> #a @b; tab\tend" for n in range(120)
)


def asked(api: Api, count: int) -> None:
    wait_for(lambda: len(api.main) >= count, f"{count} requests")


@pytest.mark.parametrize("events", [("SessionStart", "UserPromptSubmit", "PostToolUse"), ("Stop",)])
def test_added_context_of_9000_characters_arrives_unchanged(
    terminal: Terminal, api: Api, events: tuple[str, ...]
) -> None:
    texts = {event: (event + HOSTILE * 3)[:9000] for event in events}
    for event, text in texts.items():
        terminal.add_context(event, text)
    terminal.start()
    api.say(Reply(tools=(Tool.bash("echo done"),)), "Done.")
    terminal.paste("begin")
    asked(api, 3 if "Stop" in events else 2)
    assert [api.appearances(text) for text in texts.values()] == [1] * len(events)


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


def test_two_hooks_at_an_event_have_a_limit_each(terminal: Terminal, api: Api) -> None:
    texts = ["a" * 9900, "b" * 9900]
    given = json.loads(terminal.settings().read_text())["hooks"]
    for name, text in zip("ab", texts, strict=True):
        answer = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
        (terminal.folder / name).write_text(json.dumps({"hookSpecificOutput": answer}))
        command = {"type": "command", "command": f"cat '{terminal.folder}/{name}'"}
        given["UserPromptSubmit"].append({"hooks": [command]})
    terminal.start(hooks=given)
    terminal.paste("begin")
    asked(api, 1)
    assert [api.appearances(text) for text in texts] == [1, 1]


def test_hook_in_the_background_wakes_an_idle_client(terminal: Terminal, api: Api) -> None:
    pipe = terminal.folder / "pipe"
    os.mkfifo(pipe)
    command = f"cat >/dev/null; read -r line <'{pipe}'; echo \"$line\" >&2; exit 2"
    given = json.loads(terminal.settings().read_text())["hooks"]
    waiter = {"type": "command", "command": command, "asyncRewake": True}
    given["SessionStart"].append({"hooks": [waiter]})
    terminal.start(hooks=given)
    terminal.type("my own words")
    terminal.wait_screen(lambda screen: "my own words" in screen, "the draft")
    terminal.add_context("UserPromptSubmit", "what it is about")
    pipe.write_text("wake up\n")
    terminal.wait_events("Stop")
    assert (api.appearances("wake up"), api.appearances("what it is about")) == (1, 1)
    (event,) = terminal.events("UserPromptSubmit")
    assert event.payload["prompt"].startswith("<task-notification>")
    terminal.wait_screen(lambda screen: "❯\u00a0my own words" in screen, "the draft still")


def test_hook_that_stands_in_both_settings_runs_once(terminal: Terminal) -> None:
    hook = f"echo ran >>'{terminal.folder}/ran'"
    user = terminal.home / ".claude" / "settings.json"
    user.write_text(json.dumps(json.loads(user.read_text()) | hooks(UserPromptSubmit=hook)))
    both = json.loads(terminal.settings().read_text())["hooks"]
    both["UserPromptSubmit"].append({"hooks": [{"type": "command", "command": hook}]})
    terminal.start(hooks=both)
    terminal.paste("begin")
    terminal.wait_events("Stop")
    assert (terminal.folder / "ran").read_text() == "ran\n"


def test_resumed_client_keeps_its_id_and_its_appended_prompt(terminal: Terminal, api: Api) -> None:
    (terminal.folder / "prompt").write_text("never forget the protocol")
    session = "3f2a8d54-7c1e-4b90-9a66-0d5e1c7b8f42"
    appended = ("--append-system-prompt-file", str(terminal.folder / "prompt"))
    terminal.start("--session-id", session, *appended, "begin", wait=False)
    (stop,) = terminal.wait_events("Stop")
    transcript = Path(stop.payload["transcript_path"])
    wait_for(transcript.exists, "the transcript")
    terminal.end()
    terminal.name = "again"
    terminal.start("--resume", session, *appended, "go on\nplease", wait=False)
    terminal.wait_events("Stop", 2)
    started, asked_again = terminal.events("SessionStart", "UserPromptSubmit")[-2:]
    assert (started.payload["source"], started.payload["session_id"]) == ("resume", session)
    assert asked_again.payload["prompt"] == "go on\nplease"
    assert all("never forget the protocol" in request.system for request in api.main)
