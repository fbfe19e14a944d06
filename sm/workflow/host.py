"""The sessions of a machine, of any kind, with what is needed to reach each of them."""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.config.load import default_machine, load, load_machine
from sm.config.schema import Machine
from sm.errors import SmError
from sm.session.registry import IssueSession, Session
from sm.store.paths import Root
from sm.store.rootcheck import check_root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.tmux import Tmux
    from sm.session.submission import Target
    from sm.workflow.context import Context
    from sm.workflow.policy import Policy


class Host(Struct, frozen=True, dict=True):
    """The machine's settings; `source` is the configuration that they are from, if there is one."""

    machine: Machine
    source: Path | None = None

    @cached_property
    def root(self) -> Root:
        """Where the state is.

        Raises:
            StateError: other users could replace what is there.

        """
        return check_root(Root(self.machine.state_root))

    @cached_property
    def tmux(self) -> Tmux:
        """The tmux server that the agents run on."""
        from sm.adapters.tmux import Tmux

        return Tmux(self.machine.tmux_socket)

    def profile(self, name: str) -> Profile:
        """The agent CLI of that name.

        Raises:
            UsageError: there is none.

        """
        from sm.adapters.agent.profiles import named

        return named(name, self.machine.profiles)

    def target(self, session: Session) -> Target:
        """A session of this host as the receiver of messages."""
        from sm.session.submission import Target

        return Target(self.tmux, session, self.profile(session.provider))


def here(explicit: Path | None) -> Host:
    """The host as the caller's configuration has it, which need not be there.

    Raises:
        UsageError: a configuration is there, and cannot be used.

    """
    return Host(*load_machine(explicit, os.environ, Path.cwd()))


def of(session: Session) -> Host:
    """The host as the session's own configuration has it, wherever it is looked at from.

    Raises:
        UsageError: its configuration cannot be used (any more).

    """
    if session.config is None:
        found = Host(default_machine(os.environ, Path.cwd()))
    else:
        found = here(session.config)
    from msgspec import structs

    return Host(structs.replace(found.machine, state_root=session.state_root), found.source)


def target_of(session: Session) -> Target:
    """The session as the receiver of messages."""
    return of(session).target(session)


def policy_of(session: Session) -> Policy:
    """What holds for the session's context. Its configuration is read anew.

    Raises:
        UsageError: its configuration cannot be used.

    """
    if isinstance(session, IssueSession):
        with contextlib.suppress(SmError):  # not configured any more: what holds for the machine
            return context_of(session).policy(session)
    from sm.workflow.policy import made

    return made(session, of(session).machine)


def context_of(session: IssueSession) -> Context:
    """The project that the session works for.

    Raises:
        UsageError: its configuration cannot be used, or does not have the project any more.

    """
    config = load(session.config, os.environ, Path.cwd())
    project = config.project(session.project)
    if project is None:
        raise SmError(
            f"'{session.name}' works for project '{session.project}', which is not in "
            f"'{config.source}' any more: put it back, or end the session's agent by hand"
        )
    from sm.workflow.context import Context

    return Context(config, project)
