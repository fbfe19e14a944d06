"""Reads a repository on GitHub: its checks, and what of its REST interface no other forge has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import ClassVar, TypeVar

from msgspec import Raw

from sm.adapters.forge.errors import NotFoundError, RefusedError
from sm.adapters.forge.model import CheckState
from sm.plugins.forges.github.graphql.client import Graphql
from sm.plugins.forges.github.graphql.convert import WORDS
from sm.plugins.forges.github.parts import (
    make_bare_run_part,
    make_job_part,
    make_run_part,
    make_unbegun_parts,
)
from sm.plugins.forges.github.shapes import (
    ActionsJob,
    ActionsJobs,
    ActionsRun,
    ActionsRuns,
    CheckRuns,
    CheckRunShape,
    Remarked,
    StatusPage,
)
from sm.plugins.forges.rest.convert import make_status_part, read_login
from sm.plugins.forges.rest.reader import GONE, PAGE, PAGES, READ, RestReader
from sm.plugins.forges.rest.shapes import IssueShape, StatusShape, User
from sm.plugins.forges.rest.status import StatusPart, combine
from sm.plugins.forges.web.answer import HttpAnswer, has_next, read_part
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import BadShapeError
from sm.plugins.forges.web.request import Params

T = TypeVar("T")

FORBIDDEN = 403
APP = "[bot]"
"""End of the name of an app's account over REST."""
UNREAD = "a check that cannot be read"
HIDDEN = "a check that the token may not read"
RUN_PAGES = 10
"""Most pages of the runs of workflows on one commit."""


