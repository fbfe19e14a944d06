"""Programs of real servers, which a person names; without one, its tests are left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLES = {
    "gitea": "SM_TEST_GITEA",
    "forgejo": "SM_TEST_FORGEJO",
    "gitea runner": "SM_TEST_GITEA_RUNNER",
    "forgejo runner": "SM_TEST_FORGEJO_RUNNER",
    "woodpecker": "SM_TEST_WOODPECKER",
    "woodpecker agent": "SM_TEST_WOODPECKER_AGENT",
}
"""The variable of each program. Woodpecker's agent is `woodpecker-agent` beside its server."""
PROGRAMS = {name: os.environ.get(variable, "") for name, variable in VARIABLES.items()}
"""Read now: a test sees nothing of the environment."""
KINDS = ("gitea", "forgejo")
"""The servers whose journeys are the same."""


def require_program(name: str) -> Path:
    """The program; skips the test if nobody has named it."""
    found = PROGRAMS[name]
    if name == "woodpecker agent" and not found and PROGRAMS["woodpecker"]:
        found = str(Path(PROGRAMS["woodpecker"]).with_name("woodpecker-agent"))
    if not found:
        pytest.skip(f"names no {name}: set {VARIABLES[name]} (docs/FORGES.md)")
    program = Path(found)
    assert os.access(program, os.X_OK), f"{VARIABLES[name]} names no program: '{program}'"
    return program
