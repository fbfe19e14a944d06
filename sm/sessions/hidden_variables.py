"""Finds variables for an agent CLI that a person's shell has and the agent does not get.

It returns names only, never values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

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


def describe(names: Iterable[str]) -> str:
    """Say that agents do not see these variables, and what to do. A name must be one line."""
    listed = ", ".join(names)
    return (
        f"agents do not see {listed} of your environment: if they need it, name it in "
        f"agent.pass_env: [{listed}]"
    )
