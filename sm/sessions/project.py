"""One project with everything that work on it needs; each part is opened at its first use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sm.base.errors import SmError
from sm.base.issue_id import read_part
from sm.config.schema import Config, ProjectSettings
from sm.store.files import follow_links
from sm.store.paths import ProjectDir, Root

if TYPE_CHECKING:
    from sm.adapters.agent.profile import Profile
    from sm.adapters.forge.protocol import AnyForge
    from sm.adapters.git import Git
    from sm.adapters.tmux import Tmux
    from sm.sessions.machine import Machine
    from sm.sessions.record import IssueRecord
    from sm.store.events import Event


class Project(Struct, frozen=True, dict=True):
    """A project of a configuration, with its adapters."""

    config: Config
    settings: ProjectSettings

    @property
    def name(self) -> str:
        """The project's name in the configuration."""
        return self.settings.name

    @cached_property
    def machine(self) -> Machine:
        """The machine that the project is worked on."""
        from sm.sessions.machine import Machine

        return Machine(self.config, self.config.source)

    @property
    def root(self) -> Root:
        """The state root.

        Raises:
            StateError: other users could replace files there.

        """
        return self.machine.root

    @cached_property
    def directory(self) -> ProjectDir:
        """The files of the project as a whole; the folder is made if it is missing."""
        from sm.store.files import ensure_private_dir

        directory = self.root.project(self.name)
        ensure_private_dir(self.root.private)
        ensure_private_dir(directory.path)
        return directory

    @cached_property
    def ci_folder(self) -> Path:
        """The folder in which CI checks commits out: with the state, if programs can be run there.

        Many machines mount /tmp `noexec`; there each script of a checkout would be refused.
        """
        from sm.store.root_check import is_noexec

        if not is_noexec(self.directory.path):
            return self.directory.ci
        from hashlib import sha256

        place = sha256(os.fsencode(self.root.path)).hexdigest()[:12]
        return find_cache() / f"ci-{place}" / self.name

    @property
    def tmux(self) -> Tmux:
        """The tmux server that the agents run on."""
        return self.machine.tmux

    @cached_property
    def profile(self) -> Profile:
        """The profile of the project's agent CLI."""
        from sm.adapters.agent.profiles import resolve

        return resolve(self.settings.agent, self.config.profiles)

    @cached_property
    def git(self) -> Git:
        """The user's clone."""
        from sm.adapters.forge.git_access import list_git_settings
        from sm.adapters.git import Git

        return Git(self.settings.repo, list_git_settings(self.settings))

    @cached_property
    def forge(self) -> AnyForge:
        """The forge with the project's issues."""
        from sm.adapters.forge.kinds import open_forge

        return open_forge(
            self.settings, self.config.source, self.root.project(self.settings.name).path
        )

    @cached_property
    def reviewers_forge(self) -> AnyForge | None:
        """The forge with the account that writes a person's reviews; None for none.

        It keeps nothing in the project's folder: what is left of limits there is of our account.
        """
        from sm.adapters.forge.kinds import open_forge

        reviewer = self.settings.forge.reviewer
        if reviewer is None:
            return None
        if reviewer is self.settings.forge:
            return self.forge
        return open_forge(structs.replace(self.settings, forge=reviewer), self.config.source)

    def record(self, event: Event) -> None:
        """Put an event into the journal."""
        from sm.store import journal
        from sm.store.files import ensure_private_dir

        ensure_private_dir(self.root.private)
        journal.record(self.root.journal, event)


def load_project(record: IssueRecord) -> Project:
    """Return the project that the session of this record works for.

    Raises:
        UsageError: its configuration cannot be used, or does not have the project any more.

    """
    from sm.config.load import load

    config = load(record.config, os.environ, Path.cwd())
    settings = config.project(record.project)
    if settings is None:
        raise SmError(
            f"'{record.name}' works for project '{record.project}', which is not in "
            f"'{config.source}' any more: put it back, or end the session's agent by hand"
        )
    return Project(config, settings)


def load_last_project(record: IssueRecord) -> Project | None:
    """Return that project as it was when its configuration could last be used; None if unknown."""
    from sm.config.load import load_last_usable

    if record.config is None:
        return None
    config = load_last_usable(record.config, os.environ, Path.cwd())
    settings = config.project(record.project) if config else None
    return Project(config, settings) if config and settings else None


def find_cache() -> Path:
    """Return the user's folder for what can be made again (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "sm"


def list_configured(machine: Machine) -> list[Project]:
    """List the projects of the machine's configuration as it is now; none without one.

    Raises:
        UsageError: the configuration cannot be used any more.

    """
    from sm.config.load import load_any

    if machine.source is None:
        return []
    config = load_any(machine.source, os.environ, Path.cwd())
    return [Project(config, settings) for settings in config.projects]


def find_of_folder(projects: Iterable[ProjectSettings], folder: Path) -> ProjectSettings | None:
    """Return the project in whose clone, or worktree of an issue, a folder is; None if in none."""
    found = follow_links(folder)
    within = (one for one in projects if found.is_relative_to(one.repo) or _is_in_tree(found, one))
    return next(within, None)


def _is_in_tree(folder: Path, project: ProjectSettings) -> bool:
    """Say whether `folder` is within a worktree of an issue of the project."""
    own = project.worktree(0)
    within = [each.name for each in (folder, *folder.parents) if each.parent == own.parent]
    head = own.name.removesuffix("0")
    return any(name.startswith(head) and read_part(name[len(head) :]) for name in within)


def find_person() -> str:
    """Return the name of the user, as forges and journals use it."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid{os.geteuid()}"
