"""One project with everything that work on it needs; each part is opened at its first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.config.schema import Config, Project
from sm.errors import SmError
from sm.store.paths import ProjectDir, Root
from sm.store.root_check import check_root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.forge.protocol import Forge
    from sm.adapters.git import Git
    from sm.adapters.tmux import Tmux
    from sm.sessions.registry import IssueSession, Session
    from sm.sessions.target import Target
    from sm.store.events import Event


class Context(Struct, frozen=True, dict=True):
    """A project of a configuration, with its adapters."""

    config: Config
    project: Project

    @cached_property
    def root(self) -> Root:
        """Where the state is.

        Raises:
            StateError: other users could replace files there.

        """
        return check_root(Root(self.config.state_root))

    @cached_property
    def directory(self) -> ProjectDir:
        """The files of the project as a whole; the folder is made if it is missing."""
        from sm.store.files import ensure_private_dir

        directory = self.root.project(self.project.name)
        ensure_private_dir(self.root.private)
        ensure_private_dir(directory.path)
        return directory

    def sessions(self, report: Callable[[SmError], None] = lambda _: None) -> list[IssueSession]:
        """Return the project's sessions, sorted by issue; `report` gets each damaged record."""
        from sm.sessions import registry

        found = [
            session
            for session in registry.list_all(self.root, report)
            if isinstance(session, registry.IssueSession) and session.project == self.project.name
        ]
        return sorted(found, key=lambda session: session.issue)

    @cached_property
    def tmux(self) -> Tmux:
        """The tmux server that the agents run on."""
        from sm.adapters.tmux import Tmux

        return Tmux(self.config.tmux_socket)

    @cached_property
    def profile(self) -> Profile:
        """The profile of the project's agent CLI."""
        from sm.adapters.agent.profiles import resolve

        return resolve(self.project.agent, self.config.profiles)

    def target(self, session: Session) -> Target:
        """Return the session as a receiver of messages."""
        from sm.sessions.target import Target

        return Target(self.tmux, session, self.profile)

    @cached_property
    def git(self) -> Git:
        """The user's clone."""
        from sm.adapters.git import Git

        return Git(self.project.repo)

    @cached_property
    def forge(self) -> Forge:
        """Where the issues are."""
        from sm.adapters.forge.kinds import open_forge

        return open_forge(
            self.project, self.config.source, self.root.project(self.project.name).path
        )

    def record(self, event: Event) -> None:
        """Put an event into the journal."""
        from sm.store import journal
        from sm.store.files import ensure_private_dir

        ensure_private_dir(self.root.private)
        journal.record(self.root.journal, event)


def find_person() -> str:
    """Return the name of the user, as forges and journals use it."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid{os.geteuid()}"
