"""A session with everything that work on it needs; each part is opened at its first use.

What a session for an issue does otherwise than one of a person's own is a method of its class.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct, structs

from sm.errors import SmError
from sm.sessions.record import AdHocRecord, IssueRecord, Record
from sm.store.paths import Root, SessionDir

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.tmux import Tmux
    from sm.sessions.machine import Machine
    from sm.sessions.project import Project
    from sm.sessions.settings import Settings

if TYPE_CHECKING:
    pass


class Session(Struct, frozen=True, dict=True):
    """A session of any kind. Two are equal if their records are."""

    record: Record

    def provide(self, **parts: object) -> Self:
        """Give the session parts that the caller has open already; return the session."""
        self.__dict__.update(parts)
        return self

    def change(self, **fields: object) -> Self:
        """Return the session with those fields of its record changed; nothing is written."""
        return type(self)(structs.replace(self.record, **fields))

    @cached_property
    def machine(self) -> Machine:
        """The machine, with the session's own configuration, wherever the caller is.

        Raises:
            UsageError: the configuration cannot be used (any more).

        """
        from sm.sessions.machine import load_for

        return load_for(self.record)

    @cached_property
    def tmux(self) -> Tmux:
        """The tmux server that the agent runs on."""
        return self.machine.tmux

    @cached_property
    def profile(self) -> Profile:
        """The profile of the session's agent CLI.

        Raises:
            UsageError: there is none of that name any more.

        """
        return self.machine.profile(self.record.provider)

    @cached_property
    def settings(self) -> Settings:
        """What holds for the session, as it was at the first look."""
        return self.read_settings()

    def read_settings(self) -> Settings:
        """Return what holds for the session now.

        Raises:
            UsageError: its configuration cannot be used.

        """
        from sm.sessions.settings import combine

        return combine(self.dir, self.machine.settings)

    def configure(self) -> Self:
        """Read the configuration that the session is under; return the session.

        Raises:
            UsageError: it cannot be used.

        """
        assert self.machine
        return self

    @property
    def name(self) -> str:
        """Its id: the name of its directory and its tmux session."""
        return self.record.name

    @property
    def root(self) -> Root:
        """The state root of the session."""
        return Root(self.record.state_root)

    @property
    def dir(self) -> SessionDir:
        """The session's own directory."""
        return self.root.session(self.record.name)

    @property
    def label(self) -> str:
        """What people call the session."""
        return self.name

    @property
    def transcript(self) -> Path:
        """The terminal log, which tmux writes."""
        return self.dir.transcript

    @property
    def environment(self) -> dict[str, str]:
        """What the agent's environment says of its session."""
        config = self.record.config
        return {
            "CLAUDE_SESSION_MANAGER_ID": self.name,
            "SESSION_NAME": self.name,
            "SM_SESSION_DIR": str(self.dir.path),
            "SM_STATE_ROOT": str(self.record.state_root),
            **({"SM_CONFIG": str(config)} if config else {}),
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """The session's files outside of its directory, with names from the protocol."""
        return (self.root.idle_marker(self.name),)


class IssueSession(Session, frozen=True, dict=True):
    """A session that works on an issue."""

    record: IssueRecord

    @cached_property
    def project(self) -> Project:
        """The project that the session works for.

        Raises:
            UsageError: its configuration cannot be used, or does not have the project any more.

        """
        from sm.sessions.project import load_project

        return load_project(self.record)

    @property
    def _open_project(self) -> Project | None:
        return self.__dict__.get("project")

    @cached_property
    def machine(self) -> Machine:
        """The machine of the project once that is open, else of the session's configuration."""
        known = self._open_project
        return known.machine if known else super().machine

    @cached_property
    def profile(self) -> Profile:
        """The profile of the project's agent once that is open, else the one it was begun with."""
        known = self._open_project
        return known.profile if known else super().profile

    def read_settings(self) -> Settings:
        """Return what holds for the session now; without its project, what the machine has."""
        from sm.sessions.settings import combine

        try:
            project = self.project
        except SmError:
            return super().read_settings()
        return combine(self.dir, project.config, project.settings)

    def configure(self) -> Self:
        """Open the project."""
        assert self.project
        return self

    @property
    def issue(self) -> int:
        """The number of the issue."""
        return self.record.issue

    @property
    def worktree(self) -> Path:
        """The git worktree of the issue."""
        return self.record.cwd

    @property
    def label(self) -> str:
        """What people call the session."""
        return f"{self.record.project} #{self.issue}"

    @property
    def transcript(self) -> Path:
        """The terminal log where the protocol has it, else in the session's directory."""
        own = super().transcript
        return own if own.exists() else self.root.transcript(self.record.project, self.issue)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the protocol, too."""
        project = self.record.project
        return super().environment | {
            "PHASE_FILE": str(self.root.phase(project, self.issue)),
            "PROJECT_NAME": project,
            "ISSUE": str(self.issue),
        }

    @property
    def files(self) -> tuple[Path, ...]:
        """The session's files outside of its directory."""
        root, project, issue = self.root, self.record.project, self.issue
        return (
            root.phase(project, issue),
            root.ci_result(project, issue),
            root.renotify(project, issue),
            root.transcript(project, issue),
            *super().files,
        )


class AdHocSession(Session, frozen=True, dict=True):
    """A session that `sm new` has begun."""

    record: AdHocRecord

    @property
    def label(self) -> str:
        """What people call the session."""
        return self.record.alias or self.name


AnySession = IssueSession | AdHocSession


def open_session(record: Record) -> AnySession:
    """Return the session of this record; nothing of it is opened yet."""
    if isinstance(record, IssueRecord):
        return IssueSession(record)
    assert isinstance(record, AdHocRecord)
    return AdHocSession(record)
