"""Acts of a person on a pull request: reviews, merges, checkouts, another run of CI.

A verdict and a merge are about the commit that was shown, and no other. A review goes by an account
of the person's own, if one is set. Of two people who give a verdict at once, one is first, and the
other is told who that was.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.errors import HeadMovedError, NotFoundError, PullClosedError, RefusedError
from sm.adapters.forge.model import (
    Hold,
    InlineComment,
    PullRequest,
    PullState,
    Review,
    ReviewState,
)
from sm.adapters.forge.protocol import Pulls
from sm.adapters.forge.trust import find_last_verdict
from sm.adapters.git_call import NoSuchBranchError, NotARepositoryError
from sm.adapters.process import CommandError
from sm.base.errors import AnsweredError, SmError, TemporaryError, UsageError
from sm.base.issue_id import IssueId, check_pull
from sm.base.text import format_count, one_line
from sm.config import duration
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import last_snapshot
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store import lock

LOOKS = 3
"""Tries to read a diff, if a new commit comes each time."""
FULL = 40
"""Digits of a commit's whole name."""


class PullChange(Struct, frozen=True):
    """Change of a pull request, as a patch, and its commit."""

    head: str
    patch: bytes


def read_change(project: Project, number: int, *, limit: int | None = None) -> PullChange:
    """Read what the pull request changes on the forge: commit and patch are of one look.

    With a `limit`, only its first bytes.

    Raises:
        TemporaryError: it gets new commits all the time.
        SmError: the forge cannot tell.

    """
    pulls = project.forge.pulls
    head = pulls.read_head(number)
    for _ in range(LOOKS):
        patch = pulls.diff(number, limit=limit)
        # A forge gives the patch of the branch's present commit, so we check again which that is.
        before, head = head, pulls.read_head(number)
        if before == head:
            return PullChange(head, patch)
    raise TemporaryError(f"pull request {number} has just got another commit: look again")


def tell_news(pulls: Pulls, number: int, shown: str) -> str:
    """Say what the pull request has got since the commit `shown`, such as `1 new commit`.

    '' for nothing.

    Raises:
        NotFoundError: the beginning of a commit's name that names none.
        SmError: the forge cannot tell.

    """
    if pulls.read_head(number).startswith(shown):
        return ""
    try:
        count = pulls.count_commits(number, shown)
    except NotFoundError:
        if len(shown) < FULL:
            raise
        count = 0  # it was taken back, and the forge has forgotten it
    return format_count(count, "new commit") if count else "other commits"


def check_head(pulls: Pulls, number: int, shown: str) -> str:
    """Return the whole name of the commit `shown`, if it is the pull request's last one.

    Raises:
        HeadMovedError: it has other commits by now.

    """
    head = pulls.read_head(number)
    if head.startswith(shown):
        return head
    news = tell_news(pulls, number, shown)
    raise HeadMovedError(
        f"{news or 'other commits'} in pull request {number}, which is not at {shown[:12]} any "
        f"more: nothing was done. Look at it again (sm pr diff {number})",
        news,
    )


def review(
    project: Project,
    number: int,
    verdict: ReviewState,
    text: str = "",
    remarks: Iterable[InlineComment] = (),
    *,
    author: str,
    head: str = "",
    by_agent: bool = False,
    known: str | None = None,
) -> Review:
    """Review the commit `head` of a pull request, by default its last one.

    An agent never speaks by a person's account: `by_agent` takes that of sm. `known` is the id of
    the last verdict that the person could see, '' for none; None: the last one there is now.

    Raises:
        HeadMovedError: it has other commits by now, and a verdict is of the last one.
        AnsweredError: somebody has given a verdict that the person could not see.
        UsageError: the forge takes no verdict from the account that sm has there.
        SmError: the forge does not take it for another reason, or does not answer.

    """
    forge = project.forge if by_agent else project.reviewers_forge or project.forge
    with _alone(project, number, verdict, known):
        if head and verdict is not ReviewState.COMMENTED:
            head = check_head(project.forge.pulls, number, head)
        try:
            return forge.pulls.review(number, verdict, text, remarks, author=author, head=head)
        except RefusedError as error:
            settings = project.settings.forge
            is_ours = not by_agent and settings.reviewer in (None, settings)
            if not is_ours or verdict is ReviewState.COMMENTED:
                raise
            raise UsageError(
                f"the forge takes no verdict from the account of sm ({error.said}): give it on "
                f"{settings.link_pull(number)}, or set forge.reviewer_token_file, see "
                "docs/FORGES.md"
            ) from error