class GithubReader(RestReader):
    """One repository on GitHub."""

    apart: ClassVar[frozenset[type]] = RestReader.apart | {Remarked}
    hides_runs = False
    """Whether the token has turned out to be one that may not read check runs."""

    def __init__(self, web: ForgeClient, repository: str, labels: Iterable[str] = ()) -> None:
        """`repository` is its present name, `labels` are those of the project."""
        super().__init__(web, repository)
        self._labels = {label.casefold(): label for label in labels}

    def spell(self, label: str) -> str:
        """A label as it is configured: to GitHub, `Backlog` and `backlog` are the same."""
        return self._labels.get(label.casefold(), label)

    @cached_property
    def account(self) -> str:
        """Our account. An app's token may not ask for its user, and is told by GraphQL."""
        try:
            return read_login(self.web.get("/user", READ).read(User))
        except RefusedError as error:
            if error.status != FORBIDDEN:
                raise
            name = self.graphql.read_viewer().removesuffix(APP)
            return read_login(User(f"{name}{APP}"))

    @cached_property
    def graphql(self) -> Graphql:
        """Its GraphQL interface."""
        return Graphql(self.web, self.repository)

    def take_passed_over(self) -> list[str]:
        """Return what was passed over since this was asked last."""
        found, self.graphql.passed_over = self.graphql.passed_over, []
        return [*super().take_passed_over(), *found]

    # Issues

    def issue_shape(self, number: int) -> IssueShape:
        """An issue; NotFoundError also if it is one of another repository now.

        The answer to a request for an issue that was transferred leads there.
        """
        found = super().issue_shape(number)
        if found.number == number and self._is_here(found):
            return found
        where = (found.repository_url or "").rpartition("/repos/")[2] or "another repository"
        raise NotFoundError(
            f"there is no issue {number} in '{self.repository}' any more: it was moved to "
            f"'{where}', as {found.number}"
        )

    def _is_here(self, issue: IssueShape) -> bool:
        """Whether it is of this repository, which may have been renamed meanwhile."""
        _, is_told, name = (issue.repository_url or "").lower().rpartition("/repos/")
        if not is_told or name == self.repository.lower():
            return True
        return name == self.repository_shape(READ).full_name.lower()

    # Checks

    def status_parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return the last status of each context as a part."""
        entries: list[Raw] = []
        for answer in self._of_commit(f"/commits/{head}/status", purpose):
            entries += answer.read(StatusPage).statuses or []
        found, unread = self._read_each(entries, StatusShape)
        return [*map(make_status_part, found), *unread]

    def parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return what every status and check run says of a commit.

        If the token may not read check runs, the jobs of Actions are read, and one part stands for
        the others, if those make a difference.
        """
        found = self.status_parts(head, purpose)
        if (runs := self._run_parts(head, purpose)) is not None:
            return [*found, *runs]
        actions = self.actions_runs(head, purpose)
        found += self._jobs_parts(actions or (), purpose)
        if any(not one.is_ours for one in actions or ()):
            return found  # GitHub's word for all checks counts those of the fork
        return [*found, *self._stand_in(found, head, is_dark=actions is None)]

    def _run_parts(self, head: str, purpose: str) -> list[StatusPart] | None:
        """Return the check runs as parts; None if the token may not read them.

        What has run for a pull request of a fork, which may have the same commit, is none of ours.
        """
        entries = None if self.hides_runs else self._check_runs(head, purpose)
        if entries is None:
            self.hides_runs = True
            return None
        found, unread = self._read_each(entries, CheckRunShape)
        runs = self.actions_runs(head, purpose) or []
        foreign = {run.check_suite_id for run in runs if not run.is_ours}
        keys = {run.check_suite_id: run.key for run in runs}
        ours = [one for one in found if not (one.check_suite and one.check_suite.id in foreign)]
        begun = {one.check_suite.id for one in found if one.check_suite}
        unbegun = make_unbegun_parts((run for run in runs if run.is_ours), begun)
        return [*(make_run_part(one, keys) for one in ours), *unbegun, *unread]

    def may_read_runs(self, head: str) -> bool:
        """Whether the token may read check runs."""
        return self._check_runs(head, READ) is not None

    def _check_runs(self, head: str, purpose: str) -> list[Raw] | None:
        """The check runs, None if the token may not read them."""
        found: list[Raw] = []
        try:
            for answer in self._of_commit(f"/commits/{head}/check-runs", purpose):
                found += answer.read(CheckRuns).check_runs
        except RefusedError as error:
            if error.status != FORBIDDEN:
                raise
            return None
        return found

    def actions_runs(self, head: str, purpose: str = READ) -> list[ActionsRun] | None:
        """The runs of workflows on a commit, also those of forks; None if they are not told."""
        found: list[Raw] = []
        for number in range(1, RUN_PAGES + 1):
            asked: Params = {"head_sha": head, "per_page": PAGE, "page": number}
            answer = self.web.get(f"{self.at}/actions/runs", purpose, asked, accept=(403, *GONE))
            if answer.status >= 300:
                return None
            found += answer.read(ActionsRuns).workflow_runs
            if not has_next(answer.headers):
                break
        return self._read_each(found, ActionsRun)[0]

    # Without check runs

    def _jobs_parts(self, runs: Iterable[ActionsRun], purpose: str) -> list[StatusPart]:
        """Return the jobs of each workflow's last run as parts."""
        ours = sorted((run for run in runs if run.is_ours), key=lambda run: run.id)
        newest = {run.key: run for run in ours}
        return [part for run in newest.values() for part in self._job_parts(run, purpose)]

    def _job_parts(self, run: ActionsRun, purpose: str) -> list[StatusPart]:
        """The jobs of a run; the run itself while it has none, or if they are not told."""
        entries, is_told = list[Raw](), True
        for number in range(1, RUN_PAGES + 1):
            asked: Params = {"per_page": PAGE, "page": number}
            path = f"{self.at}/actions/runs/{run.id}/jobs"
            answer = self.web.get(path, purpose, asked, accept=(403, *GONE))
            entries += answer.read(ActionsJobs).jobs if answer.status < 300 else []
            is_told = answer.status < 300
            if not is_told or not has_next(answer.headers):
                break
        found, unread = self._read_each(entries, ActionsJob)
        parts = [*(make_job_part(one, run) for one in found), *unread]
        return parts or [make_bare_run_part(run, has_none=is_told)]

    def _stand_in(self, parts: list[StatusPart], head: str, *, is_dark: bool) -> list[StatusPart]:
        """A part for the checks that are not told, if GitHub's word for all says more than `parts`.

        If that is not told either, and no job, they are taken to be under way: in the end a person
        is asked.
        """
        if (word := WORDS.get(self.graphql.read_rollup(head))) is None:
            return [StatusPart(HIDDEN, "pending")] if is_dark else []
        known = combine(parts, head, expected=False).state
        is_more = known in (CheckState.SUCCESS, CheckState.NONE) and word is not CheckState.SUCCESS
        return [StatusPart(HIDDEN, str(word))] if is_more else []

    # Both

    def _read_each(self, entries: list[Raw], shape: type[T]) -> tuple[list[T], list[StatusPart]]:
        """Return the parts that can be read, and one for each other, which is not known to pass."""
        found, unread = list[T](), list[StatusPart]()
        for number, one in enumerate(entries):
            try:
                found.append(read_part(one, shape, "of the checks"))
            except BadShapeError as error:
                self.pass_over([error.message])
                unread.append(StatusPart(UNREAD, "unknown", key=f"{shape.__name__} {number}"))
        return found, unread

    def _of_commit(self, path: str, purpose: str) -> Iterator[HttpAnswer]:
        """The pages; none for a commit that the forge does not have."""
        try:
            for number in range(1, PAGES + 1):
                asked: Params = {"per_page": PAGE, "page": number}
                answer = self.web.get(f"{self.at}{path}", purpose, asked)
                yield answer
                if not has_next(answer.headers):
                    return
        except RefusedError as error:
            if error.status not in (*GONE, 422):
                raise
