"""Pull requests over REST: what GitHub, Forgejo and Gitea have alike."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.errors import (
    BaseMovedError,
    ConflictError,
    HeadMovedError,
    MergeRefusedError,
    NotFoundError,
    NothingToMergeError,
    PullClosedError,
    RefusedError,
)
from sm.adapters.forge.model import InlineComment, PullRequest, PullState, Review
from sm.plugins.forges.rest.convert import make_pull, make_review, name_branch
from sm.plugins.forges.rest.reader import COMMENT, Reader
from sm.plugins.forges.rest.shapes import File, PullShape, ReviewShape
from sm.plugins.forges.web.errors import BadAnswerError

DUPLICATE = (409, 422)
NOT_NOW = (405, 409)
PASSING = ("was modified", "try again later", "out of date", "does not match")
"""What forges say of a merge that is refused only now: others merge, or it is still finding out."""


def find_pull(reader: Reader, branch: str, state: str = "all") -> PullRequest | None:
    """The newest pull request of a branch of this repository."""
    found = [one for one in reader.pulls_of(branch, state) if name_branch(one) == branch]
    return make_pull(max(found, key=lambda one: one.number)) if found else None


def open_pull(reader: Reader, branch: str, base: str, title: str, body: str) -> PullRequest:
    """Offer a branch for merging; the one that is open for it, if there is one.

    Raises:
        NotFoundError: one of the branches has not been pushed.
        NothingToMergeError: the branch has no commits of its own.

    """
    if known := find_pull(reader, branch, "open"):
        return known
    for name in (branch, base):
        if not reader.branch_head(name):
            raise NotFoundError(f"there is no branch '{name}' on the forge: push it first")

    def landed() -> bool:
        return bool(find_pull(reader, branch, "open"))

    try:
        made = reader.offer(branch, base, title, body, landed)
    except RefusedError as error:
        return _explain_unopened(reader, branch, base, error)
    if made is not None:
        return make_pull(made)
    return find_pull(reader, branch, "open") or _vanished(branch)


def _explain_unopened(reader: Reader, branch: str, base: str, error: RefusedError) -> PullRequest:
    if error.status in DUPLICATE:
        if known := find_pull(reader, branch, "open"):  # another process was faster
            return known
        refuse_nothing(reader, branch, base)
    raise error


def _vanished(branch: str) -> PullRequest:
    raise NotFoundError(f"the pull request of '{branch}' is gone again: look at the forge")


def refuse_nothing(reader: Reader, branch: str, base: str) -> None:
    """Raise NothingToMergeError if `branch` has no commits that `base` lacks."""
    if not reader.compare(base, branch, f"comparison of '{branch}'").total_commits:
        raise NothingToMergeError(f"'{branch}' has nothing that '{base}' lacks")


def close_pull(reader: Reader, number: int) -> PullRequest:
    """Close a pull request unmerged; PullClosedError if it is merged."""
    known = make_pull(reader.pull_shape(number))
    if known.state is PullState.MERGED:
        raise PullClosedError(f"pull request {number} is merged")
    if known.state is PullState.CLOSED:
        return known
    return make_pull(reader.close_pull(number))


def send_review(
    reader: Reader, number: int, data: dict[str, object], comments: Iterable[InlineComment]
) -> Review:
    """Submit a review; `data` is that with its comments as the forge takes it."""
    answer = reader.web.write("POST", f"{reader.at}/pulls/{number}/reviews", COMMENT, data)
    if (made := make_review(answer.read(ReviewShape), comments)) is None:
        raise BadAnswerError(f"the review of pull request {number} was kept as a draft")
    return made


def list_files(reader: Reader, number: int) -> list[File]:
    """The files that a pull request changes."""
    reader.pull_shape(number)
    return list(reader.files(number))


def list_files_at(reader: Reader, pull: PullRequest, head: str) -> list[str]:
    """The same up to the commit `head`."""
    found = reader.compare(pull.base, head, f"commit '{head}'")
    return [file.filename for file in found.files or []]


def show_stat(files: Iterable[File]) -> str:
    """How much changes in each file, as `git diff --stat` shows it."""
    lines = [
        f" {file.filename} | {file.additions + file.deletions} "
        f"{'+' * min(file.additions, 40)}{'-' * min(file.deletions, 40)}"
        for file in files
    ]
    return "".join(f"{line}\n" for line in lines)


def explain_unmerged(pull: PullRequest, shape: PullShape, error: RefusedError) -> Exception:
    """Why the forge has not merged `pull`; `shape` is as it is after that."""
    now = make_pull(shape)
    if now.head != pull.head:
        return HeadMovedError(
            f"'{pull.branch}' is not at {pull.head[:12]} any more: "
            "have the new commits checked and reviewed"
        )
    if now.conflicts:
        return ConflictError(f"'{pull.branch}' conflicts with '{pull.base}': rebase it and push")
    unsure = shape.mergeable is None and not shape.draft
    if error.status in NOT_NOW and (unsure or any(word in error.said for word in PASSING)):
        return BaseMovedError(f"pull request {pull.number} cannot be merged yet: {error.said}")
    return MergeRefusedError(f"the forge does not merge pull request {pull.number}: {error.said}")
