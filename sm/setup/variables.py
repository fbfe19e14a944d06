"""Variables of a person's environment: those that agents lack, and those that they may see.

Only their names are told, never their values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.config.load import load_any
from sm.config.schema import AgentSettings
from sm.sessions.launch import select_environment

FOR_AGENTS = re.compile(
    r"(?:ANTHROPIC|CLAUDE|OPENAI|CODEX)_[A-Z0-9_]+|IS_SANDBOX"
    r"|(?i:https?|all|no)_(?i:proxy)"
    r"|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)
"""Variables for access to an API, settings of a client, and the way to a network."""

CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "CLOUD_ML_", "VERTEX_"),
}
"""Prefixes of the variables with a client's access, used if the variable before them is set."""

CLIENTS = {"CLAUDECODE": "CLAUDE_", "CODEX_THREAD_ID": "CODEX_", "CODEX_SANDBOX": "CODEX_"}
"""Prefixes of a client's own variables, by the variable that shows that the client started us."""

OURS = frozenset({"CLAUDE_SESSION_MANAGER_ID", "CLAUDE_TIMEOUT"})


def list_hidden(settings: AgentSettings, shell: Mapping[str, str] = os.environ) -> list[str]:
    """Return the variables for agent CLIs in `shell` that an agent with `settings` lacks.

    Those that a person has said it is not to have are left out.
    """
    given = select_environment(settings)
    own = tuple(prefix for name, prefix in CLIENTS.items() if name in shell)
    clouds = tuple(prefix for name, all_ in CLOUDS.items() if shell.get(name) for prefix in all_)
    return sorted(
        name
        for name, value in shell.items()
        if value
        and (FOR_AGENTS.fullmatch(name) or name.startswith(clouds))
        and not name.startswith(own)
        and name not in OURS
        and name not in given
        and name not in settings.withheld_env
    )


def list_missing_folders(path: str, shell: Mapping[str, str] = os.environ) -> list[str]:
    """Return the folders of the shell's PATH that `path` lacks."""
    there = set(path.split(os.pathsep))
    return [one for one in shell.get("PATH", "").split(os.pathsep) if one and one not in there]


def describe_hidden(names: Iterable[str]) -> str:
    """Say that agents do not see these variables, and what to do. A name must be one line."""
    listed = ", ".join(names)
    return (
        f"agents do not see {listed} of your environment: if they need it, name it in "
        f"agent.pass_env: [{listed}]"
    )


class Variables(Struct, frozen=True):
    """Variables that agents may see, and variables that they are not to have."""

    passed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()

    def list_open(self, command: str) -> list[str]:
        """Return the variables that agents with this command line lack, and that are undecided."""
        return list_hidden(
            AgentSettings(command=command, pass_env=self.passed, withheld_env=self.withheld)
        )

    def settle(self, names: list[str], *, may_see: bool) -> Variables:
        """Return the variables with these decided on."""
        if may_see:
            return Variables((*self.passed, *names), self.withheld)
        return Variables(self.passed, (*self.withheld, *names))


def recall(output: Path, project: str, given: tuple[str, ...]) -> Variables:
    """Return what an earlier run has written to `output`, and what is `given` now."""
    try:
        found = load_any(output, {}, output.parent).project(project)
    except SmError:
        found = None  # there is none, or it is refused later
    agent = found.agent if found else AgentSettings()
    passed = tuple(dict.fromkeys((*given, *agent.pass_env)))
    return Variables(passed, tuple(name for name in agent.withheld_env if name not in passed))
