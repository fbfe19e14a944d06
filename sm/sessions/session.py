"""A session with everything that work on it needs; each part is opened at its first use.

What a session for an issue does otherwise than one of a person's own is a method of its class.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct, structs

from sm.sessions.record import AdHocRecord, IssueRecord, Record
from sm.store.paths import Root, SessionDir

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
