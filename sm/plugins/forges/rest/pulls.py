"""Pull requests over REST: what forges like GitHub have alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic

from msgspec import structs

from sm.adapters.forge import merge_rules
from sm.adapters.forge.errors import (
    BaseMovedError,
    BehindError,
    ConflictError,
    HeadMovedError,
    MergeRefusedError,
    NotFoundError,
    NothingToMergeError,
    PullClosedError,
    RefusedError,
)
from sm.adapters.forge.model import (
    Comment,
    InlineComment,
    PullRequest,
    PullState,
    Review,
    ReviewState,
)
from sm.adapters.forge.trust import Trust
from sm.plugins.forges.rest.checks import RestChecks
from sm.plugins.forges.rest.convert import is_of_fork, make_pull, make_review, name_branch
from sm.plugins.forges.rest.issues import add_comment
from sm.plugins.forges.rest.people import find_writers
from sm.plugins.forges.rest.reader import COMMENT, RestReader
from sm.plugins.forges.rest.shapes import File, PullShape, ReviewShape
from sm.plugins.forges.rest.site import ForgeSite, R
from sm.plugins.forges.web.errors import BadAnswerError

PULLS = {None: "all", PullState.OPEN: "open"}
DUPLICATE = (409, 422)
CONFLICT = 409
"""Forgejo and Gitea say it without a word if the rebase of a merge finds a conflict (recorded)."""
NOT_NOW = (405, CONFLICT)
PASSING = (
    *("was modified", "try again later", "out of date", "does not match"),
    "cannot lock ref",  # Forgejo 12.0.0-dev, of two merges at once: asked of it
    "already in progress",  # GitHub: "Merge already in progress"
)
"""Words for a merge that is refused only now: others merge, or the forge is still finding out."""
BEHIND = "behind the base branch"
"""Words of Gitea 1.26.0-dev and Forgejo 12.0.0-dev where a branch must have all of its base."""


class RestPulls(ABC, Generic[R]):
    """The pull requests of one repository, their reviews and merges.

    Who writes is always the account of the token: the `author` of a call is for forges that have
    no accounts.
    """

    def __init__(self, site: ForgeSite[R], checks: RestChecks[R]) -> None:
        """Ask nothing yet."""
        self.site, self.checks = site, checks

    @property
    def reader(self) -> R:
        """The reader of the repository."""
        return self.site.reader

    def find(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """The pull requests in that state, oldest first; open ones with reviews and checks."""
        asked = {"state": PULLS.get(state, "closed"), **self.reader.oldest_first}
        found = map(make_pull, self.reader.pull_shapes(asked))
        chosen = [pull for pull in found if state in (None, pull.state)]
        chosen.sort(key=lambda pull: pull.number)
        return [self._in_play(pull) for pull in chosen], []

    def _in_play(self, pull: PullRequest) -> PullRequest:
        """An open pull request with what decides about it; others as they are."""
        if pull.state is not PullState.OPEN or is_of_fork(pull):
            return pull
        check = self.checks.read_short(pull.head, pull.base)
        return structs.replace(self.reader.pull(pull.number), check=check)

    def read(self, number: int) -> PullRequest:
        """One pull request with its texts, its check with the failing log."""
        found = self.reader.whole_pull(number)
        return structs.replace(found, check=self.checks.read(found.head, found.base))

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews with their texts. These forges do not say over REST who has edited one."""
        return self.reader.whole_reviews(number)

    def find_newest(self, branch: str) -> PullRequest | None:
        """The newest pull request of `branch`, without reviews and check."""
        return find_pull(self.reader, branch)

    def open(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; the one that is open for it, if there is one."""
        title, body = self.site.clean(title), self.site.clean(body)
        return self.site.write(lambda: open_pull(self.reader, branch, base, title, body))

    def close(self, number: int) -> PullRequest:
        """Close a pull request unmerged; PullClosedError if it is merged."""
        return self.site.write(lambda: close_pull(self.reader, number))

    def review(
        self,
        number: int,
        state: ReviewState,
        body: str = "",
        comments: Iterable[InlineComment] = (),
        *,
        author: str,
        head: str = "",
    ) -> Review:
        """Review the commit `head`, by default the branch's current one."""
        head = head or self.reader.pull_shape(number).head.sha
        remarks = [structs.replace(one, body=self.site.clean(one.body)) for one in comments]
        body = self.site.clean(body)
        return self.site.write(lambda: self.send_review(number, state, body, remarks, head))

    @abstractmethod
    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head` in the words of the forge."""

    def read_head(self, number: int) -> str:
        """The commit that a pull request is at; one request."""
        return make_pull(self.reader.pull_shape(number)).head

    def count_commits(self, number: int, since: str) -> int:
        """Count the commits of a pull request that the commit `since` lacks."""
        head = self.read_head(number)
        return self.reader.compare(since, head, f"commit '{since}'").total_commits

    def diff(self, number: int, *, stat: bool = False, limit: int | None = None) -> bytes:
        """Return what a pull request changes as `git diff` does; with `stat` as `--stat` does."""
        if stat:
            return show_stat(list_files(self.reader, number)).encode()[:limit]
        return self.read_diff(number)[:limit]

    @abstractmethod
    def read_diff(self, number: int) -> bytes:
        """Return what a pull request changes, as a patch."""

    def list_files(self, number: int, head: str = "") -> list[str]:
        """The files that a pull request changes up to `head`, by default its last commit."""
        if head:
            pull = make_pull(self.reader.pull_shape(number))
            if head != pull.head:
                return list_files_at(self.reader, pull, head)
        return [file.filename for file in list_files(self.reader, number)]

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        """Merge at `head`, by default the branch's current commit; a merged one is returned.

        If the forge merges by a queue, it is put there: then it is open, and QUEUED.

        Raises:
            MergeRefusedError: it may not be merged; the subclass says why.
            AtWorkError: CI has not finished.
            BaseMovedError: the forge merges others, or is still finding out whether it can.

        """
        pull = self.reader.pull(number)
        if pull.state is PullState.MERGED:
            return pull
        if is_of_fork(pull):
            raise MergeRefusedError(
                f"pull request {number} is of a fork ('{pull.branch}'): sm merges none of those"
            )
        checked = structs.replace(pull, check=self.checks.read_short(pull.head, pull.base))
        merge_rules.refuse(checked, head, self._rules(checked))
        return self.site.write(lambda: self._merge(pull, self.site.clean(message)))

    def _merge(self, pull: PullRequest, message: str) -> PullRequest:
        try:
            if queued := self.enqueue(pull):
                return queued
            sha = self.send_merge(pull, message)
        except RefusedError as error:
            shape = self.reader.settled_shape(pull.number)
            now = make_pull(shape)
            if now.state is PullState.MERGED:
                return now
            why = explain_unmerged(pull, shape, error)
            if isinstance(why, BehindError):
                self.site.files.note_strict(pull.base)
            raise why from None
        now = make_pull(self.reader.pull_shape(pull.number))
        if now.state is PullState.MERGED:
            return now
        # A forge may be a moment behind itself.
        return structs.replace(now, state=PullState.MERGED, merged_as=sha)

    def enqueue(self, pull: PullRequest) -> PullRequest | None:
        """Put it into the merge queue of its base; None if that has none."""
        return None

    @abstractmethod
    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have the forge merge the pull request at its head; the commit that came of it."""

    def _rules(self, pull: PullRequest) -> merge_rules.MergeRules:
        named = self.site.settings.trusted
        authors = {review.author for review in pull.reviews}
        writers = frozenset() if named or not authors else find_writers(self.reader, authors)
        return merge_rules.MergeRules(self.site.settings.review_required, Trust(named, writers))

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The comments. These forges do not say over REST who has edited one."""
        return self.reader.comments(number, on_pull=True)

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on a pull request; False if one with `marker` is there already."""
        body = self.site.clean(body)
        return self.site.write(lambda: add_comment(self.reader, number, body, marker, on_pull=True))


def find_pull(reader: RestReader, branch: str, state: str = "all") -> PullRequest | None:
    """The newest pull request of a branch of this repository."""
    found = [one for one in reader.pulls_of(branch, state) if name_branch(one) == branch]
    return make_pull(max(found, key=lambda one: one.number)) if found else None


def open_pull(reader: RestReader, branch: str, base: str, title: str, body: str) -> PullRequest:
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
    if found := find_pull(reader, branch, "open"):
        return found
    raise NotFoundError(f"the pull request of '{branch}' is gone again: look at the forge")


def _explain_unopened(
    reader: RestReader, branch: str, base: str, error: RefusedError
) -> PullRequest:
    if error.status in DUPLICATE:
        if known := find_pull(reader, branch, "open"):  # another process was faster
            return known
        refuse_nothing(reader, branch, base)
    raise error


def refuse_nothing(reader: RestReader, branch: str, base: str) -> None:
    """Raise NothingToMergeError if `branch` has no commits that `base` lacks."""
    if not reader.compare(base, branch, f"comparison of '{branch}'").total_commits:
        raise NothingToMergeError(f"'{branch}' has nothing that '{base}' lacks")


def close_pull(reader: RestReader, number: int) -> PullRequest:
    """Close a pull request unmerged; PullClosedError if it is merged."""
    known = make_pull(reader.pull_shape(number))
    if known.state is PullState.MERGED:
        raise PullClosedError(f"pull request {number} is merged")
    if known.state is PullState.CLOSED:
        return known
    return make_pull(reader.close_pull(number))


def send_review(
    reader: RestReader, number: int, data: dict[str, object], comments: Iterable[InlineComment]
) -> Review:
    """Submit a review; `data` is that with its comments as the forge takes it."""
    answer = reader.web.write("POST", f"{reader.at}/pulls/{number}/reviews", COMMENT, data)
    if (made := make_review(answer.read(ReviewShape), comments)) is None:
        raise BadAnswerError(f"the review of pull request {number} was kept as a draft")
    return made


def list_files(reader: RestReader, number: int) -> list[File]:
    """The files that a pull request changes."""
    reader.pull_shape(number)
    return list(reader.files(number))


def list_files_at(reader: RestReader, pull: PullRequest, head: str) -> list[str]:
    """The names of the files that a pull request changes up to the commit `head`."""
    found = reader.compare(pull.base, head, f"commit '{head}'")
    return [file.filename for file in found.files or []]


def show_stat(files: Iterable[File]) -> str:
    """Show how much changes in each file, as `git diff --stat` does."""
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
    if error.status == CONFLICT and not error.said:
        return ConflictError(
            f"the commits of '{pull.branch}' conflict with '{pull.base}' where the forge rebases "
            "them one by one: rebase it and push"
        )
    if BEHIND in error.said:
        return BehindError(
            f"'{pull.branch}' lacks commits of '{pull.base}', and the forge merges nothing that is "
            "behind: rebase it and push"
        )
    said = error.said or "it does not say why"
    return MergeRefusedError(f"the forge does not merge pull request {pull.number}: {said}")
