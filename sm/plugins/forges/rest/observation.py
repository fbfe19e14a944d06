"""Observations on forges that can only be asked for lists.

A list is read in the order of its changes, while others go on changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, structs

from sm.adapters.forge.model import Batch, Comment, Issue, PullRequest, authors_in
from sm.plugins.forges.rest.convert import read_moment
from sm.plugins.forges.rest.issues import read_dependencies
from sm.plugins.forges.rest.people import People, find_people, keep_people
from sm.plugins.forges.rest.reader import RestReader
from sm.plugins.forges.rest.shapes import IssueShape
from sm.plugins.forges.rest.site import RestSettings

CURSOR = "cursor"
"""The validator that says up to which moment the forge was seen."""
PAGES = 40
"""Pages of a list; what was changed last beyond them is left out."""


class Dated(Protocol):
    """An entry of such a list."""

    @property
    def updated_at(self) -> str:
        """The time of the last change."""
        ...


T = TypeVar("T", bound=Dated)


def list_changed(
    ask: Callable[[float, int], tuple[list[T], bool]], since: float
) -> tuple[list[T], bool]:
    """The entries changed since, those changed last at the end; and whether that is all.

    `ask` returns the page of that number of those changed since a moment, which it writes to the
    second, and whether there is another page. Each page begins where the last one ended: what is
    changed meanwhile moves to the end of the list, and would make a page that is asked for by its
    number begin too late. So an entry may be there twice, and the later one counts.
    """
    found: list[T] = []
    after, page = since, 1
    for _ in range(PAGES):
        entries, has_more = ask(after, page)
        found += entries
        if not has_more:
            return found, True
        last = float(int(read_moment(entries[-1].updated_at))) if entries else after
        after, page = (after, page + 1) if last <= after else (last, 1)
    return found, False


R = TypeVar("R", bound=RestReader)

OVERLAP_S = 5.0
"""Lists may show a change some seconds late, so that much is read again."""
RECENT_S = 30 * 86400.0
"""Age of the last change of a closed issue or pull request that is still read, in seconds."""
DISCUSSED = 200
"""Issues whose comments are read when all is read anew: those changed last."""


NONE: Mapping[int, Issue] = {}


def recall_comments(
    numbers: Iterable[int], known: Mapping[int, Issue]
) -> dict[int, tuple[Comment, ...]]:
    """The comments on these issues as the last look has shown them."""
    return {number: known[number].comments for number in numbers if number in known}


class ObservedThings(Struct, frozen=True):
    """Issues and pull requests that were read, by number, and people."""

    issues: Mapping[int, Issue]
    pulls: Mapping[int, PullRequest]
    people: People


class ListObserver(Generic[R]):
    """Makes one observation of `reader`'s repository."""

    def __init__(self, reader: R, settings: RestSettings) -> None:
        """Ask nothing yet."""
        self._reader, self._settings = reader, settings
        self._problems: list[str] = []

    def _issues(
        self, shapes: Iterable[IssueShape], known: Mapping[int, Issue] = NONE
    ) -> dict[int, Issue]:
        """The issues, open ones with comments, which stay as `known` if they are unreadable."""
        newest = sorted(shapes, key=lambda one: one.updated_at, reverse=True)
        discussed = [one.number for one in newest if one.comments and one.state == "open"]
        said = self._reader.read_each(discussed[:DISCUSSED], self._reader.comments)
        said |= recall_comments(set(discussed) - set(said), known)
        return {
            one.number: self._reader.make_issue(one, said.get(one.number, ())) for one in newest
        }

    def _named(self, issues: Mapping[int, Issue], of: Iterable[int]) -> dict[int, Issue]:
        """The issues that those numbered `of` depend on, and that are in no list any more."""
        return read_dependencies(self._reader, self._settings, issues, of)

    def _batch(self, found: ObservedThings, cursor: float) -> Batch:
        """The observation, up to the moment `cursor`; without the texts of pull requests."""
        authors = authors_in(found.issues.values(), found.pulls.values())
        known = find_people(self._reader, self._settings, authors, found.people, self._problems)
        self._problems += self._reader.take_passed_over()
        pulls = (found.pulls[number] for number in sorted(found.pulls))
        return Batch(
            issues=tuple(found.issues[number] for number in sorted(found.issues)),
            pulls=tuple(structs.replace(pull, body="") for pull in pulls),
            writers=tuple(sorted(set(known.writers) & authors)),
            problems=tuple(self._problems),
            validators={CURSOR: f"{cursor:.0f}", **keep_people(known, authors)},
        )
