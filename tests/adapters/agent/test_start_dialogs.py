"""Each dialog of a start is known by the screen that was kept of it."""

from __future__ import annotations

import re

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.agent.screen import parse
from sm.adapters.agent.start_dialogs import DIALOGS, find_start_dialog
from tests.adapters.agent.test_screen import CLAUDE_SHOWS, CODEX_SHOWS, SCREENS

RECORDINGS = {
    "dialog_trust": "whether the directory is trusted",
    "dialog_server": "whether to use an MCP server",
    "dialog_key": "whether to use the key of its environment",
    "dialog_bypass": "whether permissions may be skipped",
    "codex_dialog_first_login": "for a login",
    "codex_dialog_login": "for a login",
    "codex_dialog_trust": "whether the directory is trusted",
    "codex_dialog_update": "whether to update itself",
    "codex_dialog_hooks": "whether hooks are trusted",
}


def read_text(name: str) -> str:
    return "\n".join(row.text for row in parse((SCREENS / f"{name}.txt").read_text()))


def find(name: str) -> str:
    profile = CODEX if name.startswith("codex") else CLAUDE
    found = find_start_dialog(profile, read_text(name))
    return found.asks if found else ""


def test_each_dialog_has_its_recording() -> None:
    for program in (CLAUDE.program, CODEX.program):
        kept = [
            asks
            for name, asks in RECORDINGS.items()
            if name.startswith("codex") is (program == "codex")
        ]
        assert [one.asks for one in DIALOGS[program]] == list(dict.fromkeys(kept))


@pytest.mark.parametrize("name", [*CLAUDE_SHOWS, *CODEX_SHOWS])
def test_a_screen_shows_that_dialog_and_no_other(name: str) -> None:
    assert find(name) == RECORDINGS.get(name, "")


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_dialog_that_is_half_drawn_is_not_known_yet(name: str) -> None:
    profile = CODEX if name.startswith("codex") else CLAUDE
    found = find_start_dialog(profile, read_text(name))
    assert found
    if found.choice:
        rows = [row for row in read_text(name).splitlines() if not re.search(found.choice, row)]
        assert find_start_dialog(profile, "\n".join(rows)) is None


def test_of_another_program_nothing_is_known() -> None:
    assert find_start_dialog(BUILTIN["generic"], read_text("dialog_trust")) is None
