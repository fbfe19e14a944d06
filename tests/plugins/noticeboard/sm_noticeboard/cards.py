"""A tracker: issues are cards in a folder, such as `HALL-7`; their pull requests are on a forge."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import Comment, Issue, IssueState, Saved, SourcedText
from sm.adapters.forge.tracker import Tracker
from sm.base.errors import UsageError
from sm.config.trackers import TrackerSettings
from sm.store.files import ensure_private_dir, read_json, write_json


class CardSettings(TrackerSettings, frozen=True, kw_only=True, tag="cards"):
    """Cards in a folder."""

    folder: Annotated[Path, Meta(description="the folder of the cards")]

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.folder)


class Cards(Tracker):
    """The cards. Whoever can write to the folder may have written any of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_members(self, authors: Iterable[str]) -> frozenset[str]:
        """Return all of them."""
        return frozenset(authors)

    def signs(self) -> tuple[Path, ...]:
        """Return the folder, in which each change makes a file anew."""
        return (self._folder,)

    @property
    def issues(self) -> Cards:
        """The cards as issues."""
        return self

    def read(self, number: str) -> Issue:
        """Read a card."""
        if found := read_json(self._folder / f"{number}.json", Issue):
            return found
        raise NotFoundError(f"there is no card {number}")

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """Find cards, the oldest first."""
        found = sorted((self.read(path.stem) for path in self._list()), key=lambda one: one.at)
        wanted = set(labels)
        return [o for o in found if state in (None, o.state) and wanted <= set(o.labels)], []

    def read_source(self, number: str) -> SourcedText:
        """Return what stands on a card; its author stands for all who have edited it."""
        found = self.read(number)
        saved = Saved(found.at, found.author)
        return SourcedText(found.title, found.body, found.author, saved, saved)

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """Write a new card."""
        numbers = (int(path.stem.rpartition("-")[2]) for path in self._list())
        name, at = f"HALL-{max(numbers, default=0) + 1}", time.time()
        return self._write(Issue(name, title, IssueState.OPEN, author, at, tuple(labels), body))

    def edit(
        self,
        number: str,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Change what stands on a card."""
        found = self.read(number)
        if instead_of not in (None, found.body):
            raise UsageError(f"the card {number} has been changed meanwhile")
        kept = found.body if body is None else body
        return self._write(structs.replace(found, title=title or found.title, body=kept))

    def close(self, number: str) -> Issue:
        """Turn a card over."""
        return self._change(number, state=IssueState.CLOSED)

    def reopen(self, number: str) -> Issue:
        """Turn it back."""
        return self._change(number, state=IssueState.OPEN)

    def list_labels(self) -> set[str]:
        """List the labels of all cards."""
        return {label for card in self.find()[0] for label in card.labels}

    def add_label(self, number: str, label: str) -> Issue:
        """Label a card."""
        labels = dict.fromkeys((*self.read(number).labels, label))
        return self._change(number, labels=tuple(labels))

    def remove_label(self, number: str, label: str) -> Issue:
        """Take a label off."""
        labels = (one for one in self.read(number).labels if one != label)
        return self._change(number, labels=tuple(labels))

    def read_comments(self, number: str) -> tuple[Comment, ...]:
        """Read what is noted on a card."""
        return self.read(number).comments

    def comment(self, number: str, body: str, *, author: str, marker: str = "") -> bool:
        """Note something on a card, once."""
        said = self.read(number).comments
        if marker and any(one.marker == marker for one in said):
            return False
        self._change(number, comments=(*said, Comment(author, time.time(), body, marker)))
        return True

    def _list(self) -> list[Path]:
        return list(self._folder.glob("*.json"))

    def _change(self, number: str, **what: Any) -> Issue:
        return self._write(structs.replace(self.read(number), **what))

    def _write(self, card: Issue) -> Issue:
        write_json(ensure_private_dir(self._folder) / f"{card.number}.json", card)
        return card


def open_tracker(settings: TrackerSettings, state: Path | None = None) -> Tracker:
    """Return the cards of a project."""
    assert isinstance(settings, CardSettings)
    return Cards(settings.folder)


def find_problems(settings: TrackerSettings) -> Iterator[str]:
    """Yield what is wrong with the settings."""
    assert isinstance(settings, CardSettings)
    if not settings.folder.is_dir():
        yield f"there is no folder '{settings.folder}' for the cards"
