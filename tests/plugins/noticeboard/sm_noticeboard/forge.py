"""A kind of forge: the issues hang in a folder of the board.

To be short, it has the forge that comes with `sm` do the work there. A forge of its own is a class
with the methods of `sm.adapters.forge.protocol`, and passes the tests that all forges pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta, structs

from sm.adapters.forge.local import entry
from sm.adapters.forge.protocol import Forge
from sm.config.forges import ForgeSettings, LocalSettings
from sm.config.schema import ProjectSettings


class NoticeboardForge(ForgeSettings, frozen=True, kw_only=True, tag="noticeboard"):
    """Issues and pull requests that hang on a board."""

    hall: Annotated[Path, Meta(description="the folder in which they hang")]

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.hall)


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> Forge:
    """Return the forge of a project."""
    return entry.open_forge(_as_local(project), config, state)


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Yield what is wrong with the settings."""
    return entry.find_problems(_as_local(project), url)


def prepare(settings: ForgeSettings, repository: Path) -> list[str]:
    """Make the folder, with the bare `repository` that belongs to it."""
    assert isinstance(settings, NoticeboardForge)
    return entry.prepare(LocalSettings(path=settings.hall), repository)


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> None:
    """It has none: its files show each change at once."""


def _as_local(project: ProjectSettings) -> ProjectSettings:
    forge: ForgeSettings = project.forge
    assert isinstance(forge, NoticeboardForge)
    return structs.replace(project, forge=LocalSettings(path=forge.hall))
