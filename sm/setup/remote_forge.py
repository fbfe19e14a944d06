"""Remote and settings of a project whose forge is a server, as `sm init` finds them out."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from sm.base import plugin
from sm.base.errors import UsageError
from sm.config.forges import ForgeSettings
from sm.setup.discover import FoundRemote
from sm.setup.hub import Hub


class ForgeChoice(Struct, frozen=True):
    """What was said about the forge; '' and None for nothing."""

    kind: str
    url: str = ""
    repository: str = ""
    token_command: str = ""
    token_file: Path | None = None
    token_env: str = ""
    has_ci: bool = True


def choose_remote(
    repo: Path, remotes: tuple[FoundRemote, ...], wanted: str | None
) -> tuple[Hub, str]:
    """The remote of the forge, and where it leads; origin, or the only one, if none is wanted.

    Raises:
        UsageError: the clone has none.

    """
    named = {remote.name: remote for remote in remotes}
    name = wanted or ("origin" if "origin" in named or len(named) != 1 else next(iter(named)))
    if name not in named:
        raise UsageError(
            f"'{repo}' has no remote '{name}': add the one that leads to the forge (git remote add)"
        )
    return Hub(name, repo, is_new=False), named[name].url


class Chooser(Protocol):
    """Finds the settings of one kind of forge."""

    def __call__(self, wish: ForgeChoice, url: str) -> ForgeSettings:
        """The settings of the forge that the remote at `url` leads to.

        Raises:
            UsageError: it cannot be told which repository is meant, or there is no token.

        """
        ...


def list_kinds() -> list[str]:
    """The kinds of forges that `sm init` can set up: the core's own, then those of plugins."""
    parts = plugin.list_parts("forges").items()
    return ["local", *(name for name, part in parts if getattr(part.entry, "chooser", ""))]


def choose_forge(wish: ForgeChoice, url: str) -> ForgeSettings:
    """The settings of the forge that the remote at `url` leads to, see `Chooser`."""
    part = plugin.list_parts("forges")[wish.kind]
    chooser: Chooser = plugin.load_entry(part._replace(entry=part.entry.chooser))
    return chooser(wish, url)
