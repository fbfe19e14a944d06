"""Forgejo and Gitea: what they do otherwise than GitHub, and than one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from sm.adapters.forge.errors import AtWorkError, RefusedError
from sm.adapters.forge.model import InlineComment, PullRequest, Review, ReviewState
from sm.base.errors import UsageError
from sm.plugins.forges.gitea.observation import GiteaObserver
from sm.plugins.forges.gitea.reader import NEEDED, GiteaReader
from sm.plugins.forges.gitea.shapes import ActionRun
from sm.plugins.forges.rest.checks import RestChecks
from sm.plugins.forges.rest.convert import make_pull
from sm.plugins.forges.rest.failed_job import BYTES, Report, clean_log, name_step
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.issues import RestIssues
from sm.plugins.forges.rest.protection import hold_by_rules, is_behind
from sm.plugins.forges.rest.pulls import BEHIND, RestPulls, send_review
from sm.plugins.forges.rest.reader import GONE, READ, WRITE
from sm.plugins.forges.rest.shapes import FAST_FORWARD, Jobs, JobShape, Run
from sm.plugins.forges.rest.site import ForgeSite, RestSettings
from sm.plugins.forges.rest.status import PASSED, StatusPart
from sm.plugins.forges.web.client import ForgeClient

if TYPE_CHECKING:
    from sm.plugins.forges.rest.woodpecker import Woodpecker

LOG = "log"
EVENTS = {
    ReviewState.APPROVED: "APPROVED",
    ReviewState.CHANGES_REQUESTED: "REQUEST_CHANGES",
    ReviewState.COMMENTED: "COMMENT",
}
"""Any other word would make a draft of the review, without an error."""
NOT_ALLOWED = 405
FAILED = "failure"
EVENT = re.compile(r" \([a-z_]{1,40}\)\Z")
"""Event behind the job in the name of a status."""
JOB_PAGE = re.compile(r"/actions/runs/[0-9]{1,18}/jobs/[0-9]{1,9}\Z")
"""End of the address in a status of their own CI; with `/logs` behind it, it is the log.

