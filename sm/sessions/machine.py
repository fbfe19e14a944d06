"""Loads the sessions of a machine, with or without an issue, and what is needed to reach each."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.config.load import load, load_machine, make_default_machine
from sm.config.schema import MachineSettings
from sm.errors import SmError
from sm.sessions.session import IssueSession, Session
from sm.store.paths import Root
from sm.store.root_check import check_root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.tmux import Tmux
    from sm.sessions.project import Project
    from sm.sessions.target import Target


class Machine(Struct, frozen=True, dict=True):
    """The machine's settings; `source` is the configuration that they come from, or None."""

    settings: MachineSettings
    source: Path | None = None

    @cached_property
    def root(self) -> Root:
        """Where the state is.

        Raises:
            StateError: other users could replace files there.

        """
        return check_root(Root(self.settings.state_root))

    @cached_property
    def tmux(self) -> Tmux:
        """The tmux server that the agents run on."""
        from sm.adapters.tmux import Tmux

        return Tmux(self.settings.tmux_socket)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name.

        Raises:
            UsageError: there is none.

        """
        from sm.adapters.agent.profiles import find

        return find(name, self.settings.profiles)

    def target(self, session: Session) -> Target:
        """Return a session of this machine as a receiver of messages."""
        from sm.sessions.target import Target

        return Target(self.tmux, session, self.profile(session.record.provider))


def load_here(explicit: Path | None) -> Machine:
    """Load the machine with the caller's configuration, which need not exist.

    Raises:
        UsageError: there is a configuration, but it cannot be used.

    """
    return Machine(*load_machine(explicit, os.environ, Path.cwd()))


def load_of(session: Session) -> Machine:
    """Load the machine with the session's own configuration, wherever the caller is.

    Raises:
        UsageError: its configuration cannot be used (any more).

    """
    if session.record.config is None:
        found = Machine(make_default_machine(os.environ, Path.cwd()))
    else:
        found = load_here(session.record.config)
    from msgspec import structs

    return Machine(
        structs.replace(found.settings, state_root=session.record.state_root), found.source
    )


def load_target(session: Session) -> Target:
    """Return the session as a receiver of messages."""
    return load_of(session).target(session)


def load_project(session: IssueSession) -> Project:
    """Return the project that the session works for.

    Raises:
        UsageError: its configuration cannot be used, or does not have the project any more.

    """
    config = load(session.record.config, os.environ, Path.cwd())
    project = config.project(session.record.project)
    if project is None:
        raise SmError(
            f"'{session.name}' works for project '{session.record.project}', which is not in "
            f"'{config.source}' any more: put it back, or end the session's agent by hand"
        )
    from sm.sessions.project import Project

    return Project(config, project)