@contextmanager
def _alone(
    project: Project, number: int, verdict: ReviewState, known: str | None
) -> Iterator[None]:
    """Give one verdict at a time, and none on what somebody has answered already."""
    if verdict is ReviewState.COMMENTED:
        yield
        return
    if known is None:
        last = _read_last(project, number)
        known = last.id if last else ""
    with lock.hold(project.directory.verdicts_lock):
        last = _read_last(project, number)
        if last and last.id != known:
            ago = duration.show(max(0, round(time.time() - last.at)))
            raise AnsweredError(
                f"{last.author} was first: {last.state} {last.head[:12]} {ago} ago. Nothing was "
                "sent: look again"
            )
        yield


def _read_last(project: Project, number: int) -> Review | None:
    return find_last_verdict(project.forge.pulls.read_reviews(number))


def merge(
    project: Project, number: int, *, author: str, head: str = "", message: str = ""
) -> PullRequest:
    """Merge a pull request at `head`, by default its last commit.

    Raises:
        HeadMovedError: it has other commits by now.
        SmError: as the forge's `merge`.

    """
    pulls = project.forge.pulls
    if head:
        head = check_head(pulls, number, head)
    return pulls.merge(number, head=head, author=author, message=message)


def tell_verdict(given: Review, number: int, *, merges: bool) -> str:
    """Say what the verdict is, on which commit, and whether sm merges that now."""
    then = ", and nothing else is missing: sm merges it now" if merges else ""
    return f"{given.state} #{number} at {given.head[:12]}{then}"


def tell_merge(pull: PullRequest) -> str:
    """Say what came of a merge, and of which commit it was."""
    at = f"#{pull.number} at {pull.head[:12]}"
    if pull.hold is Hold.QUEUED:
        why = f"{one_line(pull.held)}; " if pull.held else ""
        return f"queued {at}: {why}the forge merges it, with nothing to do here"
    return f"merged {at} as {pull.merged_as[:12]}"


def merges_when_approved(project: Project, number: int) -> bool:
    """Whether sm merges the pull request as soon as it is approved, by the last look at the forge.

    Nothing is asked of the forge.
    """
    seen = last_snapshot(project.directory)
    pull = next((one for one in seen.pulls if one.number == number), None) if seen else None
    if seen is None or pull is None or project.settings.merge.by != "sm":
        return False
    return any(
        recall(one, seen).facts.merges_when_approved
        for one in registry.list_for(project, lambda _: None)
        if one.record.branch == pull.branch
    )


# Checkouts and CI


def check_out(project: Project, number: int, folder: Path) -> PullRequest:
    """Check out the last commit of the pull request in the work tree `folder`, detached.

    Its branch stays free for the agent, which works on it in its own worktree.

    Raises:
        UsageError: `folder` is no work tree of the project's clone.
        SmError: git refuses because it would overwrite a file, or the commit is gone.

    """
    pull, git = project.forge.pulls.read(number), project.git.at(folder)
    try:
        ours = git.common_dir() == project.git.common_dir()
    except NotARepositoryError:
        ours = False
    if not ours:
        raise UsageError(
            f"'{git.repo}' is no work tree of '{project.name}': "
            f"go to your clone '{project.settings.repo}', or to a worktree of it"
        )
    for branch in (pull.branch, pull.base):  # after the merge only the base has it
        with contextlib.suppress(NoSuchBranchError):
            git.fetch_branch(project.settings.remote, branch)
    if git.rev_parse(pull.head) is None:
        raise SmError(
            f"commit {pull.head[:12]} of #{number} is on no branch of the remote any more"
        )
    try:
        git.switch_to(pull.head)
    except CommandError as error:
        said = one_line(error.result.stderr.replace("Aborting", ""))
        raise SmError(f"'{folder}' is left as it is: {said}") from error
    return pull


def rerun_ci(project: Project, number: IssueId, *, on_pull: bool = False) -> str:
    """Run CI again for issue or pull request `number`; return the commit.

    `on_pull` says that it is a pull request's, on a forge where an issue may have it as well.

    Raises:
        NotFoundError: nothing has that number, or it has no branch yet.
        PullClosedError: it is merged or closed.
        AtWorkError: CI is running on it.
        UsageError: the project has no CI.

    """
    head = _find_head(project, number, on_pull=on_pull)
    project.forge.checks.rerun(head)
    return head


def _find_head(project: Project, number: IssueId, *, on_pull: bool) -> str:
    if on_pull or project.forge.is_pull(number):
        return _check_open(project.forge.pulls.read(check_pull(number))).head
    branch = project.settings.branch(number)
    if pull := project.forge.pulls.find_newest(branch):
        return _check_open(pull).head
    if head := project.forge.branch_head(branch):
        return head
    raise NotFoundError(f"issue {number} has no branch '{branch}' on the forge yet")


def _check_open(pull: PullRequest) -> PullRequest:
    if pull.state is not PullState.OPEN:
        raise PullClosedError(
            f"pull request {pull.number} is {pull.state}: there is nothing to run"
        )
    return pull
