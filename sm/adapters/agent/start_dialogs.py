"""Dialogs of an agent CLI at its start, before its input line is there.

Claude Code 2.1.332 or Codex 0.171.0 has asked each of them. Its screen is in `tests/real/screens`.
In a session sm answers none of them: a person is told of the dialog, and answers once for good.
"""

from __future__ import annotations

import re

from msgspec import Struct

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile

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
