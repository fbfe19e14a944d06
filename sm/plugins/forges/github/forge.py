"""GitHub, also GitHub Enterprise: what it does alone among the forges with such an interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from sm.adapters.forge.errors import AtWorkError, QueueUnknownError, RefusedError
from sm.adapters.forge.model import (
    Batch,
    Comment,
    Hold,
    InlineComment,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    SourcedText,
)
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.text import one_line
from sm.plugins.forges.github.details import GithubDetails
from sm.plugins.forges.github.graphql import queries
from sm.plugins.forges.github.graphql.client import BUCKET, NoGraphqlError
from sm.plugins.forges.github.graphql.convert import read_hold
from sm.plugins.forges.github.graphql.discussion import UntoldReviewError
from sm.plugins.forges.github.observation import GithubObserver
from sm.plugins.forges.github.reader import FORBIDDEN, GithubReader
from sm.plugins.forges.github.shapes import ActionsRun, Annotation
from sm.plugins.forges.rest.checks import RestChecks
from sm.plugins.forges.rest.convert import make_pull
from sm.plugins.forges.rest.failed_job import BYTES, Report, clean_log, find_outage, name_step
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.issues import RestIssues
from sm.plugins.forges.rest.protection import BranchRules, queue_up
from sm.plugins.forges.rest.pulls import RestPulls, send_review
from sm.plugins.forges.rest.reader import GONE, PAGE, READ, WRITE
from sm.plugins.forges.rest.shapes import JobShape, Merged
from sm.plugins.forges.rest.site import ForgeSite, RestSettings
from sm.plugins.forges.rest.status import PASSED, StatusPart
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import LimitedError
from sm.plugins.forges.web.limits import CORE

if TYPE_CHECKING:
    from sm.plugins.forges.rest.woodpecker import Woodpecker

LOG = "log"
EVENTS = {
    ReviewState.APPROVED: "APPROVE",
    ReviewState.CHANGES_REQUESTED: "REQUEST_CHANGES",
    ReviewState.COMMENTED: "COMMENT",
}
NOT_TOLD = (FORBIDDEN, *GONE)
UNFIT, OUTSIDE = 422, "must be part of the diff"
"""GitHub's refusal of a review with a remark on another line: "Pull request review thread line must
be part of the diff" (The-PR-Agent/pr-agent#592)."""
ALREADY = "already running"
"""GitHub's words for a workflow that is to run again and does: "This workflow is already running"
(cli/cli#9221)."""
AGENTS = "agents"
SCOPES, WORKFLOW = "x-oauth-scopes", "workflow"
"""The header with what a classic token is for, and what it needs to push workflows: "refusing to
allow a Personal Access Token to create or update workflow … without `workflow` scope"."""


