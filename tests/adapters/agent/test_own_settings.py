"""What in a person's own settings of Claude Code is in the way of messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent import own_settings
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.own_settings import find_prompt_hooks, list_obstacles
from sm.sessions.agent_hooks import make_command, make_entry

SUBMITS = {"enter": "chat:newline", "alt+enter": "chat:submit"}
BLOCKS = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, beside a HOME with settings, and managed settings that a test may write."""
    monkeypatch.setattr(own_settings, "MANAGED", tmp_path / "managed.json")
    for place in ("home", "work"):
        (tmp_path / place / ".claude").mkdir(parents=True, exist_ok=True)
    return tmp_path / "work"


def put(folder: Path, name: str, content: dict[str, Any]) -> None:
    (folder.parent / name).write_text(json.dumps(content))


def named(folder: Path, *words: str, **env: str) -> list[str]:
    found = list_obstacles(CLAUDE, words, folder, {"HOME": str(folder.parent / "home")} | env)
    return [one.setting.replace(f"{folder.parent}/", "") for one in found]


@pytest.mark.parametrize(
    ("name", "content", "setting"),
    [
        ("managed.json", {"allowManagedHooksOnly": True}, "'allowManagedHooksOnly' in '"),
        ("managed.json", {"disableAllHooks": True}, "'disableAllHooks' in 'managed.json'"),
        ("home/.claude/settings.json", {"axScreenReader": True}, "'axScreenReader' in 'home/"),
        ("home/.claude/settings.json", BLOCKS, "a hook at UserPromptSubmit in 'home/"),
        ("work/.claude/settings.local.json", BLOCKS, "a hook at UserPromptSubmit in 'work/"),
        ("home/.claude/settings.json", {"enabledPlugins": {"a@b": True}}, "a hook at UserPromptS"),
        *(
            (
                "home/.claude/keybindings.json",
                {"bindings": [{"context": "Chat", "bindings": {key: action}}]},
                f"'{key}' in 'home/.claude/keybindings.json'",
            )
            for key, action in (
                ("enter", "chat:newline"),
                ("ctrl+s", "chat:undo"),
                ("escape", "chat:x"),
            )
        ),
    ],
)
def test_a_setting_in_the_way_is_named(
    folder: Path, name: str, content: dict[str, Any], setting: str
) -> None:
    put(folder, name, content)
    (found,) = named(folder)
    assert found.startswith(setting)


def test_the_key_that_submits_is_told_as_tmux_calls_it(folder: Path) -> None:
    bound = {"bindings": [{"context": "Chat", "bindings": SUBMITS}]}
    put(folder, "home/.claude/keybindings.json", bound)
    (found,) = list_obstacles(CLAUDE, (), folder, {"HOME": str(folder.parent / "home")})
    assert found.advice == "set profiles.claude.submit_keys: [M-Enter]"


def test_words_and_variables_of_the_command_are_named(folder: Path) -> None:
    assert named(folder, "claude", "--safe-mode") == ["'--safe-mode' in the agent's command"]
    assert named(folder, NO_COLOR="1") == ["NO_COLOR in its environment"]
    assert named(folder, CLAUDE_AX_SCREEN_READER="0") == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("home/.claude/settings.json", {"disableAllHooks": True}),  # ours wins
        ("home/.claude/settings.json", {"editorMode": "vim", "outputStyle": "Explanatory"}),
        ("work/.claude/settings.json", {"axScreenReader": True}),  # the client ignores it there
        (
            "home/.claude/keybindings.json",
            {"bindings": [{"context": "Chat", "bindings": {"enter": None}}]},
        ),
        ("home/.claude/keybindings.json", {"bindings": "odd"}),
        ("home/.claude/settings.json", {"hooks": {"UserPromptSubmit": "odd"}, "a": 1}),
    ],
)
def test_what_is_not_in_the_way_is_not_named(
    folder: Path, name: str, content: dict[str, Any]
) -> None:
    put(folder, name, content)
    assert named(folder) == []


def test_our_own_hooks_in_a_persons_settings_refuse_nothing(folder: Path) -> None:
    entry = make_entry(make_command(Path("/x"), "user-prompt-submit", personal=True))
    put(folder, "home/.claude/settings.json", {"hooks": {"UserPromptSubmit": [entry]}})
    assert find_prompt_hooks(folder, {"HOME": str(folder.parent / "home")}) == []


def test_of_another_agent_nothing_is_known(folder: Path) -> None:
    assert not list(list_obstacles(CODEX, ("--bare",), folder, {"HOME": "/h", "NO_COLOR": "1"}))
