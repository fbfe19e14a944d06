"""One observation of a GitHub repository: what has changed since the last one, or all anew.

The guard is a conditional request for the entry that was changed last, issue or pull request. Its
304 is free, and says that no list has changed. Checks, and whether a branch conflicts, change
without a trace in a list: so pull requests that wait for a check are looked at each time, all of
them in one query.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, structs

from sm.adapters.forge.model import (
    Batch,
    CheckState,
    Hold,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    ReviewState,
    authors_in,
)
from sm.base.foreign import format_utc
from sm.plugins.forges.github.details import GithubDetails
from sm.plugins.forges.github.graphql.convert import (
    CONFLICTING,
    UNKNOWN,
    WORDS,
    join_revision,
    read_hold,
    split_revision,
)
from sm.plugins.forges.github.graphql.shapes import PullNode
from sm.plugins.forges.github.parts import make_unbegun_suite_parts
from sm.plugins.forges.github.reader import GithubReader
from sm.plugins.forges.github.shapes import Remarked
from sm.plugins.forges.rest.checks import is_bare
from sm.plugins.forges.rest.convert import is_of_fork, read_moment
from sm.plugins.forges.rest.issues import read_dependencies
from sm.plugins.forges.rest.observation import (
    CURSOR,
    DISCUSSED,
    OVERLAP_S,
    PAGES,
    RECENT_S,
    ObservedThings,
    list_changed,
    recall_comments,
)
from sm.plugins.forges.rest.people import find_people, keep_people, list_people, recall_people
from sm.plugins.forges.rest.reader import OBSERVE, PAGE
from sm.plugins.forges.rest.shapes import ChangedEntry, IssueShape
from sm.plugins.forges.rest.site import RestSettings
from sm.plugins.forges.web.limits import read_date

RACY_S = 2.0
"""An entry may change again within the second that its list shows: then its ETag says nothing."""
NEWEST_FIRST = {"sort": "updated", "direction": "desc"}
OLDEST_FIRST = {"sort": "updated", "direction": "asc"}
UNTOLD = "/"
"""The progress of checks of which nothing is told."""
WAITING = 20
"""Waiting issues that one look reads again when another issue was closed."""
REMARK_PAGES = 10
"""Most pages of the remarks on lines that were edited since the last look."""


class ListGuard(Struct, frozen=True):
    """The answer to the conditional request. `date` is the forge's time then."""

    is_unchanged: bool
    etag: str
    date: float


