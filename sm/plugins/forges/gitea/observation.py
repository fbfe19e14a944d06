"""One observation of a repository on Forgejo or Gitea.

They have no validators for lists. So the list is asked for what was changed since the last look,
which is one request where nothing has happened. Open pull requests are looked at each time: neither
a check nor a review is sure to show in the list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import structs

from sm.adapters.forge.model import (
    Batch,
    Issue,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    authors_in,
    hash_review,
)
from sm.base.foreign import format_utc
from sm.plugins.forges.gitea.reader import NEEDED, GiteaReader
from sm.plugins.forges.rest.convert import is_of_fork, make_pull, read_moment, shorten
from sm.plugins.forges.rest.observation import (
    CURSOR,
    OVERLAP_S,
    RECENT_S,
    ListObserver,
    ObservedThings,
)
from sm.plugins.forges.rest.people import list_people, recall_people
from sm.plugins.forges.rest.protection import BranchRules, hold_by_rules
from sm.plugins.forges.rest.reader import OBSERVE
from sm.plugins.forges.rest.shapes import IssueShape, PullShape
from sm.plugins.forges.rest.site import RestSettings
from sm.plugins.forges.rest.status import combine

RACY_S = 2.0
"""An entry may have changed again for so many seconds after its time: that has no fractions."""
READY = 30
"""Ready issues that one look asks for their dependencies: the oldest, which begin first."""


class GiteaObserver(ListObserver[GiteaReader]):
    """Makes one observation of `reader`'s repository."""

    def __init__(
        self,
        reader: GiteaReader,
        settings: RestSettings,
        rules: Callable[[str], BranchRules],
    ) -> None:
        """Ask nothing yet; `rules` gives those of a branch."""
        super().__init__(reader, settings)
        self._rules = rules

    def go_on(self, since: Batch, *, is_written: bool) -> Batch:
        """Return what has changed, and the rest as it was."""
        cursor = float(since.validators[CURSOR])
        changed = self._listed("all", cursor - OVERLAP_S)
        known = {issue.number: issue for issue in since.issues}
        issues = known | self._issues(_drop_pulls(changed), known)
        issues |= self._named(issues, [one.number for one in changed])
        issues |= {
            number: structs.replace(issues[number], waits=one.waits)
            for number, one in known.items()
            if one.waits  # no list tells it
        }
        news = [one for one in changed if _is_new(one, cursor)]
        has_closed = any(one.state != "open" for one in news)
        waiting = [one.number for one in known.values() if one.waits] if has_closed else []
        issues |= self._ask_waiting(issues, [*(one.number for one in news), *waiting])
        pulls = {pull.number: pull for pull in since.pulls}
        moved = {one.number for one in changed if one.pull_request is not None}
        if moved or any(pull.state is PullState.OPEN for pull in pulls.values()):
            pulls |= self._pulls(moved, pulls)
        return self._batch(
            ObservedThings(issues, pulls, recall_people(since)), _find_last(changed, cursor)
        )

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        began = time.time()
        open_ones = self._listed("open")
        listed = {one.number: one for one in open_ones}
        listed |= {one.number: one for one in self._listed("closed", began - RECENT_S)}
        entries = list(listed.values())
        issues = self._issues(_drop_pulls(entries))
        issues |= self._named(issues, list(listed))
        issues |= self._ask_waiting(issues, list(issues))
        pulls = self._pulls([one.number for one in entries if one.pull_request is not None], {})
        authors = authors_in(issues.values(), pulls.values())
        known = list_people(self._reader, self._settings, authors)
        # Not the later list: what was changed between them may be older than what that shows.
        return self._batch(
            ObservedThings(issues, pulls, known), _find_last(open_ones or entries, 0.0)
        )

    def _listed(self, state: str, since: float = 0.0) -> list[IssueShape]:
        """The issues and pull requests in that state that were changed since."""
        asked: dict[str, str | int] = {"state": state}
        asked |= {"since": format_utc(since)} if since > 0 else {}
        return list(self._reader.entries("/issues", IssueShape, asked, OBSERVE))

    def _ask_waiting(self, issues: Mapping[int, Issue], of: Collection[int]) -> dict[int, Issue]:
        """Ask what the ready issues among those numbered `of` depend on by the forge's own means.

        No list tells that, so the oldest of them are asked for, one by one.
        """
        ready = [
            issues[number]
            for number in sorted(of)
            if number in issues and self._settings.is_ready(issues[number])
        ]
        asked = {one.number: one for one in ready[:READY]}
        return self._reader.read_each(
            asked,
            lambda number: structs.replace(
                asked[number], waits=", ".join(self._reader.needed(number)[:NEEDED])
            ),
        )

    # Pull requests

    def _pulls(
        self, wanted: Iterable[int], known: Mapping[int, PullRequest]
    ) -> dict[int, PullRequest]:
        """Every open pull request, and those `wanted` that are open no more."""
        shapes = {one.number: one for one in self._reader.pull_shapes({"state": "open"}, OBSERVE)}
        over = {one.number for one in known.values() if one.state is PullState.OPEN}
        rest = (over | set(wanted)) - set(shapes)
        return self._reader.read_each(
            shapes, lambda number: self._pull(shapes[number], known.get(number))
        ) | self._reader.read_each(rest, lambda number: make_pull(self._reader.pull_shape(number)))

    def _pull(self, shape: PullShape, known: PullRequest | None) -> PullRequest:
        """An open pull request; one of ours with what decides about it."""
        pull = make_pull(shape)
        if is_of_fork(pull):
            return pull
        if pull.conflicts:
            shape = self._reader.shape_later(pull.number)
            pull = make_pull(shape)
        parts, rules = self._reader.parts(pull.head, OBSERVE), self._rules(pull.base)
        has_ci = self._settings.has_ci
        check = combine(parts, pull.head, expected=has_ci, required=rules.checks)
        reviews = self._reviews(pull.number, known)
        pull = structs.replace(pull, reviews=reviews, check=check)
        return hold_by_rules(pull, shape, rules)

    def _reviews(self, number: int, known: PullRequest | None) -> tuple[Review, ...]:
        """The reviews without texts. No list shows that one was edited.

        So the texts are compared when all is read anew, while a reviewer asks for changes.
        """
        found = self._reader.reviews(number)
        if known:
            revisions = {one.id: one.revision for one in known.reviews}
            return tuple(shorten(one, revisions.get(one.id, "")) for one in found)
        if all(one.state is not ReviewState.CHANGES_REQUESTED for one in found):
            return found
        return tuple(shorten(one, hash_review(one)) for one in self._reader.whole_reviews(number))


def _is_new(entry: IssueShape, cursor: float) -> bool:
    """Whether it was changed since the last look, or may have been: their times are seconds."""
    at = read_moment(entry.updated_at)
    return at > cursor or abs(time.time() - at) < RACY_S


def _drop_pulls(entries: Iterable[IssueShape]) -> list[IssueShape]:
    return [one for one in entries if one.pull_request is None]


def _find_last(entries: Iterable[IssueShape], cursor: float) -> float:
    """Find when the entries were changed last, at least `cursor`."""
    return max([cursor, *(read_moment(one.updated_at) for one in entries)])
