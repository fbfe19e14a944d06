"""Asks an agent CLI for its version."""

from __future__ import annotations

import shutil
from pathlib import Path

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.process import ANY_CODE, run
from sm.base.errors import SmError
from sm.base.text import one_line
from sm.config.schema import AgentSettings
from sm.sessions.launch import split_command
from sm.setup.finding import Finding, fail, ok


def check_version(agent: AgentSettings, profile: Profile) -> Finding:
    """Return what the agent's program is. An unknown one is not started just to ask its version.

    Raises:
        SmError: its command cannot be read, or the program is missing.

    """
    words = split_command(agent.command or profile.command)
    path = shutil.which(words[0], path=agent.env.get("PATH"))
    if path is None:
        raise SmError(f"agent '{words[0]}' is not on PATH: install it, or set 'agent.command'")
    if Path(path).name not in {known.program for known in BUILTIN.values()}:
        return ok(f"agent '{path}', profile '{profile.name}'")
    done = run(path, "--version", timeout_s=20, accept=tuple(ANY_CODE))
    if done.code:
        return fail(f"'{path} --version' failed", "run it by hand, and install it anew")
    return ok(f"agent '{path}', {one_line(done.stdout)}")
