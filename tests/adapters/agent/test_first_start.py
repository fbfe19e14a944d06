from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import DIALOGS, find_refusal, find_start_dialog, list_questions
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.agent.screen import parse
from tests.adapters.agent.test_screen import CLAUDE_SHOWS, CODEX_SHOWS, SCREENS
from tests.real.client import KEY, seal

COMMAND = ("claude", "--dangerously-skip-permissions")


def asked(home: Path, *folders: Path, command: tuple[str, ...] = COMMAND, **env: str) -> list[str]:
    return list(list_questions(CLAUDE, command, folders, {"HOME": str(home), **env}))


def test_a_sealed_home_is_asked_nothing(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    seal(tmp_path, repo)
    assert asked(tmp_path, repo, ANTHROPIC_API_KEY=KEY) == []
    assert asked(tmp_path, tmp_path / "other", repo / "below") == []


def test_a_key_is_asked_for_and_not_shown(tmp_path: Path) -> None:
    seal(tmp_path, tmp_path)
    (said,) = asked(tmp_path, tmp_path, ANTHROPIC_API_KEY="sk-another-key-of-a-test")
    assert "ANTHROPIC_API_KEY" in said
    assert "sk-" not in said


@pytest.mark.parametrize("place", ["state", "settings"])
def test_permissions_are_accepted_in_either_place(tmp_path: Path, place: str) -> None:
    seal(tmp_path, tmp_path)
    if place == "state":
        (tmp_path / ".claude" / "settings.json").unlink()
    else:
        state = json.loads((tmp_path / ".claude.json").read_text())
        del state["bypassPermissionsModeAccepted"]
        (tmp_path / ".claude.json").write_text(json.dumps(state))
    assert asked(tmp_path, tmp_path) == []


def test_permissions_are_asked_only_of_a_command_that_skips_them(tmp_path: Path) -> None:
    told = "whether permissions may be skipped"
    assert told in asked(tmp_path, tmp_path)
    assert told in asked(tmp_path, tmp_path, command=("claude", "--permission-mode", BYPASS))
    assert told not in asked(tmp_path, tmp_path, command=("claude",))


BYPASS = "bypassPermissions"


def test_a_folder_of_settings_elsewhere_counts(tmp_path: Path) -> None:
    seal(tmp_path / "home", tmp_path)
    elsewhere = tmp_path / "elsewhere"
    assert len(asked(tmp_path / "home", tmp_path, CLAUDE_CONFIG_DIR=str(elsewhere))) == 3


@pytest.mark.parametrize("text", ["{ half", "[]", "\x00"])
def test_a_state_that_is_cut_off_is_all_that_it_asks_about(tmp_path: Path, text: str) -> None:
    (tmp_path / ".claude.json").write_text(text)
    (said,) = asked(tmp_path, tmp_path)
    assert said == f"what to do about '{tmp_path / '.claude.json'}', which is not whole"


def test_of_settings_that_cannot_be_read_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("{ half")
    assert asked(tmp_path, tmp_path) == []


@pytest.mark.parametrize(
    ("config", "is_asked"),
    [
        (None, True),
        ("", True),
        ('[projects."{repo}"]\ntrust_level = "trusted"\n', False),
        ('[projects."{repo}"]\ntrust_level = "untrusted"\n', False),
        ('[projects."{above}"]\ntrust_level = "trusted"\n', True),
        ('projects = "half', False),
    ],
)
def test_codex_asks_for_trust_in_the_repository_itself(
    tmp_path: Path, config: str | None, is_asked: bool
) -> None:
    repo = tmp_path / "src" / "reef"
    if config is not None:
        (tmp_path / ".codex").mkdir()
        text = config.format(repo=repo, above=repo.parent)
        (tmp_path / ".codex" / "config.toml").write_text(text)
    env = {"HOME": str(tmp_path)}
    said = list(list_questions(CODEX, ("codex",), (repo, tmp_path / "worktrees"), env))
    assert said == ([f"whether '{repo}' is trusted"] if is_asked else [])
    env |= {"CODEX_HOME": str(tmp_path / "elsewhere")}
    assert len(list(list_questions(CODEX, ("codex",), (repo,), env))) == 1


def test_others_are_not_spoken_for(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert list(list_questions(Profile("other"), ("other",), (tmp_path,), env)) == []
    assert find_refusal(CODEX, COMMAND, env) == ""


def test_root_is_refused_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "does not skip permissions for root" in find_refusal(CLAUDE, COMMAND, {})
    assert find_refusal(CLAUDE, COMMAND, {"IS_SANDBOX": "1"}) == ""
    assert find_refusal(CLAUDE, ("claude",), {}) == ""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert find_refusal(CLAUDE, COMMAND, {}) == ""


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
