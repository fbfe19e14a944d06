from __future__ import annotations

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.screen import Screen, read
from sm.adapters.composer import press, type_once
from sm.adapters.tmux import Pane
from sm.base.refusal import Refusal
from tests.helpers import wait_for
from tests.real.terminal import Terminal

LINE = 'it\'s a "line" with `ticks`, $HOME, \\ and ünïcode ✓ 👩‍👩‍👧\n'


def look(client: Terminal) -> tuple[Pane, Screen]:
    pane, text = client.tmux.look(client.pane_id, escapes=True)
    return pane, read(CLAUDE, text)


def wait_draft(client: Terminal, draft: str) -> Screen:
    wait_for(lambda: look(client)[1].draft == draft, f"the draft '{draft}'")
    return look(client)[1]


def prompts(client: Terminal, count: int) -> list[str]:
    return [str(event.payload["prompt"]) for event in client.wait_events("UserPromptSubmit", count)]


def test_a_long_text_in_small_pastes_arrives_exact_and_unmarked(client: Terminal) -> None:
    pane, screen = look(client)
    chunks = [LINE] * 300 + ["end"]
    assert type_once(client.tmux, pane, "a", chunks, row=screen.row) is None
    assert type_once(client.tmux, pane, "a", chunks, row=screen.row) is None
    assert prompts(client, 1) == [LINE * 300 + "end"]
    client.wait_events("Stop")
    assert client.api.main[0].said[-1] == LINE * 300 + "end"


def test_a_draft_is_put_aside_by_the_same_command_and_comes_back(client: Terminal) -> None:
    client.paste("a draft\n  of mine", enter=False)
    screen = wait_draft(client, "a draft\n  of mine")
    pane, key = look(client)[0], CLAUDE.stash_key
    assert type_once(client.tmux, pane, "a", ["go"], row=screen.row, stash=key) is None
    assert prompts(client, 1) == ["go"]
    wait_draft(client, "a draft\n  of mine")


def test_a_key_of_a_person_in_between_makes_it_fail_harmlessly(client: Terminal) -> None:
    pane, screen = look(client)
    client.type("h")
    wait_draft(client, "h")
    assert type_once(client.tmux, pane, "a", ["go"], row=screen.row) is Refusal.CHANGED
    assert press(client.tmux, pane, ["Enter"], row=screen.row) is Refusal.CHANGED
    client.type("i")
    screen = wait_draft(client, "hi")
    assert press(client.tmux, pane, CLAUDE.submit_keys, row=screen.row) is None
    assert prompts(client, 1) == ["hi"]