class GithubIssues(RestIssues[GithubReader]):
    """Issues of one repository on GitHub."""

    def __init__(self, site: ForgeSite[GithubReader], checks: GithubChecks) -> None:
        """Ask nothing yet."""
        super().__init__(site)
        self._checks = checks

    def read_source(self, number: int) -> SourcedText:
        """Title and text of an issue, with who has saved them last: one query."""
        return self._checks.open_details().source(number)

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The last comments, with who has edited them last: one query."""
        return self._checks.open_details().read_comments(number, on_pull=False)


class GithubPulls(RestPulls[GithubReader]):
    """Pull requests of one repository on GitHub."""

    checks: GithubChecks

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The last comments, with who has edited them last: one query."""
        return self.checks.open_details().read_comments(number, on_pull=True)

    def read(self, number: int) -> PullRequest:
        """One pull request with its texts, its check with the failing log, and what holds it."""
        details = self.checks.open_details()
        try:
            reviews = details.reviews(number, self.site.settings.trusted)
        except UntoldReviewError:
            reviews = self.reader.whole_reviews(number)
        found = make_pull(self.reader.pull_shape(number), reviews, self.reader.comments(number))
        found = structs.replace(found, check=self.checks.read(found.head, found.base))
        node = details.read_queueing(number) if found.state is PullState.OPEN else None
        if node is None:
            return found
        found = read_hold(found, node, self.checks.rules(found.base))
        if node.dropped and found.hold is not Hold.QUEUED:
            words = f"it was removed from the merge queue: {one_line(node.dropped, 300)}"
            found = structs.replace(found, held="; ".join(filter(None, [words, found.held])))
        return found

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews with their texts, and who has edited each text last."""
        return self.checks.open_details().reviews(number, self.site.settings.trusted)

    def enqueue(self, pull: PullRequest) -> PullRequest | None:
        """Put it into the merge queue of its base; None if that has none.

        A second try finds it there.

        Raises:
            LimitedError: the forge takes no more queries for now.
            QueueUnknownError: GraphQL is not to be had, and REST would pass the queue by.

        """
        details = self.checks.open_details()
        try:
            node = details.read_queueing(pull.number)
        except LimitedError:
            raise
        except TemporaryError as error:
            raise QueueUnknownError(
                f"cannot learn whether '{pull.base}' has a merge queue: {error.message}"
            ) from None
        if node is None or not node.is_merge_queue_enabled:
            return None
        if node.is_in_merge_queue and node.head_ref_oid == pull.head:
            return read_hold(pull, node, self.checks.rules(pull.base))
        entry = details.enqueue(node, pull.head)
        return queue_up(pull, entry.position, entry.state)

    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head`.

        A remark on a line that the diff does not show stands in the text: for one, GitHub refuses
        the whole review.
        """
        try:
            return self._send_review(number, state, body, comments, head)
        except RefusedError as error:
            if not comments or error.status != UNFIT or OUTSIDE not in error.said:
                raise
        shown = find_shown(self.read_diff(number).decode("utf-8", "replace"))
        within = [one for one in comments if is_shown(one, shown)]
        within = within if len(within) < len(comments) else []  # GitHub knows better
        text = add_to_text(body, (one for one in comments if one not in within))
        return self._send_review(number, state, text, within, head)

    def _send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        remarks = [
            {"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body}
            for one in comments
        ]
        data: dict[str, object] = {"event": EVENTS[state], "commit_id": head, "body": body}
        data |= {"comments": remarks} if remarks else {}
        return send_review(self.reader, number, data, comments)

    def read_diff(self, number: int) -> bytes:
        """Return what a pull request changes, as a patch."""
        path, media = f"{self.reader.at}/pulls/{number}", "application/vnd.github.diff"
        return self.site.web.get(path, READ, media=media).body

    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have GitHub merge at exactly this head."""
        data = {"sha": pull.head, "merge_method": self.site.settings.merge_method}
        if message:
            title, _, rest = message.partition("\n")
            data |= {"commit_title": title, "commit_message": rest.strip()}
        path = f"{self.reader.at}/pulls/{pull.number}/merge"
        return self.site.web.write("PUT", path, WRITE, data).read(Merged).sha or ""


class GithubChecks(RestChecks[GithubReader]):
    """Checks of one repository on GitHub."""

    def open_details(self, rules: Callable[[str], BranchRules] | None = None) -> GithubDetails:
        """Return what reads many things at once; `rules` gives those of a branch."""
        return GithubDetails(self.reader, rules or self.rules, has_ci=self.site.settings.has_ci)

    def read_report(self, part: StatusPart, head: str) -> Report:
        """Report on a job of GitHub Actions, or else on the check."""
        if not part.has_log:
            return Report()
        job, notes = self._job(part), self._notes(part)
        outage = find_outage(job, notes)
        return Report("\n".join(notes), name_step(job), outage, partial(self._log, part))

    def _log(self, part: StatusPart) -> str:
        path = f"{self.reader.at}/actions/jobs/{part.id}/logs"
        return clean_log(self.site.web.download(path, LOG, BYTES))

    def _job(self, part: StatusPart) -> JobShape:
        """The job with its steps; an empty one if GitHub tells nothing of it."""
        path = f"{self.reader.at}/actions/jobs/{part.id}"
        answer = self.site.web.get(path, LOG, accept=NOT_TOLD)
        return JobShape(part.id) if answer.status in NOT_TOLD else answer.read(JobShape)

    def _notes(self, part: StatusPart) -> list[str]:
        """List what GitHub says of a job, such as that its runner was lost: no log has that."""
        path = f"{self.reader.at}/check-runs/{part.id}/annotations?per_page={PAGE}"
        answer = self.site.web.get(path, LOG, accept=NOT_TOLD)
        if answer.status in NOT_TOLD:
            return []
        found = answer.read_page(Annotation).found
        return [one.message for one in found if one.message and one.annotation_level == "failure"]

    def rerun_jobs(self, head: str) -> None:
        """Have GitHub Actions run again: what has failed, or everything if nothing has.

        Raises:
            AtWorkError: it is at work on the commit.
            UsageError: it has never run on it.

        """
        if (known := self.reader.actions_runs(head)) is None:
            raise UsageError("the token may not read GitHub Actions: give it access to Actions")
        runs = [one for one in known if one.is_ours]
        if not runs:
            raise UsageError(f"GitHub Actions has not run on {head[:12]}: start CI where it runs")
        if any(run.status != "completed" for run in runs):
            raise AtWorkError(f"GitHub Actions is at work on {head[:12]}: wait for it")
        failed = [run for run in runs if run.conclusion not in PASSED]
        what = "rerun-failed-jobs" if failed else "rerun"
        self.site.write(lambda: self._rerun(failed or runs, what))

    def _rerun(self, runs: Iterable[ActionsRun], what: str) -> None:
        for run in runs:
            path = f"{self.reader.at}/actions/runs/{run.id}/{what}"
            try:
                self.site.web.write("POST", path, WRITE, harmless=True)
            except RefusedError as error:
                if ALREADY in error.said:
                    raise AtWorkError("GitHub Actions is at work on it: wait for it") from None
                if error.status == FORBIDDEN:
                    raise UsageError(
                        f"the token may not run CI again ({error.said}): give it write access to "
                        "Actions"
                    ) from None
                raise


class GithubForge(RestForge[GithubReader]):
    """One repository on GitHub."""

    checks: GithubChecks
    looked_by = (CORE, BUCKET)

    def __init__(
        self, web: ForgeClient, settings: RestSettings, woodpecker: Woodpecker | None = None
    ) -> None:
        """Ask nothing yet; `woodpecker` is the repository's CI, if it is one."""
        labels = settings.labels
        site = ForgeSite(web, settings, lambda web, name: GithubReader(web, name, labels))
        checks = GithubChecks(site, woodpecker)
        super().__init__(site, GithubIssues(site, checks), GithubPulls(site, checks), checks)

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Return what is open and was closed lately; LimitedError while GraphQL takes no query."""
        self.reader.graphql.refuse_limited()
        return super().observe(since, start_checks=start_checks)

    def make_observer(self, *, anew: bool) -> GithubObserver:
        """Return what makes one observation of the repository."""
        details = self.checks.open_details(self.checks.remember_rules(anew=anew))
        return GithubObserver(self.reader, details, self.site.settings)

    def find_limits(self) -> Iterator[str]:
        """Yield what the token, or git's access, cannot do: check runs, workflows, approvals."""
        yield from self._find_push_limits()
        head = self._blind_at()
        if head and self.reader.actions_runs(head) is not None:
            yield (
                "the token may not read check runs, as no fine-grained one can: jobs of GitHub "
                "Actions and statuses count, and of other checks only whether they pass"
            )

    def _find_push_limits(self) -> Iterator[str]:
        """Yield what GitHub refuses because of who pushes. Only a classic token says its scopes."""
        settings = self.site.settings
        if settings.git_access != AGENTS:
            if self.checks.rules(settings.base).last_push:
                yield (
                    f"'{settings.base}' wants the last push approved by somebody else, and agents "
                    "push as you do: your approval may not count (forge.git_access: agents)"
                )
            return
        told = self.site.web.get(self.reader.at, READ).headers.get(SCOPES, "")
        scopes = {one.strip() for one in told.split(",") if one.strip()}
        if scopes and WORKFLOW not in scopes:
            yield (
                "the token has no scope 'workflow': GitHub refuses what an agent pushes that "
                "changes a file in .github/workflows"
            )

    def find_blindness(self) -> Iterator[str]:
        """Yield that there is no GraphQL, or that the token may read nothing of GitHub Actions."""
        try:
            self.reader.graphql.ask(queries.ask_pulls([1]))
        except NoGraphqlError as error:
            yield error.message
            return
        except SmError:
            pass  # a limit passes, and what else is wrong is told elsewhere
        head = self._blind_at()
        if head and self.reader.actions_runs(head) is None:
            yield (
                "the token may read neither check runs nor GitHub Actions, so no commit passes: "
                "give it read access to Actions"
            )

    def _blind_at(self) -> str:
        """The last commit of the base, if its check runs may not be read; else ''."""
        try:
            head = self.branch_head(self.site.settings.base) if self.site.settings.has_ci else ""
            return "" if not head or self.reader.may_read_runs(head) else head
        except SmError:
            return ""  # what is wrong there is told elsewhere


FILE = re.compile(r"^\+\+\+ (?:b/)?(.*?)\t?$")
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def find_shown(patch: str) -> dict[str, list[range]]:
    """The lines of each file's new side that a patch shows, with those around the changes."""
    found: dict[str, list[range]] = {}
    ranges: list[range] = []
    left = 0
    for line in patch.split("\n"):
        if left > 0:  # within a hunk a line of the file may look like a head
            left -= not line.startswith(("-", "\\"))
        elif head := FILE.match(line):
            ranges = found.setdefault(head[1], [])
        elif hunk := HUNK.match(line):
            first, left = int(hunk[1]), int(hunk[2] or 1)
            ranges.append(range(first, first + left))
    return found


def is_shown(remark: InlineComment, shown: Mapping[str, Iterable[range]]) -> bool:
    """Whether a remark is on one of these lines."""
    return any(remark.line in lines for lines in shown.get(remark.path, ()))


def add_to_text(body: str, remarks: Iterable[InlineComment]) -> str:
    """The text of a review with remarks on lines that it cannot be given as such."""
    said = (f"`{one.path}:{one.line}`: {one.body}" for one in remarks)
    return "\n\n".join(filter(None, [body, *said]))
