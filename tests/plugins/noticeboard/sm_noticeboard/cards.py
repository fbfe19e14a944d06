"""A tracker: issues are cards, such as `HALL-7`, and their pull requests are on any forge.

To be short, the files of the forge that comes with `sm` are the cards. A tracker of its own is a
class with the methods of `Issues` in `sm.adapters.forge.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, cast

from msgspec import Meta, structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.local.folder import KINDS, ForgeFolder
from sm.adapters.forge.local.issues import LocalIssues
from sm.adapters.forge.model import Issue
from sm.adapters.forge.protocol import Issues
from sm.adapters.forge.tracker import Tracker
from sm.config.forges import TrackerSettings

KEY = "HALL-"
OF_ALL = ("find", "add", "list_labels")
"""Methods that are about no single card."""


class CardSettings(TrackerSettings, frozen=True, kw_only=True, tag="cards"):
    """Cards in a folder."""

    folder: Annotated[Path, Meta(description="the folder of the cards")]

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)


class Cards(Tracker):
    """The cards of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = ForgeFolder(folder)

    @property
    def issues(self) -> Issues[str]:
        """The cards, as issues."""
        return cast("Issues[str]", Named(LocalIssues(self._folder)))

    def find_members(self, authors: Iterable[str]) -> frozenset[str]:
        """Return all: who can write to the folder can write in any name."""
        return frozenset(authors)

    def signs(self) -> tuple[Path, ...]:
        """Return the files that change with each card: `sm` then looks at once."""
        return (self._folder.stamp, self._folder.path / "issues")


class Named:
    """The files as issues that have the ids of cards."""

    def __init__(self, files: LocalIssues) -> None:
        self._files = files

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        do = getattr(self._files, verb)

        def call(*words: Any, **more: Any) -> Any:
            if verb not in OF_ALL:
                words = (_find_number(words[0]), *words[1:])
            return _name(do(*words, **more))

        return call


def _find_number(card: str) -> int:
    if not card.startswith(KEY):
        raise NotFoundError(f"there is no card {card}: they are called {KEY}1 and so on")
    return int(card.removeprefix(KEY))


def _name(made: Any) -> Any:
    match made:
        case Issue():
            return structs.replace(made, number=f"{KEY}{made.number}")
        case (list() as found, problems):
            return [_name(one) for one in found], problems
    return made


def open_tracker(settings: TrackerSettings, state: Path | None = None) -> Tracker:
    """Return the cards of a project."""
    assert isinstance(settings, CardSettings)
    for kind in KINDS:
        (settings.folder / kind).mkdir(parents=True, exist_ok=True)
    return Cards(settings.folder)


def find_problems(settings: TrackerSettings) -> Iterator[str]:
    """Yield what is wrong with the settings."""
    assert isinstance(settings, CardSettings)
    if not settings.folder.is_dir():
        yield f"there is no folder '{settings.folder}' for the cards"
