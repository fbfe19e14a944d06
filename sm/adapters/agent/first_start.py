"""Reads from the files of an agent CLI what it would ask or refuse at its first start.

Measured with Claude Code 2.1.329: trust in a folder includes all below it; a worktree has its
repository's. With Codex 0.171.0: within a repository, trust is in the folder itself or in the
repository, which is also that of a worktree. A login may be anywhere, so nothing is said of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.store.bounded import parse_json, parse_toml

BYPASS = ("--dangerously-skip-permissions", "bypassPermissions")
QUIETLY = "skipDangerousModePermissionPrompt"
KEY_END = 20
"""Characters of an API key's end that are kept with the answer whether it may be used."""


def list_questions(
    profile: Profile, command: Sequence[str], folders: Sequence[Path], env: Mapping[str, str]
) -> Iterator[str]:
    """Return what an agent run by `command` with `env` asks in a folder of `folders`.

    It asks each question once, and waits for a person. Nothing if that cannot be known.
    """
    if not env.get("HOME"):
        return
    if profile.program == CODEX.program:
        yield from _list_codex_questions(folders, env)
    if profile.program != CLAUDE.program:
        return
    own = Path(env.get("CLAUDE_CONFIG_DIR") or env["HOME"])
    state = read_object(own / ".claude.json")
    folder = own if env.get("CLAUDE_CONFIG_DIR") else own / ".claude"
    settings = read_object(folder / "settings.json")
    if state is None and (own / ".claude.json").is_file():
        yield f"what to do about '{own / '.claude.json'}', which is not whole"
    if state is None or settings is None:
        return
    if not state.get("hasCompletedOnboarding"):
        yield "how it looks, and to log in"
    key = env.get("ANTHROPIC_API_KEY", "")
    if key and key[-KEY_END:] not in _list(read_dict(state, "customApiKeyResponses"), "approved"):
        yield "whether to use the ANTHROPIC_API_KEY of its environment"
    if not any(_is_trusted(state, folder) for folder in folders):
        yield f"whether '{folders[0]}' is trusted"
    accepted = (state, "bypassPermissionsModeAccepted"), (settings, QUIETLY)
    if _skips_permissions(command) and not any(place.get(name) is True for place, name in accepted):
        yield "whether permissions may be skipped"


def _list_codex_questions(folders: Sequence[Path], env: Mapping[str, str]) -> Iterator[str]:
    home = Path(env.get("CODEX_HOME") or Path(env["HOME"]) / ".codex")
    try:
        config = parse_toml((home / "config.toml").read_text())
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError):  # Codex itself says what is wrong with it
        return
    projects = read_dict(config, "projects")
    # An answer is an answer: with "untrusted" it does not ask either.
    if not any(read_dict(projects, str(one)).get("trust_level") for one in folders):
        yield f"whether '{folders[0]}' is trusted"


def find_refusal(profile: Profile, command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return why the agent would end at once, with what to do; '' if it would not."""
    is_claude = profile.program == CLAUDE.program
    if is_claude and _skips_permissions(command) and not os.geteuid() and not env.get("IS_SANDBOX"):
        return (
            "Claude Code does not skip permissions for root: run sm as another user, or, if this "
            'machine is a sandbox, set IS_SANDBOX: "1" in agent.env'
        )
    return ""


def _skips_permissions(command: Sequence[str]) -> bool:
    return any(word.removeprefix("--permission-mode=") in BYPASS for word in command)


def _is_trusted(state: dict[str, Any], folder: Path) -> bool:
    projects = read_dict(state, "projects")
    places = (folder, *folder.parents)
    return any(
        read_dict(projects, str(one)).get("hasTrustDialogAccepted") is True for one in places
    )


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; an empty one if there is no file, None if it cannot be read."""
    try:
        found = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def read_dict(place: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object at `key`; an empty one for anything else."""
    found = place.get(key)
    return found if isinstance(found, dict) else {}


def _list(place: dict[str, Any], key: str) -> list[Any]:
    found = place.get(key)
    return found if isinstance(found, list) else []
