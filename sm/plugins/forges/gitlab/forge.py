"""GitLab: what it does otherwise than the forges with an interface like GitHub's."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from sm.adapters.forge.errors import BaseMovedError, HeadMovedError, NotFoundError, RefusedError
from sm.adapters.forge.model import Comment, Hold, InlineComment, PullRequest, Review, ReviewState
from sm.base.errors import SmError
from sm.plugins.forges.gitlab import ci
from sm.plugins.forges.gitlab.convert import join_diffs
from sm.plugins.forges.gitlab.hold import RUNNING, UNSURE, explain
from sm.plugins.forges.gitlab.observation import GitlabObserver
from sm.plugins.forges.gitlab.quick_actions import ASK_ME, REQUEST_CHANGES, defuse
from sm.plugins.forges.gitlab.reader import GitlabReader
from sm.plugins.forges.gitlab.shapes import DiffRefs, MergeRequest, Note, Reviewer
from sm.plugins.forges.rest.checks import RestChecks
from sm.plugins.forges.rest.failed_job import BYTES, Report, clean_trace
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.issues import RestIssues
from sm.plugins.forges.rest.pulls import RestPulls
from sm.plugins.forges.rest.reader import COMMENT, GONE, READ, WRITE
from sm.plugins.forges.rest.site import ForgeSite, RestSettings
from sm.plugins.forges.rest.status import StatusPart
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.client import ForgeClient

if TYPE_CHECKING:
    from sm.plugins.forges.rest.woodpecker import Woodpecker

LOG = "log"
LOOKS = 8
UNSURE_S = 1.0
"""Times, and seconds apart, that GitLab is asked if it knows whether a merge is possible."""
NOT_YOU = 401
"""GitLab's answer to an account without the right, and to a wrong token as well."""
REFUSALS = (NOT_YOU, 400, 405, 406, 422)
"""Its other answers if a merge is not possible, or not yet: which of them differs by version."""


