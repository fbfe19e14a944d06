"""Project of a clone that a configuration has already: a further `sm init` keeps to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.config.load import find, find_user_folder, list_files, load_any
from sm.config.schema import Config, ProjectSettings
from sm.sessions.project import Project
from sm.store.files import follow_links
from sm.store.paths import name_session


class Existing(Struct, frozen=True):
    """Project, and the file that it is in."""

    file: Path
    project: ProjectSettings
    config: Config

    @property
    def command(self) -> str:
        """Command line of the agent, which may be its profile's."""
        return self.project.agent.command or Project(self.config, self.project).profile.command


def find_existing(clone: Path, name: str | None, output: Path | None, cwd: Path) -> Existing | None:
    """Return the project of this clone, in the file `output` or where a command would find it.

    None if there is none, or more than one; `name` says which.
    """
    place = follow_links(clone)
    found = [
        Existing(file, project, config)
        for file, config in _read(output, os.environ, cwd)
        for project in config.projects
        if follow_links(project.repo) == place and name in (None, project.name)
    ]
    return found[0] if len(found) == 1 else None


def _read(output: Path | None, env: Mapping[str, str], cwd: Path) -> Iterator[tuple[Path, Config]]:
    """Read the files that can be read; who needs another one says what is wrong with it."""
    try:
        source = output or find(None, env, cwd)
        files = list_files(source) if source.is_dir() else [source]
    except SmError:
        return
    for file in files:
        try:
            yield file, load_any(file, {}, cwd)
        except SmError:
            continue


def find_holder(name: str, output: Path) -> tuple[str, Path] | None:
    """Return the project of the user's folder that has this name or one like it, and its file.

    All files there hold together; `output` is about to be written, so it does not count.

    Raises:
        UsageError: one of the files cannot be used.

    """
    folder = find_user_folder(os.environ)
    if output.parent != folder:
        return None
    for file in list_files(folder):
        if file != output:
            for project in load_any(file, {}, folder).projects:
                if name_session(project.name, 1) == name_session(name, 1):
                    return project.name, file
    return None


def find_other(file: Path, clone: Path) -> ProjectSettings | None:
    """Return a project of another clone that the file has; None if it has none that can be read."""
    try:
        projects = load_any(file, {}, file.parent).projects
    except SmError:
        return None
    place = follow_links(clone)
    return next((one for one in projects if follow_links(one.repo) != place), None)
