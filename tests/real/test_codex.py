"""What we lean on in the pinned Codex: when one of these fails, look at the profile."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import list_questions
from tests.helpers import git, wait_for
from tests.real.api import Api, Reply
from tests.real.client import environment
from tests.real.codex import Codex
from tests.real.responses import exec_command


def asked(api: Api, count: int) -> None:
    wait_for(lambda: len(api.main) >= count, f"{count} requests")


def test_prompt_and_instructions_of_the_command_line_arrive(codex: Codex, api: Api) -> None:
    codex.start("begin\nplease", developer_instructions="never forget the protocol")
    codex.wait_events("Stop")
    assert api.main[0].said[-1] == "begin\nplease"
    assert api.appearances("never forget the protocol") == 1
    names = [event.name for event in codex.events()]
    assert names == ["SessionStart", "UserPromptSubmit", "Stop"]


def test_long_paste_arrives_unmarked(codex: Codex, api: Api) -> None:
    text = "\n".join(f"{n:03d} <b> $x `y` é 漢" for n in range(300))
    codex.start()
    codex.paste(text)
    asked(api, 1)
    assert api.main[0].said[-1] == text


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse"])
@pytest.mark.parametrize(("size", "exact"), [(10_000, 1), (10_001, 0)])
def test_added_context_has_a_limit_of_10000_bytes(
    codex: Codex, api: Api, event: str, size: int, exact: int
) -> None:
    text = "<" * size
    codex.start()
    codex.add_context(event, text)
    api.say(Reply(tools=(exec_command("echo done"),)))
    codex.paste("begin")
    codex.wait_events("Stop")
    assert api.appearances(text) == exact


def test_resumed_codex_keeps_its_id(codex: Codex, api: Api) -> None:
    codex.start("begin", wait=False)
    (stop,) = codex.wait_events("Stop")
    session = stop.payload["session_id"]
    codex.end()
    codex.name = "again"
    codex.start("resume", session, "go on\nplease", wait=False)
    codex.wait_events("Stop", 2)
    started, prompt = codex.events("SessionStart", "UserPromptSubmit")[-2:]
    assert (started.payload["source"], started.payload["session_id"]) == ("resume", session)
    assert prompt.payload["prompt"] == api.main[-1].said[-1] == "go on\nplease"


def test_queued_text_waits_for_the_turns_end_and_leaves_a_draft_alone(
    codex: Codex, api: Api
) -> None:
    codex.start("begin", wait=False)
    session = codex.wait_events("Stop")[0].payload["session_id"]
    gate = codex.folder / "gate"
    os.mkfifo(gate)
    api.say(Reply(tools=(exec_command(f"cat '{gate}'"),)))
    codex.paste("work")
    codex.wait_events("PreToolUse")
    codex.type("my own words")
    text = "/clear <b> é\n\ttab"
    queue(codex, session, text)
    gate.write_text("done")
    codex.wait_events("Stop", 3)
    assert api.main[-1].said[-1] == text
    codex.wait_screen(lambda screen: "› my own words" in screen, "the draft still")


def queue(codex: Codex, session: str, text: str) -> None:
    command = [str(codex.program), "queue", "--thread", session, f"--message={text}"]
    env = environment(codex.home, codex.api.url)
    subprocess.run(command, env=env, cwd=Path(codex.cwd), check=True, capture_output=True)


def test_trust_is_asked_for_in_a_repository_as_foreseen(codex: Codex, api: Api) -> None:
    git(codex.cwd, "init", "-q")
    env = {"HOME": str(codex.home)}
    file = codex.home / ".codex" / "config.toml"
    trusting = file.read_text()
    assert list(list_questions(CODEX, ("codex",), (codex.cwd,), env)) == []
    file.write_text(trusting.partition("[projects.")[0])
    assert len(list(list_questions(CODEX, ("codex",), (codex.cwd,), env))) == 1
    codex.start("begin", wait=False)
    codex.wait_screen(lambda screen: "Trust this folder?" in screen, "the question")
    assert not api.main
