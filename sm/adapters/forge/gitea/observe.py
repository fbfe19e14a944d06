"""One observation of a repository on Forgejo or Gitea.

They have no validators for lists. So the list is asked for what was changed since the last look,
which is one request where nothing has happened. Open pull requests are looked at each time: neither
a check nor a review is sure to show in the list.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from sm.adapters.forge.combine import combine
from sm.adapters.forge.gitea.reader import GiteaReader
from sm.adapters.forge.model import Batch, Comment, Issue, PullRequest, PullState, authors_in
from sm.adapters.forge.rest.around import (
    CURSOR,
    People,
    keep_people,
    list_people,
    read_named,
    recall_people,
    sort_out,
)
from sm.adapters.forge.rest.convert import is_of_fork, make_issue, make_pull, read_moment
from sm.adapters.forge.rest.forge import OBSERVE
from sm.adapters.forge.rest.settings import RestSettings
from sm.adapters.forge.rest.shapes import IssueShape, PullShape
from sm.foreign import format_utc

OVERLAP_S = 5.0
"""A change may show some seconds late, so that much is read again."""
RECENT_S = 30 * 86400.0
"""How long ago a closed issue or pull request was changed that is still read."""
DISCUSSED = 200
"""Issues whose comments are read when all is read anew: those changed last."""
UNCERTAIN_S = 1.0
"""A pull request is not `mergeable` either while the forge is finding out, so it is asked twice."""


class Observer:
    """Makes one observation of `reader`'s repository."""

    def __init__(self, reader: GiteaReader, settings: RestSettings) -> None:
        """Nothing is asked yet."""
        self._reader, self._settings = reader, settings
        self._problems: list[str] = []

    def go_on(self, since: Batch) -> Batch:
        """What has changed, and the rest as it was."""
        cursor = float(since.validators[CURSOR])
        changed = self._listed("all", cursor - OVERLAP_S)
        known = {issue.number: issue for issue in since.issues}
        issues = known | self._issues(changed)
        issues |= self._named(issues, changed)
        pulls = {pull.number: pull for pull in since.pulls}
        moved = {one.number for one in changed if one.pull_request is not None}
        if moved or any(pull.state is PullState.OPEN for pull in pulls.values()):
            pulls |= self._pulls(moved, pulls)
        return self._batch(_Found(issues, pulls, recall_people(since)), changed, cursor)

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        began = time.time()
        open_ones = self._listed("open")
        listed = {one.number: one for one in open_ones}
        listed |= {one.number: one for one in self._listed("closed", began - RECENT_S)}
        entries = list(listed.values())
        issues = self._issues(entries)
        issues |= self._named(issues, entries)
        pulls = self._pulls([one.number for one in entries if one.pull_request is not None], {})
        authors = authors_in(issues.values(), pulls.values())
        known = list_people(self._reader, self._settings, authors)
        # Not the later list: what was changed between them may be older than what that shows.
        return self._batch(_Found(issues, pulls, known), open_ones or entries, 0.0)

    def _listed(self, state: str, since: float = 0.0) -> list[IssueShape]:
        """The issues and pull requests in that state that were changed since."""
        asked: dict[str, str | int] = {"state": state}
        asked |= {"since": format_utc(since)} if since > 0 else {}
        return list(self._reader.entries("/issues", IssueShape, asked, OBSERVE))

    def _issues(self, entries: Iterable[IssueShape]) -> dict[int, Issue]:
        """The issues among the entries, open ones with their comments."""
        shapes = [one for one in entries if one.pull_request is None]
        newest = sorted(shapes, key=lambda one: one.updated_at, reverse=True)
        discussed = [one.number for one in newest if one.comments and one.state == "open"]
        said: dict[int, tuple[Comment, ...]] = {
            number: self._reader.comments(number) for number in discussed[:DISCUSSED]
        }
        return {one.number: make_issue(one, said.get(one.number, ())) for one in shapes}

    def _named(self, issues: Mapping[int, Issue], of: Iterable[IssueShape]) -> dict[int, Issue]:
        return read_named(self._reader, self._settings, issues, [one.number for one in of])

    # Pull requests

    def _pulls(
        self, wanted: Iterable[int], known: Mapping[int, PullRequest]
    ) -> dict[int, PullRequest]:
        """Every open pull request, and those `wanted` that are open no more."""
        shapes = {one.number: one for one in self._reader.pull_shapes({"state": "open"}, OBSERVE)}
        found = {number: self._pull(shape) for number, shape in shapes.items()}
        over = {one.number for one in known.values() if one.state is PullState.OPEN}
        for number in (over | set(wanted)) - set(shapes):
            found[number] = make_pull(self._reader.pull_shape(number))
        return found

    def _pull(self, shape: PullShape) -> PullRequest:
        """An open pull request; one of ours with what decides about it."""
        pull = make_pull(shape)
        if is_of_fork(pull):
            return pull
        if pull.conflicts:
            time.sleep(UNCERTAIN_S)
            pull = make_pull(self._reader.pull_shape(pull.number))
        parts = self._reader.parts(pull.head, OBSERVE)
        check = combine(parts, pull.head, expected=self._settings.has_ci)
        return structs.replace(pull, reviews=self._reader.reviews(pull.number), check=check)

    def _batch(self, found: _Found, entries: Iterable[IssueShape], cursor: float) -> Batch:
        authors = authors_in(found.issues.values(), found.pulls.values())
        known = sort_out(self._reader, self._settings, authors, found.people, self._problems)
        cursor = max([cursor, *(read_moment(one.updated_at) for one in entries)])
        return Batch(
            issues=tuple(found.issues[number] for number in sorted(found.issues)),
            pulls=tuple(_brief(found.pulls[number]) for number in sorted(found.pulls)),
            writers=tuple(sorted(set(known.writers) & authors)),
            problems=tuple(self._problems),
            validators={CURSOR: f"{cursor:.0f}", **keep_people(known)},
        )


class _Found(Struct, frozen=True):
    """What was read, by number."""

    issues: Mapping[int, Issue]
    pulls: Mapping[int, PullRequest]
    people: People


def _brief(pull: PullRequest) -> PullRequest:
    """Without its text, which observations do not have."""
    return structs.replace(pull, body="")