class GithubObserver:
    """Makes one observation of `reader`'s repository."""

    def __init__(
        self, reader: GithubReader, details: GithubDetails, settings: RestSettings
    ) -> None:
        """Ask nothing yet."""
        self._reader, self._details, self._settings = reader, details, settings
        self._problems: list[str] = []

    def go_on(self, since: Batch, *, is_written: bool) -> Batch:
        """Return what has changed, and the rest as it was; `is_written`: we changed something."""
        known = since.validators
        cursor = float(known[CURSOR])
        guard = self._guard(known["etag"] if known.get("token") == self._token else "")
        changed = [] if guard.is_unchanged else self._changed(cursor)
        issues = {issue.number: issue for issue in since.issues}
        issues |= self._issues(changed, issues)
        if any(one.state != "open" and one.pull_request is None for one in changed):
            issues |= self._ask_waiting(issues)
        issues |= read_dependencies(
            self._reader, self._settings, issues, [one.number for one in changed]
        )
        pulls = {pull.number: pull for pull in since.pulls}
        self._details.of_forks |= {pull.head for pull in since.pulls if is_of_fork(pull)}
        fresh = self._details.pulls(_pull_numbers(changed))
        pulls |= self._keep_known(fresh, pulls)
        everyone = bool(changed) or is_written
        asked = _list_restless(pulls, fresh, known.get("unsure", ""), everyone=everyone)
        pulls |= self._keep_known(self._look_again(pulls, asked), pulls)
        pulls |= {} if guard.is_unchanged else self._mark_remarks(pulls, cursor)
        cursor = max([cursor, *(read_moment(one.updated_at) for one in changed)])
        people = recall_people(since)
        return self._batch(
            ObservedThings(issues, pulls, people), *self._go_back(changed, guard, cursor)
        )

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        guard = self._guard("")
        recent = guard.date - RECENT_S
        listed = {one.number: one for one in self._listed("open")}
        listed |= {one.number: one for one in self._listed("closed", recent)}
        newest = sorted(listed.values(), key=lambda one: one.updated_at, reverse=True)
        issues = self._issues(newest, {})
        issues |= read_dependencies(self._reader, self._settings, issues, list(issues))
        open_ones = [one for one in newest if one.state == "open"]
        closed_ones = [one for one in newest if one.state != "open"]
        pulls = self._details.pulls(_pull_numbers(open_ones), _pull_numbers(closed_ones))
        pulls |= self._mark_remarks(pulls, guard.date)
        authors = authors_in(issues.values(), pulls.values())
        known = list_people(self._reader, self._settings, authors)
        # From the beginning: what was changed between the lists may be older than what they show.
        return self._batch(
            ObservedThings(issues, pulls, known), *self._go_back(newest, guard, guard.date)
        )

    def _go_back(
        self, entries: Iterable[IssueShape], guard: ListGuard, cursor: float
    ) -> tuple[ListGuard, float]:
        """Find where the next look begins: before what GraphQL did not find out in time."""
        late = [one for one in entries if one.number in self._details.late]
        if not late:
            return guard, cursor
        before = min(read_moment(one.updated_at) for one in late)
        return ListGuard(guard.is_unchanged, "", guard.date), min(cursor, before)

    @property
    def _token(self) -> str:
        return self._reader.web.token.fingerprint

    # Lists

    def _guard(self, etag: str) -> ListGuard:
        """Ask for the entry that was changed last."""
        asked: dict[str, str | int] = {"state": "all", "per_page": 1, **NEWEST_FIRST}
        path = f"{self._reader.at}/issues"
        answer = self._reader.web.get(path, OBSERVE, asked, etag=etag)
        date = read_date(answer.headers) or time.time()
        if answer.is_unchanged:
            return ListGuard(True, etag, date)
        entries = answer.read_page(
            ChangedEntry
        )  # its list is read next, and tells what is wrong there
        is_racy = bool(entries.bad) or any(
            date - read_moment(one.updated_at) < RACY_S for one in entries.found
        )
        return ListGuard(False, "" if is_racy else answer.etag, date)

    def _changed(self, cursor: float) -> list[IssueShape]:
        """List what was changed since, the last change of each, newest first."""
        found = {one.number: one for one in self._listed("all", cursor - OVERLAP_S)}
        return sorted(found.values(), key=lambda one: one.updated_at, reverse=True)

    def _listed(self, state: str, since: float = 0.0) -> list[IssueShape]:
        """The entries in that state that were changed since, those changed last at the end."""

        def ask(after: float, page: int) -> tuple[list[IssueShape], bool]:
            asked = {"state": state, **OLDEST_FIRST}
            asked |= {"since": format_utc(after)} if after > 0 else {}
            found = self._reader.page("/issues", IssueShape, asked, OBSERVE, page)
            return found.found, self._reader.has_more(found)

        found, is_all = list_changed(ask, since)
        if not is_all:
            self._problems.append(
                f"'{self._reader.repository}' has more than {PAGES * PAGE:,} entries that are "
                f"{state}: those changed last were left out"
            )
        return found

    def _issues(
        self, entries: Iterable[IssueShape], known: Mapping[int, Issue]
    ) -> dict[int, Issue]:
        """The issues among the entries, open ones with their comments."""
        shapes = [one for one in entries if one.pull_request is None]
        discussed = [one.number for one in shapes if one.comments and one.state == "open"]
        labels = set(self._settings.labels)
        ours = {
            one.number for one in shapes if labels.intersection(self._reader.make_issue(one).labels)
        }
        said = self._details.comments(discussed[:DISCUSSED], ours) if discussed else {}
        said |= recall_comments(set(discussed) - set(said), known)
        return {
            one.number: self._reader.make_issue(one, said.get(one.number, ())) for one in shapes
        }

    def _ask_waiting(self, issues: Mapping[int, Issue]) -> dict[int, Issue]:
        """The issues that wait for others, read again: no list shows them when one was closed."""
        waiting = [one for one in issues.values() if one.waits and one.state is IssueState.OPEN]
        asked = {one.number: one for one in sorted(waiting, key=lambda one: one.number)[:WAITING]}
        return self._reader.read_each(
            asked,
            lambda number: self._reader.make_issue(
                self._reader.issue_shape(number), asked[number].comments
            ),
        )

    # Pull requests

    def _look_again(
        self, pulls: Mapping[int, PullRequest], numbers: list[int]
    ) -> dict[int, PullRequest]:
        """Read the pull requests of `numbers` that have changed without a trace in a list."""
        if not numbers:
            return {}
        states = self._details.states(numbers, [n for n in numbers if is_bare(pulls[n])])
        changed = [n for n, node in states.items() if self._differs(pulls[n], node)]
        return self._details.pulls(changed)

    def _differs(self, pull: PullRequest, node: PullNode) -> bool:
        """Whether the pull request is not as it was."""
        if node.state != "OPEN" or node.head_ref_oid != pull.head:
            return True
        if node.mergeable != UNKNOWN and (node.mergeable == CONFLICTING) is not pull.conflicts:
            return True
        plain = structs.replace(pull, hold=Hold.NONE, held="")
        held = read_hold(plain, node, self._details.rules(pull.base))
        if node.merge_state_status != UNKNOWN and (held.hold, held.held) != (pull.hold, pull.held):
            return True
        if is_bare(pull) and make_unbegun_suite_parts(node.suites, ()):
            return True
        if self._details.rules(pull.base).checks and node.progress != UNTOLD:
            # The word for all of them says little of those that are required.
            return node.progress != pull.check.progress
        nothing = CheckState.PENDING if self._settings.has_ci else CheckState.NONE
        state = WORDS.get(node.rollup.state, CheckState.PENDING) if node.rollup else nothing
        known = CheckState.FAILURE if pull.check.state is CheckState.BROKEN else pull.check.state
        return state is not known

    def _keep_known(
        self, fresh: Mapping[int, PullRequest], known: Mapping[int, PullRequest]
    ) -> dict[int, PullRequest]:
        """`fresh`; what GitHub does not say there, and not yet of conflicts, is as was known."""
        return {
            number: self._keep(pull, known[number]) if number in known else pull
            for number, pull in fresh.items()
        }

    def _keep(self, pull: PullRequest, known: PullRequest) -> PullRequest:
        if pull.number in self._details.unsure:
            pull = structs.replace(pull, conflicts=known.conflicts)
        return _mark(pull, {one.id: split_revision(one.revision)[1] for one in known.reviews})

    def _mark_remarks(
        self, pulls: Mapping[int, PullRequest], since: float
    ) -> dict[int, PullRequest]:
        """Mark pull requests in which changes are asked for with the last edits of remarks.

        GitHub has one list for all, those that were edited last before the others.
        """
        meant = [
            pull
            for pull in pulls.values()
            if is_in_play(pull)
            and any(one.state is ReviewState.CHANGES_REQUESTED for one in pull.reviews)
        ]
        remarked = self._list_remarked(since) if meant else {}
        return {pull.number: _mark(pull, remarked) for pull in meant} if remarked else {}

    def _list_remarked(self, since: float) -> dict[str, str]:
        """List when remarks of each review were edited last: the last page, and all `since`."""
        found: dict[str, str] = {}
        for number in range(1, REMARK_PAGES + 1):
            page = self._reader.page("/pulls/comments", Remarked, NEWEST_FIRST, OBSERVE, number)
            for one in page.found:
                found.setdefault(str(one.pull_request_review_id), one.updated_at)
            last = read_moment(page.found[-1].updated_at) if page.found else 0.0
            if not self._reader.has_more(page) or last < since - OVERLAP_S:
                break
        return found

    def _batch(self, found: ObservedThings, guard: ListGuard, cursor: float) -> Batch:
        issues, pulls = found.issues, found.pulls
        authors = authors_in(issues.values(), pulls.values())
        people = find_people(self._reader, self._settings, authors, found.people, self._problems)
        self._problems += self._reader.take_passed_over()
        unsure = sorted(n for n in self._details.unsure if n in pulls and is_in_play(pulls[n]))
        return Batch(
            issues=tuple(issues[number] for number in sorted(issues)),
            pulls=tuple(pulls[number] for number in sorted(pulls)),
            writers=tuple(sorted(authors & {*people.writers})),
            problems=tuple(self._problems),
            validators={
                "etag": guard.etag,
                "token": self._token,
                CURSOR: f"{cursor:.0f}",
                "unsure": ",".join(map(str, unsure)),
                **keep_people(people, authors),
            },
        )


