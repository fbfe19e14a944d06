"""One project with everything that work on it needs, each opened when it is first used."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from sm.config.schema import Config, Project
from sm.errors import SmError
from sm.facts import Limits
from sm.store.paths import ProjectDir, Root
from sm.store.rootcheck import check_root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.forge.local import LocalForge
    from sm.adapters.git import Git
    from sm.adapters.tmux import Tmux
    from sm.session.registry import IssueSession, Session
    from sm.session.submission import Target
    from sm.workflow.policy import Policy

IDLE_POLLS = 3
IDLE_POLL_S = 10.0
"""The protocol's `idle_prompt` rule: three polls of this length."""


class Context(Struct, frozen=True, dict=True):
    """A project of a configuration, with its adapters."""

    config: Config
    project: Project

    @cached_property
    def root(self) -> Root:
        """Where the state is.

        Raises:
            StateError: other users could replace what is there.

        """
        return check_root(Root(self.config.state_root))

    @cached_property
    def directory(self) -> ProjectDir:
        """What is kept for the project as a whole; created where it is missing."""
        from sm.store.files import ensure_private_dir

        directory = self.root.project(self.project.name)
        ensure_private_dir(self.root.private)
        ensure_private_dir(directory.path)
        return directory

    def sessions(self, report: Callable[[SmError], None] = lambda _: None) -> list[IssueSession]:
        """The project's sessions, by issue; a damaged record goes to `report`."""
        from sm.session import registry

        found = [
            session
            for session in registry.all(self.root, report)
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
        """How the project's agent CLI behaves."""
        from sm.adapters.agent.profiles import resolve

        return resolve(self.project.agent, self.config.profiles)

    def target(self, session: Session) -> Target:
        """The session as the receiver of messages."""
        from sm.session.submission import Target

        return Target(self.tmux, session, self.profile)

    def policy(self, session: Session) -> Policy:
        """What holds for the session's context."""
        from sm.workflow.policy import made

        return made(session, self.config, self.project)

    @cached_property
    def git(self) -> Git:
        """The user's clone."""
        from sm.adapters.git import Git

        return Git(self.project.repo)

    @cached_property
    def forge(self) -> LocalForge:
        """Where the issues are."""
        from sm.adapters.forge.local import open_forge

        return open_forge(self.project, self.config.source)

    @cached_property
    def limits(self) -> Limits:
        """The project's limits, as decisions read them."""
        p = self.project
        return Limits(
            agent_timeout_s=p.agent.timeout_s,
            idle_s=IDLE_POLLS * IDLE_POLL_S,
            ci_timeout_s=p.ci.timeout_s,
            max_fixes=p.ci.max_fixes,
            review_required=p.review.required,
            review_timeout_s=p.review.timeout_s,
            max_rounds=p.review.max_rounds,
            merge_by_sm=p.merge.by == "sm",
            merge_remind_s=p.merge.remind_s,
            remind_s=p.escalation.remind_s,
            escalation_timeout_s=p.escalation.timeout_s,
            max_recoveries=p.recovery.max,
            recovery_pause_s=p.recovery.pause_s,
        )

    def record(self, event: str, session: str = "", detail: str = "") -> None:
        """Put an event into the journal."""
        from sm.store import journal
        from sm.store.files import ensure_private_dir

        ensure_private_dir(self.root.private)
        journal.record(self.root.journal, event, session, detail)


def person() -> str:
    """Who is at the keyboard, as forges and journals name them."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid{os.geteuid()}"
