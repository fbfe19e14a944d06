"""Finds settings of a person's Claude Code that keep messages from it, or its word from us.

The settings that `sm` hands over win over a person's, but not over managed ones, nor over keys and
the environment. Each was tried with 2.1.332: what it does stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.first_start import read_dict, read_object
from sm.adapters.agent.profile import Profile

MANAGED = Path("/etc/claude-code/managed-settings.json")
TMUX_KEYS = {"enter": "Enter", "alt+enter": "M-Enter", "ctrl+enter": "C-Enter", "ctrl+j": "C-j"}
"""Names of keybindings.json, and tmux's names for these keys, which `submit_keys` has, too."""
KEYS = ("enter", "escape", "ctrl+s", "ctrl+u")
"""Keys that our profiles press."""
OFF = ("", "0", "false")
KEPT_DAYS = 30
"""Days for which transcripts are kept by default (same page as in `read_settings`)."""
WORDS = {
    "--bare": "no hook runs, so no message is confirmed",
    "--safe-mode": "no hook runs, so no message is confirmed",
    "--ax-screen-reader": "the input line has another look, so nothing is typed",
}
VARIABLES = {
    "CLAUDE_CODE_SIMPLE": "no hook runs, so no message is confirmed",
    "CLAUDE_AX_SCREEN_READER": "the input line has another look, so nothing is typed",
    "NO_COLOR": "its colours are gone, so it looks idle while it works",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "files that a prompt names do not come with it",
}


class Obstacle(NamedTuple):
    """A setting, what it does to sessions of `sm`, and what helps."""

    setting: str
    effect: str
    advice: str


def list_obstacles(
    profile: Profile, command: Sequence[str], folder: Path, env: Mapping[str, str]
) -> Iterator[Obstacle]:
    """Yield the obstacles to messages for an agent that `command` runs in `folder` with `env`."""
    if profile.program != CLAUDE.program or not env.get("HOME"):
        return
    yield from (
        Obstacle(f"'{word}' in the agent's command", effect, "leave it out for sessions of sm")
        for word, effect in WORDS.items()
        if word in command
    )
    yield from (
        Obstacle(f"{name} in its environment", effect, "leave it out of agent.env")
        for name, effect in VARIABLES.items()
        if env.get(name, "").lower() not in OFF
    )
    yield from _in_settings(folder, env)
    yield from _in_keybindings(profile, find_folder(env) / "keybindings.json")


def _in_settings(folder: Path, env: Mapping[str, str]) -> Iterator[Obstacle]:
    managed = read_object(MANAGED) or {}
    for name in ("disableAllHooks", "allowManagedHooksOnly"):
        if managed.get(name) is True:
            effect = "no hook of ours runs, so no message is confirmed"
            yield Obstacle(f"'{name}' in '{MANAGED}'", effect, "ask who manages this machine")
    own = find_folder(env) / "settings.json"
    settings = read_object(own) or {}
    if settings.get("axScreenReader") is True:
        effect = VARIABLES["CLAUDE_AX_SCREEN_READER"]
        advice = "set CLAUDE_AX_SCREEN_READER: '0' in agent.env for sessions of sm"
        if env.get("CLAUDE_AX_SCREEN_READER", "1").lower() not in OFF:
            yield Obstacle(f"'axScreenReader' in '{own}'", effect, advice)
    for path in find_prompt_hooks(folder, env):
        effect = "it may refuse a prompt of sm's, which the agent then does not get"
        yield Obstacle(
            f"a hook at UserPromptSubmit in '{path}'", effect, "let it pass what begins with [sm]"
        )


def find_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of a person's own settings."""
    return Path(env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME", "/")) / ".claude")


def read_settings(folder: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each file of settings that an agent in `folder` has, and what it says.

    What comes first wins (https://code.claude.com/docs/en/settings).
    """
    for path in (
        MANAGED,
        folder / ".claude" / "settings.local.json",
        folder / ".claude" / "settings.json",
        find_folder(env) / "settings.json",
    ):
        yield path, read_object(path) or {}


def find_kept_days(folder: Path, env: Mapping[str, str]) -> tuple[float, Path | None]:
    """Return the days for which transcripts are kept, and which file says so; None if none does.

    The first file that has the key counts.
    """
    for path, settings in read_settings(folder, env):
        days = settings.get("cleanupPeriodDays")
        if isinstance(days, int | float) and not isinstance(days, bool):
            return days, path
    return KEPT_DAYS, None


def may_refuse(profile: Profile, folder: Path, env: Mapping[str, str]) -> bool:
    """Say whether hooks of others may refuse a prompt of such an agent."""
    return profile.hooks == "claude" and bool(find_prompt_hooks(folder, env))


def find_prompt_hooks(folder: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the settings with which others than us may refuse a prompt; plugins may, too."""
    return [path for path, settings in read_settings(folder, env) if _may_refuse(settings)]


def _may_refuse(settings: dict[str, Any]) -> bool:
    entries = read_dict(settings, "hooks").get("UserPromptSubmit")
    commands = [
        str(hook.get("command", "")) if isinstance(hook, dict) else ""
        for entry in (entries if isinstance(entries, list) else [])
        for hook in (entry.get("hooks") or [] if isinstance(entry, dict) else [])
    ]
    plugins = read_dict(settings, "enabledPlugins")
    return any("SM_HOOKS=user " not in one for one in commands) or True in plugins.values()


def _in_keybindings(profile: Profile, path: Path) -> Iterator[Obstacle]:
    bound = _bindings(read_object(path) or {})
    other = {key: bound[key] for key in KEYS if bound.get(key)}
    if "Enter" in profile.submit_keys and other.pop("enter", "chat:submit") != "chat:submit":
        submits = [key for key, action in bound.items() if action == "chat:submit"]
        keys = [TMUX_KEYS[key] for key in submits if key in TMUX_KEYS]
        yield Obstacle(
            f"'enter' in '{path}'",
            f"it is bound to {bound['enter']}, so no message is sent off",
            f"set profiles.claude.submit_keys: [{keys[0] if keys else 'the key that submits'}]",
        )
    for key, action in other.items():
        if key != "enter":
            yield Obstacle(
                f"'{key}' in '{path}'",
                f"it is bound to {action}, and sm presses it",
                "take it out for the context Chat, or set its key in profiles.claude",
            )


def _bindings(found: dict[str, Any]) -> dict[str, str]:
    """Yield the keys of the composer, with their actions."""
    contexts = found.get("bindings")
    bound = dict[str, str]()
    for one in contexts if isinstance(contexts, list) else []:
        if isinstance(one, dict) and one.get("context") in ("Chat", "Global"):
            for key, action in read_dict(one, "bindings").items():
                bound[key.lower().replace(" ", "")] = action if isinstance(action, str) else ""
    return bound
