"""Kinds of forges: `forge.kind` of a project's configuration names the module that knows it.

`local` is the core's own; plugins bring the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from sm.base import plugin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sm.adapters.forge.dialect import Webhooks
    from sm.adapters.forge.protocol import AnyForge, Forge
    from sm.config.forges import ForgeSettings
    from sm.config.schema import ProjectSettings

OURS = {"local": "sm.adapters.forge.local.entry"}


class ForgeOpener(Protocol):
    """Module of a kind of forge."""

    def open_forge(
        self, project: ProjectSettings, config: Path | None = None, state: Path | None = None
    ) -> Forge:
        """Open the forge of `project`. `config` is the file that helper processes are to read.

        `state` is the project's private folder, in which a forge elsewhere keeps little files.

        Raises:
            UsageError: the settings of the project lead to no forge.

        """
        ...

    def find_problems(self, project: ProjectSettings, url: str) -> Iterator[str]:
        """Yield what is wrong with the settings, a line each.

        `url` is the remote that agents push to, '' if the clone has no such remote, which is told
        elsewhere.
        """
        ...

    def expect_webhooks(
        self, settings: ForgeSettings, state: Path | None = None
    ) -> Webhooks | None:
        """Return the marks of deliveries by the forge of these settings; None if it delivers none.

        `state` is the project's private folder.

        Raises:
            SmError: their secret cannot be read, or is too weak.

        """
        ...

    def prepare(self, settings: ForgeSettings, repository: Path) -> list[str]:
        """Make what is missing of the forge for the bare `repository`; return a line for each.

        Raises:
            UsageError: the forge belongs to another repository.

        """
        ...


def kind_of(settings: ForgeSettings) -> ForgeOpener:
    """Return the module of the kind of forge that the settings name.

    Raises:
        UsageError: no plugin has it.

    """
    if settings.kind in OURS:
        return cast("ForgeOpener", plugin.load(OURS[settings.kind]))
    return cast("ForgeOpener", plugin.load_part("forges", settings.kind))


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> AnyForge:
    """Open the forge of a project as `ForgeOpener` does; its issues may be those of a tracker."""
    forge = kind_of(project.forge).open_forge(project, config, state)
    if project.tracker is None:
        return cast("AnyForge", forge)  # who asks it for an issue has a number
    from sm.adapters.forge.tracked import TrackedForge  # most projects have none
    from sm.adapters.forge.tracker import kind_of as kind_of_tracker

    tracker = kind_of_tracker(project.tracker).open_tracker(project.tracker, state)
    return TrackedForge(forge, tracker, project.tracker)
