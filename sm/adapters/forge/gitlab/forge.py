"""GitLab: what it does otherwise than the forges with an interface like GitHub's."""

from __future__ import annotations

import time

from sm.adapters.forge.combine import Part
from sm.adapters.forge.errors import BaseMovedError, HeadMovedError, NotFoundError
from sm.adapters.forge.gitlab import ci
from sm.adapters.forge.gitlab.commands import ASK_ME, REQUEST_CHANGES, defuse
from sm.adapters.forge.gitlab.convert import UNSURE, join_diffs
from sm.adapters.forge.gitlab.log import clean_trace
from sm.adapters.forge.gitlab.observe import Observer
from sm.adapters.forge.gitlab.reader import GitlabReader
from sm.adapters.forge.gitlab.shapes import DiffRefs, MergeRequest, Note, Reviewer
from sm.adapters.forge.model import InlineComment, PullRequest, Review, ReviewState
from sm.adapters.forge.rest.forge import RestForge
from sm.adapters.forge.rest.log import BYTES
from sm.adapters.forge.rest.reader import COMMENT, GONE, READ, WRITE, Reader
from sm.adapters.forge.rest.report import Report
from sm.adapters.forge.web.errors import RefusedError
from sm.errors import SmError

LOG = "log"
NO_LOG = (403, *GONE)
LOOKS = 8
UNSURE_S = 1.0
"""How often GitLab is asked whether it has found out if a merge is possible, and how far apart."""
NOT_NOW = (405, 406, 422)
"""GitLab's answers if a merge is not possible, or not yet: which of them differs by version."""
NOT_YOU = 401
"""Its answer to an account without the right, and to a wrong token as well."""
REASONS = {
    "draft_status": "it is a draft",
    "discussions_not_resolved": "a thread is not resolved",
    "ci_must_pass": "its pipeline has to pass",
    "ci_still_running": "its pipeline is still running",
    "not_approved": "the project asks for an approval that is missing",
    "requested_changes": "a reviewer wants changes",
    "merge_request_blocked": "another merge request blocks it",
    "need_rebase": "it has to be rebased",
    "conflict": "it conflicts",
    "commits_status": "its branch is gone or empty",
    "status_checks_must_pass": "a status check has to pass",
    "security_policy_violations": "a security policy forbids it",
    "merge_time": "it may not be merged before a certain time",
    "locked_paths": "a file is locked",
    "locked_lfs_files": "a file is locked",
    "jira_association_missing": "it names no Jira issue",
    "title_regex": "its title has not the form that the project asks for",
    "not_open": "it is not open",
}
"""What GitLab's words for what is in the way mean."""


class GitlabForge(RestForge):
    """One repository on GitLab."""

    reader: GitlabReader
    """What `make_reader` makes."""

    def make_reader(self, repository: str) -> Reader:
        """What reads the repository of that name."""
        return GitlabReader(self.web, repository)

    def make_observer(self, *, anew: bool) -> Observer:
        """What makes one observation of the repository."""
        return Observer(self.reader, self.settings)

    # Pull requests

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
            ident = str(self.web.write("POST", f"{at}/notes", COMMENT, data).read(Note).id)
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
        if self.web.write("POST", path, COMMENT, data, accept=(400,)).status == 400:
            said = f"{remark.path}:{remark.line}: {remark.body}"
            self.web.write("POST", path, COMMENT, {"body": defuse(said)})

    def _approve(self, number: int, at: str, head: str) -> None:
        answer = self.web.write(
            "POST", f"{at}/approve", WRITE, {"sha": head}, accept=(NOT_YOU,), harmless=True
        )
        if answer.status == NOT_YOU:  # also if it was done already
            name = self.reader.account
            given = {(one.state, one.author) for one in self.reader.reviews(number)}
            if (ReviewState.APPROVED, name) not in given:
                raise SmError(f"GitLab does not let '{name}' approve pull request {number}")

    def _request_changes(self, number: int, at: str) -> None:
        """GitLab takes this only of a reviewer, and only as a command in a comment."""
        name = self.reader.account

        def state() -> str:
            found = self.reader.entries(f"/merge_requests/{number}/reviewers", Reviewer)
            return next((one.state for one in found if one.user.username == name), "")

        for command in (REQUEST_CHANGES,) if state() else (ASK_ME, REQUEST_CHANGES):
            self.web.write("POST", f"{at}/notes", COMMENT, {"body": command}, harmless=True)
        if state() != "requested_changes":
            raise SmError(
                f"GitLab has not taken the request for changes of '{name}': make it on the page "
                f"of merge request {number}"
            )

    def read_diff(self, number: int) -> str:
        """What a pull request changes, as a patch."""
        self.reader.request(number)
        path = f"{self.reader.at}/merge_requests/{number}/raw_diffs"
        answer = self.web.get(path, READ, media="text/plain", accept=GONE)
        if answer.status in GONE:  # servers before 17.9
            return join_diffs(self.reader.diffs(number))
        return answer.body.decode("utf-8", "replace")

    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have GitLab merge at exactly this head, once it has found out whether that is possible.

        How it merges is the project's setting; `squash` can be asked for.

        Raises:
            RefusedError: it does not merge; in its words and in ours.
            BaseMovedError: it is still finding out.

        """
        data: dict[str, object] = {"sha": pull.head}
        if self.settings.merge_method == "squash":
            data["squash"] = True
        if message:
            data |= {"merge_commit_message": message, "squash_commit_message": message}
        path = f"{self.reader.at}/merge_requests/{pull.number}/merge"
        for look in range(LOOKS):
            if look:
                time.sleep(UNSURE_S)
            answer = self.web.write("PUT", path, WRITE, data, accept=(NOT_YOU, *NOT_NOW))
            if answer.status < 300:
                return answer.read(MergeRequest).merged_as
            now = self.reader.request(pull.number)
            if now.state == "merged":
                return now.merged_as
            if answer.status == NOT_YOU or now.standing not in UNSURE:
                said = _explain(answer.status, answer.said, now)
                raise RefusedError(f"the merge is refused: {said}", answer.status, said)
        raise BaseMovedError(
            f"GitLab is still finding out whether it can merge pull request {pull.number}"
        )

    # Checks

    def read_report(self, part: Part, head: str) -> Report:
        """The log of a job, or else what GitLab or another program says of it."""
        said = (part.text or f"no log is to be had here: see {part.url}").encode()
        if part.has_log:
            try:
                path = f"{self.reader.at}/jobs/{part.id}/trace"
                trace = self.web.download(path, LOG, BYTES)
                said = part.text.encode() + b"\n" * bool(part.text) + trace
            except RefusedError as error:
                if error.status not in NO_LOG:
                    raise
        return Report(clean_trace(said))

    def rerun_jobs(self, head: str) -> None:
        """Have GitLab run CI again: what has failed, or everything if nothing has."""
        self._written(lambda: ci.rerun(self.reader, head))


def _explain(status: int, said: str, now: MergeRequest) -> str:
    """What is in the way of a merge, after GitLab's own words."""
    if status == NOT_YOU:
        return f"{said}: the token's account may not merge into '{now.target_branch}'"
    reason = REASONS.get(now.standing, now.merge_error or now.standing)
    return f"{said}: {reason}" if reason else said
