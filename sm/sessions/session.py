"""A session with everything that work on it needs; each part is opened at its first use.

Where a session for an issue differs from a person's own one, its class has a method.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct, structs

from sm.base.clock import is_within
from sm.base.errors import SmError
from sm.base.issue_id import IssueId, spell
from sm.config.shapes import list_variables
from sm.sessions.record import AdHocRecord, IssueRecord, Record
from sm.shell_root import find_shell_root
from sm.store.paths import Root, SessionDir

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.tmux import Tmux
    from sm.config.schema import MachineSettings, ProjectSettings
    from sm.sessions.machine import Machine
    from sm.sessions.project import Project
    from sm.sessions.settings import Settings

START_S = 60.0
"""Seconds after which the process that was to start the agent has died, if there is none."""


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
        """The settings of the session, as they were at the first look."""
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
        return self.provide(machine=self.machine)

    @cached_property
    def holder(self) -> MachineSettings | ProjectSettings:
        """The settings from which plugins read their sections: its project's, or the machine's.

        Raises:
            UsageError: its configuration cannot be used.

        """
        return self.machine.settings

    @property
    def name(self) -> str:
        """The session's id: the name of its directory and its tmux session."""
        return self.record.name

    @cached_property
    def root(self) -> Root:
        """The state root of the session."""
        return Root(self.record.state_root)

    @cached_property
    def dir(self) -> SessionDir:
        """The session's own directory."""
        return self.root.session(self.record.name)

    @property
    def label(self) -> str:
        """The session's name for people."""
        return self.name

    @property
    def address(self) -> str:
        """The session's address for messages: its name, `PROJECT#ISSUE`, or its id."""
        return self.label

    @property
    def project_name(self) -> str:
        """The name of the project that it works for, '' for none."""
        return ""

    @property
    def issue(self) -> IssueId:
        """The id of its issue, 0 for none."""
        return 0

    @property
    def has_matrix(self) -> bool:
        """Whether the reaction matrix looks after the session.

        Then it tells people, answers phases, and dev-poll keeps its monitor.
        """
        return False

    @property
    def owns_cwd(self) -> bool:
        """Whether the session works alone in its directory."""
        return False

    @property
    def kept_variables(self) -> tuple[str, ...]:
        """The variables of a person's environment that its monitor keeps."""
        try:
            return list_variables(self.machine.settings)
        except SmError:  # its passes tell what is wrong
            return ()

    @property
    def git_settings(self) -> tuple[tuple[str, str], ...]:
        """Settings of its agent's git beside the person's own."""
        return ()

    @property
    def programs(self) -> tuple[Path, ...]:
        """Folders with our programs that its agent finds before others."""
        return ()

    @property
    def is_over(self) -> bool:
        """Whether the session has ended. A record without an issue stays for a while."""
        return self.dir.over.exists()

    @property
    def is_being_begun(self) -> bool:
        """Whether its agent is about to be started for the first time."""
        from sm.sessions import agent

        return agent.load(self.dir) is None and is_within(START_S, self.record.created_at)

    @property
    def is_living(self) -> bool:
        """Whether its agent runs, or will be started again."""
        from sm.sessions import agent

        # The last look: the new agent may have come between the first two.
        return not self.is_over and (
            agent.is_alive(self.dir) or self._is_being_restarted or agent.is_alive(self.dir)
        )

    @property
    def _is_being_restarted(self) -> bool:
        """Whether a rotation is just putting another agent in the place of the one that runs."""
        from sm.store import lock

        return self.dir.rotation.exists() and lock.is_held(self.dir.delivery_lock)

    @property
    def has_ended(self) -> bool:
        """Whether the session is over, or its agent is gone and will not come back."""
        gone = not self.dir.identity.exists() or self.is_over
        # In this order: an agent that is not about to be started is there already.
        return gone or not (self.is_being_begun or self.is_living)

    def explain_protocol(self) -> str:
        """Return how its agent is to signal, '' if it has no one to signal to."""
        return ""

    @property
    def terminal_log(self) -> Path:
        """The terminal log, which tmux writes."""
        return self.dir.terminal_log

    @property
    def environment(self) -> dict[str, str]:
        """The session's part of its agent's environment."""
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
        """Open the project; return the session."""
        return self.provide(project=self.project)

    @cached_property
    def holder(self) -> ProjectSettings:
        """The settings of its project."""
        return self.project.settings

    @property
    def own_settings(self) -> ProjectSettings:
        """The project's settings, with the branch that the session was begun on."""
        prefix = self.record.branch.removesuffix(f"/{self.issue}")
        return structs.replace(self.project.settings, branch_prefix=prefix)

    @property
    def issue(self) -> IssueId:
        """The id of the issue."""
        return self.record.issue

    @property
    def attempt(self) -> int:
        """Number of the attempt at the issue if another installation has placed it here, else 0."""
        return self.record.attempt

    @property
    def worktree(self) -> Path:
        """The git worktree of the issue."""
        return self.record.cwd

    @property
    def label(self) -> str:
        """The session's name for people."""
        return f"{self.record.project} {spell(self.issue)}"

    @property
    def address(self) -> str:
        """The session's address for messages."""
        return f"{self.record.project}#{self.issue}"

    @property
    def project_name(self) -> str:
        """The name of the project."""
        return self.record.project

    @property
    def has_matrix(self) -> bool:
        """Whether it has the reaction matrix, as every session of an issue."""
        return True

    @property
    def owns_cwd(self) -> bool:
        """Whether it works alone in its directory: always, as its worktree is its own."""
        return True

    @property
    def kept_variables(self) -> tuple[str, ...]:
        """The variables of its next agent, and those with secrets, which agents do not get."""
        try:
            settings = self.project.settings
        except SmError:  # the reactor tells what is wrong
            return ()
        return (*settings.agent.pass_env, *list_variables(settings))

    @property
    def git_settings(self) -> tuple[tuple[str, str], ...]:
        """Settings for pushes, and for HTTPS access if the configuration gives agents the token.

        It pushes its own branch: a person may have set that `git push` pushes nothing, or all
        branches that the remote has, too, among them that person's own. It pushes to no other
        remote of the clone.
        """
        from sm.adapters.forge.git_access import list_git_settings
        from sm.adapters.push_guard import list_push_settings

        try:
            settings = list_git_settings(self.project.settings, for_agent=True)
            if self.project.git.setting("push.default") in ("nothing", "matching"):
                settings += (("push.default", "simple"),)
            settings += list_push_settings(self.project.settings.repo, self.record.remote)
        except SmError:  # the reactor tells what is wrong
            return ()
        return settings

    @property
    def programs(self) -> tuple[Path, ...]:
        """Folder of our git, which leaves the stash alone, because that is the person's."""
        return (find_shell_root() / "lib" / "agent",)

    @property
    def is_living(self) -> bool:
        """Whether the session is on record: until it is not, its agent is started again."""
        return self.dir.identity.exists()

    def explain_protocol(self) -> str:
        """Return the protocol of the phase file."""
        from sm.base.phase import explain_protocol

        record = self.record
        return explain_protocol(
            phase_file=str(self.root.phase(record.project, record.issue)),
            remote=record.remote,
            branch=record.branch,
            base=record.base,
        )

    @property
    def terminal_log(self) -> Path:
        """The terminal log where the protocol has it, else in the session's directory."""
        own = super().terminal_log
        return own if own.exists() else self.root.terminal_log(self.record.project, self.issue)

    @property
    def environment(self) -> dict[str, str]:
        """The session's part of its agent's environment, with the variables of the protocol."""
        project = self.record.project
        return super().environment | {
            "PHASE_FILE": str(self.root.phase(project, self.issue)),
            "PROJECT_NAME": project,
            "SM_CLONE": str(self.record.repo),
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
            root.terminal_log(project, issue),
            *super().files,
        )


class AdHocSession(Session, frozen=True, dict=True):
    """A session that `sm new` has begun."""

    record: AdHocRecord

    @cached_property
    def holder(self) -> MachineSettings | ProjectSettings:
        """The settings of the project that its folder belongs to, else the machine's."""
        from sm.sessions.project import find_of_folder, list_configured

        projects = [one.settings for one in list_configured(self.machine)]
        return find_of_folder(projects, self.record.cwd) or self.machine.settings

    @property
    def label(self) -> str:
        """The session's name for people."""
        return self.record.alias or self.name


AnySession = IssueSession | AdHocSession


def open_session(record: Record) -> AnySession:
    """Return the session of this record; nothing of it is opened yet."""
    if isinstance(record, IssueRecord):
        return IssueSession(record)
    assert isinstance(record, AdHocRecord)
    return AdHocSession(record)
