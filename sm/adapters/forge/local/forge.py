"""The forge in a folder: what any forge does, for people and projects that have none yet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sm.adapters.forge.local import issues, merge
from sm.adapters.forge.local.branches import Conflicts
from sm.adapters.forge.local.checks import Checks
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.local.pulls import Pulls, new_review
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.local.setup import create, read_settings
from sm.adapters.forge.model import (
    Batch,
    Check,
    Comment,
    InlineComment,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    Saved,
    SourcedText,
    authors_in,
)
from sm.base.errors import UsageError
from sm.config.forges import LocalSettings

if TYPE_CHECKING:
    from sm.adapters.forge.local.check_folder import Verdict
    from sm.config.schema import Ci, ProjectSettings

STAMP = "stamp"
"""The only validator of this forge."""
NO_CI = "the project has no ci.command: set one in its configuration"

__all__ = ["LocalForge", "create", "open_forge"]


def open_forge(project: ProjectSettings, config: Path | None = None) -> LocalForge:
    """The forge of `project`. `config` is the file that CI runners are to read; None: the usual.

    Raises:
        UsageError: there is no forge in the folder that the configuration names.

    """
    assert isinstance(project.forge, LocalSettings)
    path = Path(os.path.abspath(project.forge.path))  # noqa: PTH100 - links stay as written
    repository = BareRepository(read_settings(path))
    folder = ForgeFolder(path)
    checks = Checks(
        folder.checks, project.name, project.ci.command or None, project.ci.log_lines, config
    )
    conflicts = Conflicts(path / ".conflicts.json", repository)
    return LocalForge(
        folder,
        repository,
        checks,
        Pulls(folder, repository, checks, conflicts),
        merge.Rules(project.review.required, project.trusted),
        project.repo,
    )


class LocalForge(Struct, frozen=True):
    """Issues, pull requests, reviews, checks and merges of one project."""

    folder: ForgeFolder
    repository: BareRepository
    checks: Checks
    requests: Pulls
    rules: merge.Rules
    clone: Path

    # Observing

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Every issue and pull request. All is read each time: it is a folder, and heals so."""
        stamp = self.stamp()  # what changes while we read must count as changed since
        found, bad_issues = issues.read_issues(self.folder)
        pulls, bad_pulls = self.requests.read_all(logged=False)
        if start_checks:
            pulls = [self._with_check(pull) for pull in pulls]
            self.checks.prune({pull.head for pull in pulls if pull.state is PullState.OPEN})
        return Batch(
            issues=tuple(found),
            pulls=tuple(pulls),
            writers=tuple(sorted(self.find_writers(authors_in(found, pulls)))),
            problems=(*bad_issues, *bad_pulls),
            validators={STAMP: stamp},
        )

    def _with_check(self, pull: PullRequest) -> PullRequest:
        if pull.state is not PullState.OPEN:
            return pull
        return structs.replace(pull, check=self.checks.ensure(pull.head, logged=False))

    def is_stale(self, since: Batch) -> bool:
        """Whether any of its files has changed since; no process is started."""
        return since.validators.get(STAMP) != self.stamp()

    def stamp(self) -> str:
        """A short text that is another one whenever anything may have changed.

        What people do with an editor counts, and so does a CI runner that has died.
        """
        state = (self.folder.fingerprint(), self.repository.fingerprint(), self.checks.stalled())
        return hashlib.sha256(repr(state).encode()).hexdigest()[:20]

    def signs(self) -> tuple[Path, ...]:
        """Its stamp, and the folder that changes with every issue that is edited by hand."""
        return (self.folder.stamp, self.folder.path / "issues")

    def git_dirs(self) -> tuple[Path, ...]:
        """The bare repository beside it."""
        return (self.repository.path,)

    def pause_s(self) -> float:
        """None: a folder has no limits."""
        return 0.0

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """All of them, see `merge.find_writers`."""
        return merge.find_writers(authors)

    # Issues

    def issues(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """The issues in that state that have all of `labels`, oldest first; and the problems."""
        found, problems = issues.read_issues(self.folder)
        wanted = set(labels)
        chosen = [
            issue for issue in found if state in (None, issue.state) and wanted <= set(issue.labels)
        ]
        return chosen, problems

    def issue(self, number: int) -> Issue:
        """One issue; NotFoundError where there is none."""
        return issues.read_issue(self.folder, number)

    def read_source(self, number: int) -> SourcedText:
        """Title and text of an issue. A folder has no accounts: its author stands for all editors.

        All who may write to the folder can write in any name.
        """
        found = self.issue(number)
        saved = Saved(found.at, found.author)
        return SourcedText(found.title, found.body, found.author, saved, saved)

    def add_issue(
        self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str
    ) -> Issue:
        """File an issue."""
        return issues.add_issue(self.folder, title, body, tuple(labels), author)

    def edit_issue(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text, as far as they are given.

        Raises:
            UsageError: its text is not `instead_of` any more.

        """
        return issues.edit_issue(self.folder, number, title, body, instead_of)

    def labels(self) -> set[str]:
        """Every label that an issue has."""
        return {label for issue in issues.read_issues(self.folder)[0] for label in issue.labels}

    def close_issue(self, number: int) -> Issue:
        """Close an issue; one that is closed stays so."""
        return issues.set_issue_state(self.folder, number, IssueState.CLOSED)

    def reopen_issue(self, number: int) -> Issue:
        """Open an issue again; one that is open stays so."""
        return issues.set_issue_state(self.folder, number, IssueState.OPEN)

    def add_label(self, number: int, label: str) -> Issue:
        """Give an issue a label; one that it has stays."""
        return issues.change_labels(self.folder, number, add=label)

    def remove_label(self, number: int, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        return issues.change_labels(self.folder, number, remove=label)

    def read_comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments. A folder has no accounts: who edits is the author."""
        return (self.pull(number) if on_pull else self.issue(number)).comments

    def comment(
        self, number: int, body: str, *, author: str, marker: str = "", on_pull: bool = False
    ) -> bool:
        """Comment on an issue or pull request; False where one with `marker` is there already."""
        return issues.add_comment(self.folder, number, body, author, marker)

    # Pull requests

    def pulls(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """The pull requests in that state, oldest first; and the problems."""
        found, problems = self.requests.read_all()
        return [pull for pull in found if state in (None, pull.state)], problems

    def is_pull(self, number: int) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither."""
        return self.folder.kind_of(number) == "pulls"

    def pull(self, number: int) -> PullRequest:
        """One pull request; NotFoundError where there is none."""
        return self.requests.read(number)

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews of a pull request. A folder has no accounts: who edits is the reviewer."""
        return tuple(map(_save_as_author, self.requests.read(number).reviews))

    def pull_for(self, branch: str) -> PullRequest | None:
        """The newest pull request of `branch`."""
        found = [pull for pull in self.requests.read_all()[0] if pull.branch == branch]
        return found[-1] if found else None

    def open_pull(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; while it is on offer, the same one is returned.

        Raises:
            NotFoundError: one of the branches has not been pushed.
            NothingToMergeError: the branch has no commits of its own.

        """
        return self.requests.open(branch, base, title, body, author)

    def close_pull(self, number: int) -> PullRequest:
        """Close a pull request unmerged; PullClosedError where it is merged."""
        return self.requests.close(number)

    def submit_review(
        self,
        number: int,
        state: ReviewState,
        body: str = "",
        comments: Iterable[InlineComment] = (),
        *,
        author: str,
        head: str = "",
    ) -> Review:
        """Review the commit `head`, or else the branch's current one."""
        head = head and self.repository.resolve(head)
        review = new_review(state, body, tuple(comments), author, head)
        return self.requests.add_review(number, review)

    def diff(self, number: int, *options: str) -> bytes:
        """What a pull request changes, as `git diff` shows it."""
        pull = self.pull(number)
        return self.repository.diff(_base(pull), pull.head, *options)

    def files_changed(self, number: int, head: str = "") -> list[str]:
        """The files that a pull request changes up to the commit `head`, or else its last one."""
        pull = self.pull(number)
        commit = self.repository.resolve(head) if head else pull.head
        return self.repository.files_changed(_base(pull), commit)

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        """Merge at `head`, or else at the branch's current commit; a merged one is returned.

        Raises:
            MergeRefusedError: it may not be merged; the subclass says why.

        """
        wish = merge.Wish(author, head and self.repository.resolve(head), message)
        return merge.merge(self.requests, number, wish, self.rules)

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' where there is no such branch."""
        return self.repository.heads().get(branch, "")

    # Checks

    def check(self, head: str) -> Check:
        """What CI says of a commit."""
        return self.checks.check(head)

    def rerun_check(self, head: str) -> None:
        """Have CI run on a commit again, whatever it said before.

        Raises:
            AtWorkError: it is at work on it.
            UsageError: no CI is configured.

        """
        if not self.checks.command:
            raise UsageError(NO_CI)
        self.checks.rerun(head)
        self.folder.touch()

    def run_check(self, head: str, ci: Ci, work: Path, *, locked: bool = False) -> Verdict | None:
        """Run the CI command on a commit, in the private folder `work`; returns what came of it.

        None where another runner is at it; `locked`: we have inherited that runner's lock.

        Raises:
            UsageError: no CI is configured.

        """
        from sm.adapters.forge.local.runner import Job, run_if_free

        if not ci.command:
            raise UsageError(NO_CI)
        job = Job(ci.command, ci.timeout_s, self.repository, work, self.clone)
        verdict = run_if_free(job, self.checks, head, locked=locked)
        self.folder.touch()
        return verdict


def _base(pull: PullRequest) -> str:
    """What a pull request is compared with."""
    return f"{pull.merged_as}^1" if pull.merged_as else f"refs/heads/{pull.base}"


def _save_as_author(review: Review) -> Review:
    """The review as edited by its author alone."""
    remarks = (structs.replace(one, editor=review.author) for one in review.comments)
    return structs.replace(review, comments=tuple(remarks), editor=review.author)