Asked of Gitea 1.26.0-dev, and of Forgejo 12.0.0-dev, which gives a log in no other way.
"""
FORBIDDEN = 403
OWNER_ALONE = "the forge shows logs to an account that owns the repository (docs/FORGES.md)"
OVER = ("completed", "success", "failure", "cancelled", "skipped")
NOT_OFFERED = (400, 403, *GONE)
"""Older servers cannot run CI again."""


class GiteaPulls(RestPulls[GiteaReader]):
    """Pull requests of one repository on Forgejo or Gitea."""

    def read(self, number: int) -> PullRequest:
        """One pull request with its texts, its check with the failing log, and what holds it."""
        shape = self.reader.pull_shape(number)
        found = make_pull(shape, self.reader.whole_reviews(number), self.reader.comments(number))
        found = structs.replace(found, check=self.checks.read(found.head, found.base))
        return hold_by_rules(found, shape, self.checks.rules(found.base))

    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head`."""
        remarks = [
            {"path": one.path, "new_position": one.line, "body": one.body} for one in comments
        ]
        data: dict[str, object] = {"event": EVENTS[state], "commit_id": head, "body": body}
        return send_review(self.reader, number, data | {"comments": remarks}, comments)

    def read_diff(self, number: int) -> bytes:
        """Return what a pull request changes, as a patch."""
        self.reader.pull_shape(number)
        path = f"{self.reader.at}/pulls/{number}.diff"
        return self.site.web.get(path, READ, media="text/plain").body

    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have it merge at exactly this head. It is a POST, but a second one finds it merged.

        Raises:
            RefusedError: it does not merge. While something is open that the pull request depends
                on, or where it cannot be fast-forwarded as it should, the forge would answer with
                an error of its own, and without a word.

        """
        if needed := ", ".join(self.reader.needed(pull.number)[:NEEDED]):
            said = f"it depends on {needed}, still open"
            raise RefusedError(f"the merge is refused: {said}", NOT_ALLOWED, said)
        method = self.site.settings.merge_method
        if method == FAST_FORWARD and is_behind(self.reader.pull_shape(pull.number)):
            raise RefusedError(f"the merge is refused: {BEHIND}", NOT_ALLOWED, BEHIND)
        data: dict[str, object] = {"Do": method, "head_commit_id": pull.head}
        if message:
            title, _, rest = message.partition("\n")
            data |= {"MergeTitleField": title, "MergeMessageField": rest.strip()}
        path = f"{self.reader.at}/pulls/{pull.number}/merge"
        self.site.web.write("POST", path, WRITE, data, harmless=True)
        return ""


class GiteaChecks(RestChecks[GiteaReader]):
    """Checks of one repository on Forgejo or Gitea."""

    def read_report(self, part: StatusPart, head: str) -> Report:
        """Report on a job of their own CI, or else on the status."""
        if not part.has_log:
            return Report()
        try:
            job = self._find_job(part, head)
        except RefusedError as error:
            if error.status not in NOT_OFFERED:
                raise
            return Report(read_log=partial(self._page_log, part, error))
        return Report(step=name_step(job), read_log=partial(self._log, job)) if job else Report()

    def _page_log(self, part: StatusPart, error: RefusedError) -> str:
        """The log as the page of the job has it, if everybody may read the repository.

        Raises:
            RefusedError: it is not for everybody; then what the interface has said counts.

        """
        url = part.url.rstrip("/")
        if not JOB_PAGE.search(url):
            raise error
        try:
            return clean_log(self.site.web.download_page(f"{url}/logs", BYTES))
        except RefusedError:
            raise error from None

    def _log(self, job: JobShape) -> str:
        path = f"{self.reader.at}/actions/jobs/{job.id}/logs"
        return clean_log(self.site.web.download(path, LOG, BYTES))

    def _find_job(self, part: StatusPart, head: str) -> JobShape | None:
        """The failed job that the status is of."""
        found: list[JobShape] = []
        for run in self._list_runs(head):
            answer = self.site.web.get(f"{self.reader.at}/actions/runs/{run.id}/jobs", LOG)
            jobs = answer.read(Jobs | list[JobShape])  # type: ignore[arg-type]  # a union is no type
            found += jobs.jobs if isinstance(jobs, Jobs) else jobs
        mine = [
            job for job in found if FAILED in (job.status, job.conclusion) and _is_of(job, part)
        ]
        return max(mine, key=lambda job: len(job.name), default=None)

    def _list_runs(self, head: str) -> list[ActionRun]:
        """List the runs of workflows on the commit.

        Raises:
            RefusedError: it is told to others alone; it says to whom.

        """
        try:
            return self.reader.own_runs(head, LOG)
        except RefusedError as error:
            if error.status != FORBIDDEN:
                raise
            message = f"{error.message}; {OWNER_ALONE}"
            raise RefusedError(message, error.status, error.said) from error

    def rerun_jobs(self, head: str) -> None:
        """Have their own CI run again what has failed, or everything if nothing has.

        Gitea has it since 1.26, Forgejo, which can do so only with whole runs, since 17.

        Raises:
            AtWorkError: it is at work on the commit.
            UsageError: it has never run on it, or the server is older.

        """
        refusal = UsageError(
            f"CI cannot be run again on {head[:12]} from here: do it on the forge's page, or push"
        )
        runs = self.reader.own_runs(head, WRITE, NOT_OFFERED)
        if not all(map(_is_over, runs)):
            raise AtWorkError(f"CI is at work on {head[:12]}: wait for it")
        if not runs:
            raise refusal
        failed = [run for run in runs if (run.conclusion or run.status) not in PASSED]
        is_divisible = bool(failed) and self.site.settings.kind == "gitea"
        what = "rerun-failed-jobs" if is_divisible else "rerun"
        for run in failed or runs:
            path = f"{self.reader.at}/actions/runs/{run.id}/{what}"
            rerun = partial(self.site.web.write, "POST", path, WRITE, accept=NOT_OFFERED)
            answer = self.site.write(partial(rerun, harmless=True))
            if answer.status in NOT_OFFERED:  # older servers
                raise refusal


class GiteaForge(RestForge[GiteaReader]):
    """One repository on Forgejo or Gitea."""

    def __init__(
        self, web: ForgeClient, settings: RestSettings, woodpecker: Woodpecker | None = None
    ) -> None:
        """Ask nothing yet; `woodpecker` is the repository's CI, if it is one."""
        site = ForgeSite(web, settings, GiteaReader)
        checks = GiteaChecks(site, woodpecker)
        self._has_actions = settings.has_ci and woodpecker is None
        super().__init__(site, RestIssues[GiteaReader](site), GiteaPulls(site, checks), checks)

    def find_limits(self) -> Iterator[str]:
        """Yield that the account may not list what CI has run, as on Gitea all but the owner."""
        if not self._has_actions:
            return
        path = f"{self.reader.at}/actions/runs"
        if self.site.web.get(path, READ, {"limit": 1}, accept=NOT_OFFERED).status == FORBIDDEN:
            yield (
                "the account does not own the repository, and Gitea tells nobody else what its "
                "Actions have run: agents get a log of a failure only if everybody may read the "
                "repository, and sm cannot run it again"
            )

    def make_observer(self, *, anew: bool) -> GiteaObserver:
        """Return what makes one observation of the repository."""
        return GiteaObserver(self.reader, self.site.settings, self.checks.remember_rules(anew=anew))


def _is_of(job: JobShape, part: StatusPart) -> bool:
    """Whether a status is of that job: it is called `WORKFLOW / JOB (EVENT)`."""
    name = EVENT.sub("", part.name)
    return job.name in (name, part.name) or name.endswith(f" / {job.name}")


def _is_over(run: Run) -> bool:
    """Whether a run has ended. Forgejo has no conclusion, and says it with the status."""
    return run.conclusion is not None or run.status in OVER
