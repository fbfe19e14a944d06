"""Dialogs of an agent CLI at its start, and what its files say about them beforehand.

Measured with Claude Code 2.1.329: trust in a folder includes all below it; a worktree has its
repository's. With Codex 0.171.0: within a repository, trust is in the folder itself or in the
repository, which is also that of a worktree. A login may be anywhere, so nothing is said of it.

Claude Code 2.1.332 or Codex 0.171.0 has shown each dialog. Its screen is in `tests/real/screens`.
In a session sm answers none of them: a person is told of the dialog, and answers once for good.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.store.bounded import parse_json, parse_toml

BYPASS = ("--dangerously-skip-permissions", "bypassPermissions")
QUIETLY = "skipDangerousModePermissionPrompt"
KEY_END = 20
"""Characters of an API key's end that are kept with the answer whether it may be used."""


TOLD = "in a session of an issue you are told, and answer once with sm attach"
FORESEEN = f"sm doctor foresees it, and {TOLD}"


class StartDialog(Struct, frozen=True):
    """One dialog: `pattern` tells it from others, and `choice` is the answer to go on with.

    `choice` is '' where only a person can go on. `handling` says what sm does about it.
    """

    asks: str
    pattern: str
    choice: str
    handling: str = TOLD


DIALOGS = {
    CLAUDE.program: (
        StartDialog(
            "whether the directory is trusted", r"\bI trust this folder\b", CLAUDE.trust, FORESEEN
        ),
        StartDialog(
            "whether to use an MCP server", r"\bNew MCP server found\b", r"\bContinue without\b"
        ),
        StartDialog(
            "whether to use the key of its environment",
            r"\bDetected a custom API key\b",
            r"\bYes\b",
            FORESEEN,
        ),
        StartDialog(
            "whether permissions may be skipped",
            r"\bBypass Permissions mode\b",
            r"\bI accept\b",
            FORESEEN,
        ),
    ),
    CODEX.program: (
        StartDialog("for a login", r"\bSign in with ChatGPT\b", ""),
        StartDialog(
            "whether the directory is trusted",
            r"\bTrust this folder\?",
            r"\bTrust and continue\b",
            FORESEEN,
        ),
        StartDialog(
            "whether to update itself",
            r"\bUpdate available\b",
            r"\bSkip$",
            "in a session it does not ask, by the profile's `unattended`",
        ),
        StartDialog(
            "whether hooks are trusted",
            r"\bHooks need review\b",
            "",
            "in a session it does not ask",
        ),
    ),
}
"""The dialogs by the program that shows them."""


def find_start_dialog(profile: Profile, text: str) -> StartDialog | None:
    """Return the dialog that a screen with this `text` shows whole; None if none is known."""
    for one in DIALOGS.get(profile.program, ()):
        if all(re.search(pattern, text, re.M) for pattern in (one.pattern, one.choice)):
            return one
    return None


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
    approved = read_dict(state, "customApiKeyResponses").get("approved")
    if key and not (isinstance(approved, list) and key[-KEY_END:] in approved):
        yield "whether to use the ANTHROPIC_API_KEY of its environment"
    projects = read_dict(state, "projects")
    places = (place for folder in folders for place in (folder, *folder.parents))
    if not any(
        read_dict(projects, str(one)).get("hasTrustDialogAccepted") is True for one in places
    ):
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
