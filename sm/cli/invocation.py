"""Request of one run of `sm`: everything that commands share and that needs no click."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sm.base.errors import SmError, UsageError
from sm.base.issue_id import read_part
from sm.base.nearest import advise

if TYPE_CHECKING:
    from collections.abc import Callable

    from sm.config.schema import Config, ProjectSettings
    from sm.sessions.project import Project
    from sm.store.paths import Root
    from sm.views.place import RemotePlace

OPTIONAL = "typing_extensions"


def import_msgspec() -> None:
    """Import msgspec without `typing_extensions`, which is a tenth of what a pass costs.

    msgspec asks for it, but does the same without it on the Python that we need.
    """
    if OPTIONAL in sys.modules:
        return
    sys.modules[OPTIONAL] = None  # type: ignore[assignment]  # an import of it fails
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[OPTIONAL]  # the servers' libraries need it


class ElsewhereError(SmError):
    """The command is for the `sm` of another machine, as its session runs there."""

    def __init__(self, there: RemotePlace) -> None:
        super().__init__(f"'{there.name}' runs on '{there.host}'")
        self.there = there


class Invocation:
    """Run of `sm`: what the root's options said, and the configuration once it is loaded."""

    def __init__(self) -> None:
        self.explicit: Path | None = None
        self.config: Config | None = None
        self.again: Callable[[list[str]], int] | None = None
        """Runs another command line, in a fork of this process."""
        self.tells_left_out = True
        """A program that begins again at each tick has told it already."""

    @property
    def root(self) -> Root:
        """State root, as far as it is known yet."""
        from sm.store.paths import DEFAULT_ROOT, Root

        if self.config is not None:
            return Root(self.config.state_root)
        return Root(Path(os.environ.get("SM_STATE_ROOT") or DEFAULT_ROOT))

    @property
    def configured_root(self) -> Root:
        """State root that the configuration names, as far as that can be read.

        This serves commands that have not read it, too, and commands that have ended in reading it.
        """
        from sm.sessions.machine import load_here
        from sm.store.paths import Root

        if self.config is None:
            with contextlib.suppress(Exception):  # whatever is wrong with it has been told already
                return Root(load_here(self.explicit).settings.state_root)
        return self.root

    def load_config(self) -> Config:
        """Return the configuration, read at the first call.

        Raises:
            UsageError: there is none, or it cannot be used.

        """
        from sm.config.load import load

        if self.config is None:
            self.config = load(self.explicit, os.environ, Path.cwd())
            self.tell_left_out()
        return self.config

    def load_any_config(self) -> Config:
        """Return the configuration, also one without a project.

        Raises:
            UsageError: there is none, or it cannot be used.

        """
        from sm.config.load import load_any

        found = self.config or load_any(self.explicit, os.environ, Path.cwd())
        self.tell_left_out()
        return found

    def find_left_out(self) -> str:
        """Explain a configuration that lies here and does not count, '' if there is none."""
        from sm.config.allowed import explain
        from sm.config.load import find_left_out

        left = find_left_out(self.explicit, os.environ, Path.cwd())
        return explain(left, left.name) if left else ""

    def tell_left_out(self) -> None:
        """Warn once of a configuration that is left out."""
        if self.tells_left_out and (text := self.find_left_out()):
            from sm.base.output import warn

            warn(text)
        self.tells_left_out = False


def find_project(config: Config, name: str) -> Project:
    """Return the project of that name.

    Raises:
        UsageError: there is none; the nearest one is named, or all.

    """
    from sm.sessions.project import Project

    if found := config.project(name):
        return Project(config, found)
    names = [project.name for project in config.projects]
    advice = advise(name, names, f"there is {list_names(names)}")
    raise UsageError(f"no project '{name}' in '{config.source}': {advice}")


def find_meant_project(config: Config) -> Project | None:
    """Return the only project, else that of the clone or worktree around us; or None."""
    from sm.sessions.project import Project

    meant = config.projects if len(config.projects) == 1 else _list_projects_here(config)
    return Project(config, meant[0]) if len(meant) == 1 else None


def _list_projects_here(config: Config) -> list[ProjectSettings]:
    """List the projects whose clone, or worktree of an issue, is the nearest around us."""
    from sm.store.files import follow_links

    try:
        here = Path.cwd()
    except OSError:  # it was removed under our feet
        return []
    for folder in (here, *here.parents):
        if found := [one for one in config.projects if _is_of(one, folder, follow_links)]:
            return found
    return []


def _is_of(project: ProjectSettings, folder: Path, follow_links: Callable[[Path], Path]) -> bool:
    """Whether `folder` is the project's clone, or the place of the worktree of some issue."""
    if follow_links(project.repo) == folder:
        return True
    issue = read_part(folder.name.removeprefix(f"{project.name}-"))
    return bool(issue) and follow_links(project.worktree(issue or 0)) == folder


def list_names(names: list[str]) -> str:
    """Join the names, each in quotes."""
    return ", ".join(f"'{name}'" for name in names)
