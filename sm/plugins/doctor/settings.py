"""Names the settings of a person's own that keep messages from an agent CLI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.adapters.agent.own_settings import list_obstacles
from sm.adapters.agent.profile import Profile
from sm.config.schema import AgentSettings
from sm.sessions.launch import select_environment, split_command
from sm.setup.finding import Finding, warn


def warn_of_settings(agent: AgentSettings, profile: Profile, folder: Path) -> Iterator[Finding]:
    """Yield a warning for each such setting of an agent that works in `folder`."""
    words = split_command(agent.command or profile.command)
    for found in list_obstacles(profile, words, folder, select_environment(agent)):
        yield warn(f"{found.setting}: {found.effect}", found.advice)
