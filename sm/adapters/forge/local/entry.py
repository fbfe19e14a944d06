"""Entry of the embedded forge among the kinds of forges, see `sm.adapters.forge.kinds`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sm.adapters.forge.local.forge import LocalForge
from sm.adapters.forge.local.forge import open_forge as open_local
from sm.adapters.forge.local.repository import is_bare
from sm.adapters.forge.local.setup import create, read_settings
from sm.base.errors import SmError
from sm.config.forges import ForgeSettings, LocalSettings
from sm.config.schema import ProjectSettings
from sm.store.files import follow_links

__all__ = ["expect_webhooks", "find_bare", "find_problems", "open_forge", "prepare"]


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> LocalForge:
    """Open the forge of `project`, which keeps everything in its own folder."""
    return open_local(project, config)


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Yield a problem if agents push elsewhere than to where the forge merges."""
    assert isinstance(project.forge, LocalSettings)
    try:
        ours = follow_links(read_settings(project.forge.path))
    except SmError as error:
        yield error.message
        return
    if url and find_bare(project.repo, url) != ours:
        yield (
            f"remote '{project.remote}' of '{project.repo}' is not '{ours}', the repository of "
            "the forge: set 'remote' or 'forge.path'"
        )


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> None:
    """Return None: this forge delivers nothing, as its files show each change at once."""
    return


def prepare(settings: ForgeSettings, repository: Path) -> list[str]:
    """Make the forge's folder."""
    assert isinstance(settings, LocalSettings)
    is_new = not settings.path.exists()
    create(settings.path, repository)
    return [f"made the forge '{settings.path}'"] if is_new else []


def find_bare(repo: Path, url: str) -> Path | None:
    """Find the bare repository that a URL means in the clone `repo`, if it is on this machine."""
    place = url.removeprefix("file://")
    if not place or re.match(r"[^/]+:", place):  # https://…, or host:path as scp has it
        return None
    path = repo / place
    candidates = (path, path.with_name(path.name + ".git"))  # git tries both, gitrepository-layout
    return next((follow_links(one) for one in candidates if one.is_dir() and is_bare(one)), None)
