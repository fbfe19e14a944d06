"""The real client as people set it up: what `sm` hands over arrives, or it says why not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sm.base.refusal import Outcome, Refusal, Status
from sm.config.schema import AgentSettings
from sm.messages import delivery, draft
from sm.messages.queue import Mode
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api
from tests.real.client import environment, seal
from tests.real.managed import ACCEPTED, Managed
from tests.real.test_probe import tried

LONG = "It has\n\n\nfour lines and more,\n@here."
BLOCKING = {
    "hooks": {
        "UserPromptSubmit": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "p=$(cat); case $p in *secret*) echo no >&2; exit 2;; "
                        '*halt*) echo \'{"continue": false, "stopReason": "no"}\';; esac',
                    }
                ]
            }
        ]
    }
}
BINDINGS = {
    "bindings": [
        {"context": "Chat", "bindings": {"enter": "chat:newline", "alt+enter": "chat:submit"}}
    ]
}


def change(path: Path, **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | more))


def home(managed: Managed) -> Path:
    assert managed.session  # made, with its HOME
    return managed.folder / "home" / ".claude"


def test_hooks_that_a_person_has_switched_off_run_for_sm(unstarted: Managed, api: Api) -> None:
    change(home(unstarted) / "settings.json", disableAllHooks=True, editorMode="vim")
    change(unstarted.session.record.cwd / ".claude" / "settings.json", disableAllHooks=True)
    unstarted.start()
    assert unstarted.send(LONG) == ACCEPTED
    unstarted.wait_state(State.IDLE)
    assert api.appearances(LONG) == 1


def test_a_prompt_that_a_persons_hook_refuses_is_not_accepted(unstarted: Managed, api: Api) -> None:
    change(home(unstarted) / "settings.json", **BLOCKING)
    unstarted.start()
    assert unstarted.send("Plain words.") == ACCEPTED
    for text in ("a secret word", f"secret {LONG}"):
        unstarted.wait_state(State.IDLE)
        unstarted.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
        before = len(api.main)
        assert unstarted.send(text, Mode.IMPORTANT) == Outcome(Status.REFUSED, Refusal.BLOCKED)
        assert (unstarted.state, unstarted.screen().draft) == (State.IDLE, "")
        assert len(api.main) == before
    before = len(api.main)
    assert unstarted.send("halt") == ACCEPTED  # the agent keeps it, and does not go on
    assert (unstarted.state, len(api.main)) == (State.IDLE, before)
    assert unstarted.send(LONG) == ACCEPTED
    wait_for(lambda: api.appearances(LONG), "the text")
    assert [api.appearances(text) for text in (LONG, "halt", "secret")] == [1, 1, 0]


def test_a_key_that_does_not_submit_is_named_and_the_one_that_does_can_be_set(
    unstarted: Managed, api: Api, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(home(unstarted) / "keybindings.json", **BINDINGS)
    for module in (delivery, draft):
        monkeypatch.setattr(module, "RECEIPT_S", 1.0)
    unstarted.start()
    unstarted.send("Plain words.")
    for _ in range(2):
        assert delivery.drain(unstarted.session) is Refusal.UNSENT
    assert unstarted.screen().draft == "Plain words."  # pressed once more, and not again and again
    assert not api.main
    unstarted.end()

    folder = unstarted.folder / "home"
    seal(folder, root.probe)
    env = environment(folder, api.url)
    env.pop("TERM")
    command = shlex.join([str(unstarted.program), *unstarted.options])
    agent = AgentSettings(command=command, env=env)
    tried_all = tried(root, agent, unstarted.session.profile)
    found = [f"{one.what}; {one.advice}" for one in tried_all]
    assert any("submit_keys 'Enter': '/clear' stays in the input line" in one for one in found)
    assert any("submit_keys: [M-Enter]" in one for one in found)


def test_a_client_that_calls_no_hook_gets_the_whole_text(
    unstarted: Managed, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (delivery, draft):
        monkeypatch.setattr(module, "RECEIPT_S", 0.2)
    unstarted.options += ("--safe-mode",)
    unstarted.start(wait=False)
    unstarted.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
    unstarted.send(LONG)
    wait_for(lambda: api.appearances("@here."), "the text itself")