def _mark(pull: PullRequest, remarked: Mapping[str, str]) -> PullRequest:
    """Return it with the moments at which remarks were edited, by the id of the review."""
    reviews = []
    for one in pull.reviews:
        edited_at, known = split_revision(one.revision)
        revision = join_revision(edited_at, remarked.get(one.id, known))
        reviews.append(structs.replace(one, revision=revision))
    return structs.replace(pull, reviews=tuple(reviews))


def is_in_play(pull: PullRequest) -> bool:
    """Whether something may still become of it here."""
    return pull.state is PullState.OPEN and not is_of_fork(pull)


def _list_restless(
    pulls: Mapping[int, PullRequest], fresh: Collection[int], unsure: str, *, everyone: bool
) -> list[int]:
    """The pull requests that may have changed unseen: checks run, or the base has moved."""
    unknown = set(unsure.split(","))
    return [
        number
        for number, pull in pulls.items()
        if is_in_play(pull)
        and number not in fresh
        and (everyone or _is_restless(pull) or str(number) in unknown)
    ]


def _is_restless(pull: PullRequest) -> bool:
    """Whether something goes on there: checks run, or the merge queue is at it."""
    return pull.check.state is CheckState.PENDING or pull.hold is Hold.QUEUED


def _pull_numbers(entries: Iterable[IssueShape]) -> list[int]:
    return [one.number for one in entries if one.pull_request is not None]
