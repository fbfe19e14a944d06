"""One observation of a project on GitLab.

Lists are asked for what was changed since the last look. GitLab enters there who approves and who
pushes, but neither what pipelines say nor that a branch conflicts by now. So each open merge
request of the project's own branches is looked at each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import structs

from sm.adapters.forge.model import Batch, Hold, PullRequest, PullState, authors_in
from sm.base.foreign import format_utc
from sm.plugins.forges.gitlab import ci
from sm.plugins.forges.gitlab.convert import make_issue_shape, make_pull_shape
from sm.plugins.forges.gitlab.hold import hold_back, keep_hold
from sm.plugins.forges.gitlab.reader import GitlabReader
from sm.plugins.forges.gitlab.shapes import IssueJson, MergeRequest
from sm.plugins.forges.rest.convert import is_of_fork, make_pull
from sm.plugins.forges.rest.observation import (
    CURSOR,
    OVERLAP_S,
    PAGES,
    RECENT_S,
    ListObserver,
    ObservedThings,
    list_changed,
)
from sm.plugins.forges.rest.people import list_people, recall_people
from sm.plugins.forges.rest.reader import OBSERVE, PAGE
from sm.plugins.forges.rest.status import combine
from sm.plugins.forges.web.limits import read_date

T = TypeVar("T", IssueJson, MergeRequest)


class GitlabObserver(ListObserver[GitlabReader]):
    """Makes one observation of `reader`'s project."""

    _date = 0.0
    """The forge's time when it was asked first: what is changed later is found the next time."""

    def go_on(self, since: Batch, *, is_written: bool) -> Batch:
        """Return what has changed, and the rest as it was."""
        after = float(since.validators[CURSOR]) - OVERLAP_S
        changed = self._listed("/issues", IssueJson, "all", after)
        issues = {issue.number: issue for issue in since.issues}
        issues |= self._issues(map(make_issue_shape, changed), issues)
        issues |= self._named(issues, [one.iid for one in changed])
        moved = self._listed("/merge_requests", MergeRequest, "all", after)
        known = {pull.number: pull for pull in since.pulls}
        pulls = known | self._pulls(moved, known)
        return self._batch(ObservedThings(issues, pulls, recall_people(since)), self._date)

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        open_ones = self._listed("/issues", IssueJson, "opened")
        recent = self._date - RECENT_S
        listed = {one.iid: one for one in open_ones}
        listed |= {one.iid: one for one in self._listed("/issues", IssueJson, "closed", recent)}
        issues = self._issues(map(make_issue_shape, listed.values()))
        issues |= self._named(issues, list(issues))
        requests = self._listed("/merge_requests", MergeRequest, "opened")
        requests += self._listed("/merge_requests", MergeRequest, "all", recent)
        pulls = self._pulls(requests, {})
        authors = authors_in(issues.values(), pulls.values())
        people = list_people(self._reader, self._settings, authors)
        return self._batch(ObservedThings(issues, pulls, people), self._date)

    # Lists

    def _listed(self, path: str, shape: type[T], state: str, since: float = 0.0) -> list[T]:
        """The entries in that state that were changed since, each as it was last."""

        def ask(after: float, page: int) -> tuple[list[T], bool]:
            asked = {"state": state, "order_by": "updated_at", "sort": "asc"}
            asked |= {"updated_after": format_utc(after)} if after > 0 else {}
            found = self._reader.page(path, shape, asked, OBSERVE, page)
            self._date = self._date or read_date(found.headers or {}) or time.time()
            return found.found, self._reader.has_more(found)

        found, is_all = list_changed(ask, since)
        if not is_all:
            self._problems.append(
                f"'{self._reader.repository}' has more than {PAGES * PAGE:,} entries that are "
                f"{state}: those changed last were left out"
            )
        return list({one.iid: one for one in found}.values())

    # Merge requests

    def _pulls(
        self, moved: Iterable[MergeRequest], known: Mapping[int, PullRequest]
    ) -> dict[int, PullRequest]:
        """Read the merge requests that have moved, and the open ones of our own branches."""
        found = {one.iid: make_pull(make_pull_shape(one)) for one in moved}
        listed = set(found)
        ours = [
            number
            for number, pull in (dict(known) | found).items()
            if pull.state is PullState.OPEN and not is_of_fork(pull)
        ]
        for number in ours:
            found.pop(number, None)  # without what decides about it, it is not to be used
        return found | self._reader.read_each(
            ours, lambda number: self._look(number, known.get(number), is_new=number in listed)
        )

    def _look(self, number: int, known: PullRequest | None, *, is_new: bool) -> PullRequest:
        """An open merge request with what decides about it. Reviews show in the list."""
        request = self._reader.request(number, OBSERVE)
        shape = make_pull_shape(request)
        pull = hold_back(make_pull(shape), request)
        if pull.state is not PullState.OPEN:
            return pull
        if shape.mergeable is None and known and pull.hold is not Hold.QUEUED:
            pull = keep_hold(pull, known)
        parts = ci.read_parts(self._reader, pull.head, request, OBSERVE)
        return structs.replace(
            pull,
            reviews=self._reader.reviews(number) if is_new or known is None else known.reviews,
            check=combine(parts, pull.head, expected=self._settings.has_ci),
        )
