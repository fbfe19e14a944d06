"""Examines an agent CLI without a session: its version, and a person's own settings of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sm.adapters.agent.own_settings import list_obstacles
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.process import ANY_CODE, run
from sm.base.errors import SmError
from sm.base.text import one_line
from sm.config.schema import AgentSettings
from sm.sessions.launch import select_environment, split_command
from sm.setup import install_hooks
from sm.setup.finding import Finding, Fix, fail, ok, warn


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


def warn_of_settings(agent: AgentSettings, profile: Profile, folder: Path) -> Iterator[Finding]:
    """Yield a warning for each setting that keeps messages from an agent in `folder`."""
    words = split_command(agent.command or profile.command)
    for found in list_obstacles(profile, words, folder, select_environment(agent)):
        yield warn(f"{found.setting}: {found.effect}", found.advice)


def check_personal_hooks(_here: object) -> Iterator[Finding]:
    """Check the hooks of sm in a person's own settings, if that person has installed any."""
    path = install_hooks.default_settings(os.environ)
    if not path.exists() or not (missing := install_hooks.list_missing(path)):
        return
    what = f"the hooks of sm in '{path}'"
    fix = Fix(f"install {what} anew", f"installed {what} anew", partial(_install, path))
    names = ", ".join(missing)
    advice = "sm doctor --fix, or by hand: sm hooks install"
    yield warn(f"of {what} some are missing, or their files are gone: {names}", advice, fix)


def _install(path: Path) -> str:
    install_hooks.install(path)
    return ""