class GitlabPulls(RestPulls[GitlabReader]):
    """Pull requests of one repository on GitLab."""

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The comments that are no part of a review."""
        return self.reader.whole_pull(number).comments

    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head`: by threads, a comment, and a verdict at the end.

        Raises:
            HeadMovedError: it is not the last commit, and GitLab knows reviews of no other.

        """
        request = self.reader.request(number)
        if request.sha != head:
            raise HeadMovedError(f"'{request.source_branch}' is not at {head[:12]} any more")
        at = f"{self.reader.at}/merge_requests/{number}"
        for one in comments:
            self._begin_thread(at, one, request.diff_refs or DiffRefs())
        ident = ""
        if body.strip():
            data = {"body": defuse(body)}
            ident = str(self.site.web.write("POST", f"{at}/notes", COMMENT, data).read(Note).id)
        if state is ReviewState.APPROVED:
            self._approve(number, at, head)
        elif state is ReviewState.CHANGES_REQUESTED:
            self._request_changes(number, at)
        account = self.reader.account
        given = [one for one in self.reader.whole_reviews(number) if one.author == account]
        if given and given[-1].state is state:
            return given[-1]
        return Review(ident, account, time.time(), state, head, body, tuple(comments))

    def _begin_thread(self, at: str, remark: InlineComment, refs: DiffRefs) -> None:
        """Say something of a line. GitLab takes only lines that a diff shows as new."""
        position = {
            "position_type": "text",
            "base_sha": refs.base_sha,
            "start_sha": refs.start_sha,
            "head_sha": refs.head_sha,
            "new_path": remark.path,
            "old_path": remark.path,
            "new_line": remark.line,
        }
        path, data = f"{at}/discussions", {"body": defuse(remark.body), "position": position}
        if self.site.web.write("POST", path, COMMENT, data, accept=(400,)).status == 400:
            said = f"{remark.path}:{remark.line}: {remark.body}"
            self.site.web.write("POST", path, COMMENT, {"body": defuse(said)})

    def _approve(self, number: int, at: str, head: str) -> None:
        answer = self.site.web.write(
            "POST", f"{at}/approve", WRITE, {"sha": head}, accept=(NOT_YOU,), harmless=True
        )
        if answer.status == NOT_YOU:  # also if it was done already
            name = self.reader.account
            given = {(one.state, one.author) for one in self.reader.reviews(number)}
            if (ReviewState.APPROVED, name) not in given:
                said = f"GitLab does not let '{name}' approve pull request {number}"
                raise RefusedError(said, NOT_YOU, said)

    def _request_changes(self, number: int, at: str) -> None:
        """GitLab takes this only of a reviewer, and only as a command in a comment."""
        name = self.reader.account

        def state() -> str:
            found = self.reader.entries(f"/merge_requests/{number}/reviewers", Reviewer)
            return next((one.state for one in found if one.user.username == name), "")

        for command in (REQUEST_CHANGES,) if state() else (ASK_ME, REQUEST_CHANGES):
            self.site.web.write("POST", f"{at}/notes", COMMENT, {"body": command}, harmless=True)
        if state() != "requested_changes":
            raise SmError(
                f"GitLab has not taken the request for changes of '{name}': make it on the page "
                f"of merge request {number}"
            )

    def read_diff(self, number: int) -> bytes:
        """Return what a pull request changes, as a patch."""
        self.reader.request(number)
        path = f"{self.reader.at}/merge_requests/{number}/raw_diffs"
        answer = self.site.web.get(path, READ, media="text/plain", accept=GONE)
        if answer.status in GONE:  # servers before 17.9
            return join_diffs(self.reader.diffs(number)).encode()
        return answer.body

    def enqueue(self, pull: PullRequest) -> PullRequest | None:
        """Put it into the merge train of its base at exactly this head; None if it has none.

        What GitLab is to merge by itself already, is left to it.
        """
        if pull.hold is Hold.QUEUED:
            return pull
        if not self.reader.has_merge_trains():
            return None
        path = f"{self.reader.at}/merge_trains/merge_requests/{pull.number}"
        try:
            answer = self._insist(pull.number, "POST", path, self._wishes(pull))
        except RefusedError:
            now = self.reader.pull(pull.number)
            if now.hold is Hold.QUEUED and now.head == pull.head:
                return now  # by a try whose answer was lost
            raise
        if answer is None:
            return None
        return structs.replace(pull, hold=Hold.QUEUED, held="it is in the merge train")

    def _wishes(self, pull: PullRequest) -> dict[str, object]:
        """Return how it is to be merged; the rest is the project's setting."""
        squash = {"squash": True} if self.site.settings.merge_method == "squash" else {}
        return {"sha": pull.head, **squash}

    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have GitLab merge at exactly this head, once it has found out whether that is possible.

        Raises:
            RefusedError: it does not merge; in its words and in ours.
            BaseMovedError: it is still finding out, or its pipeline runs.

        """
        data = self._wishes(pull)
        if message:
            data |= {"merge_commit_message": message, "squash_commit_message": message}
        path = f"{self.reader.at}/merge_requests/{pull.number}/merge"
        answer = self._insist(pull.number, "PUT", path, data)
        return answer.read(MergeRequest).merged_as if answer else ""

    def _insist(
        self, number: int, method: str, path: str, data: dict[str, object]
    ) -> HttpAnswer | None:
        """Ask for a merge until GitLab knows whether it is possible; None if it is merged already.

        Raises:
            RefusedError: it is not.
            BaseMovedError: GitLab does not know it yet.

        """
        for look in range(LOOKS):
            if look:
                time.sleep(UNSURE_S)
            answer = self.site.web.write(method, path, WRITE, data, accept=REFUSALS, harmless=True)
            if answer.status < 300:
                return answer
            now = self.reader.request(number)
            if now.state == "merged":
                return None
            if answer.status == NOT_YOU or now.standing not in (RUNNING, *UNSURE):
                role = f"the token's account may not merge into '{now.target_branch}'"
                said = f"{answer.said}: {role}" if answer.status == NOT_YOU else ""
                said = said or explain(answer.said, now)
                raise RefusedError(f"the merge is refused: {said}", answer.status, said)
            if now.standing == RUNNING:
                raise BaseMovedError(f"the pipeline of pull request {number} is still running")
        raise BaseMovedError(
            f"GitLab is still finding out whether it can merge pull request {number}"
        )


class GitlabChecks(RestChecks[GitlabReader]):
    """Checks of one repository on GitLab."""

    def read_report(self, part: StatusPart, head: str) -> Report:
        """The log of a job, or else what GitLab or another program says of it."""
        return Report(read_log=partial(self._log, part)) if part.has_log else Report()

    def _log(self, part: StatusPart) -> str:
        trace = self.site.web.download(f"{self.reader.at}/jobs/{part.id}/trace", LOG, BYTES)
        return clean_trace(part.text.encode() + b"\n" * bool(part.text) + trace)

    def rerun_jobs(self, head: str) -> None:
        """Have GitLab run CI again: what has failed, or everything if nothing has."""
        self.site.write(lambda: ci.rerun(self.reader, head))


class GitlabForge(RestForge[GitlabReader]):
    """One repository on GitLab."""

    def __init__(
        self, web: ForgeClient, settings: RestSettings, woodpecker: Woodpecker | None = None
    ) -> None:
        """Ask nothing yet; `woodpecker` is the repository's CI, if it is one."""
        site = ForgeSite(web, settings, GitlabReader)
        checks = GitlabChecks(site, woodpecker)
        super().__init__(site, RestIssues[GitlabReader](site), GitlabPulls(site, checks), checks)

    def make_observer(self, *, anew: bool) -> GitlabObserver:
        """Return what makes one observation of the repository."""
        return GitlabObserver(self.reader, self.site.settings)

    def is_pull(self, number: int) -> bool:
        """Whether there is a pull request of that number and no issue."""
        try:
            self.reader.issue_shape(number)
        except NotFoundError:
            try:
                self.reader.request(number)
            except NotFoundError:
                raise NotFoundError(
                    f"there is no issue or pull request {number} in '{self.reader.repository}'"
                ) from None
            return True
        return False
