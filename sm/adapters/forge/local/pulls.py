"""Pull requests of the local forge: a document, seen together with the branches it is about."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from msgspec import Struct, structs

from sm.adapters.forge.errors import NotFoundError, NothingToMergeError, PullClosedError
from sm.adapters.forge.local.branches import Branches, Conflicts
from sm.adapters.forge.local.checks import LocalChecks
from sm.adapters.forge.local.document import ForgeFile
from sm.adapters.forge.local.fields import Fields
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.local.issues import (
    add_comment,
    complete,
    make_front,
    make_id,
    tidy_name,
)
from sm.adapters.forge.local.merge import MergePolicy, Wish, merge
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import (
    NO_CHECK,
    Comment,
    InlineComment,
    PullRequest,
    PullState,
    Review,
    ReviewState,
)
from sm.base.errors import StateError, UsageError
from sm.base.foreign import TITLE_LIMIT, tidy

KEYS = (
    "number",
    "title",
    "state",
    "author",
    "created",
    "branch",
    "base",
    "head",
    "merged",
    "closed",
)


class LocalPulls(Struct, frozen=True):
    """Pull requests of a forge. `rules` are what the project asks for before a merge."""

    folder: ForgeFolder
    repository: BareRepository
    checks: LocalChecks
    conflicts: Conflicts
    rules: MergePolicy

    def find(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """Find the pull requests in that state, oldest first; and the problems."""
        found, problems = self.read_all()
        return [pull for pull in found if state in (None, pull.state)], problems

    def find_newest(self, branch: str) -> PullRequest | None:
        """Find the newest pull request of `branch`."""
        branches = Branches(self.repository)
        for number in reversed(self.folder.numbers("pulls")):
            with contextlib.suppress(StateError, NotFoundError):  # being edited, or removed
                if self._name_branch(number) == branch:
                    return self.read_at(number, branches)
        return None

    def read(self, number: int) -> PullRequest:
        """Read a pull request."""
        return self.read_at(number, Branches(self.repository))

    def read_at(self, number: int, branches: Branches) -> PullRequest:
        """Read a pull request as it is with these branches."""
        pull = self._read(number, branches)
        self.conflicts.keep()
        return pull

    def read_all(self, *, logged: bool = True) -> tuple[list[PullRequest], list[str]]:
        """Read every pull request in order, and what is wrong with the files that hold none.

        Their checks have a log only if `logged`.
        """
        branches = Branches(self.repository)
        self._learn_conflicts(branches)
        found = self.folder.each(
            "pulls", lambda number: self._read(number, branches, logged=logged)
        )
        self.conflicts.keep()
        return found

    def _learn_conflicts(self, branches: Branches) -> None:
        """Learn the conflicts that `_value` will ask about, for all pull requests at once."""
        heads: dict[str, list[str]] = {}
        for document in self.folder.each("pulls", lambda n: self.folder.read("pulls", n))[0]:
            base, head = (
                branches.heads.get(str(document.front.get(k))) for k in ("base", "branch")
            )
            if base and head and document.front.get("state") == PullState.OPEN:
                heads.setdefault(base, []).append(head)
        for base, offered in heads.items():
            self.conflicts.learn(base, offered)

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """Read a pull request's reviews. A folder has no accounts: who edits is the reviewer."""
        return tuple(map(_save_as_author, self.read(number).reviews))

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """Read the comments. A folder has no accounts: who edits is the author."""
        return self.read(number).comments

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on a pull request or issue; False where one with `marker` is there already."""
        return add_comment(self.folder, number, body, author, marker)

    def read_head(self, number: int) -> str:
        """Read the commit that a pull request is at."""
        return self.read(number).head

    def count_commits(self, number: int, since: str) -> int:
        """Count the commits of a pull request that the commit `since` lacks."""
        head = self.read(number).head
        return self.repository.count_between(self.repository.resolve(since), head)

    def diff(self, number: int, *, stat: bool = False, limit: int | None = None) -> bytes:
        """Return a pull request's change, as `git diff` shows it; with `stat` as `--stat` does."""
        pull = self.read(number)
        options = ["--stat"] if stat else []
        return self.repository.diff(_base(pull), pull.head, *options, limit=limit)

    def list_files(self, number: int, head: str = "") -> list[str]:
        """List the files that a pull request changes up to `head`, or else its last commit."""
        pull = self.read(number)
        commit = self.repository.resolve(head) if head else pull.head
        return self.repository.files_changed(_base(pull), commit)

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        """Merge at `head`, or else at the branch's current commit; a merged one is returned.

        Raises:
            MergeRefusedError: it may not be merged; the subclass says why.

        """
        wish = Wish(author, head and self.repository.resolve(head), message)
        return merge(self, number, wish, self.rules)

    def open(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; while it is on offer, the same one is returned.

        Raises:
            NotFoundError: one of the branches has not been pushed.
            NothingToMergeError: the branch has no commits of its own.

        """
        branches = Branches(self.repository)
        for name in (branch, base):
            if name not in branches.heads:
                raise NotFoundError(f"there is no branch '{name}' on the forge: push it first")
        for number in self.folder.numbers("pulls"):
            if self._offers(number, branch):  # what has been merged by a push is not open any more
                self._read(number, branches)
        with self.folder.changing():
            numbers = self.folder.numbers("pulls")
            offered = next((one for one in numbers if self._offers(one, branch)), None)
            if offered is None:
                offered = self._add(branches, branch, base, make_front(title, author), body)
        return self.read_at(offered, branches)

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
        """Review the commit `head`, or else the branch's current one.

        Raises:
            PullClosedError: there is nothing left to decide.
            UsageError: a remark is on no line of a file.

        """
        head = head and self.repository.resolve(head)
        remarks = tuple(comments)
        for one in remarks:
            if not tidy(one.path) or one.line < 1:
                raise UsageError(f"'{one.path}:{one.line}' is no line of a file: count from 1")
        at = round(time.time(), 3)
        pull = self.read(number)
        if pull.state is not PullState.OPEN and state is not ReviewState.COMMENTED:
            raise PullClosedError(f"pull request {number} is {pull.state}: only comment on it")
        name = tidy_name(author)
        review = Review(make_id(), name, at, state, head or pull.head, body, remarks)
        self.folder.update("pulls", number, lambda found: found.plus(review))
        return review

    def close(self, number: int) -> PullRequest:
        """Close it unmerged; one that is closed stays so.

        Raises:
            PullClosedError: it is merged.

        """
        if self.read(number).state is PullState.MERGED:  # a merge by a push counts as well
            raise PullClosedError(f"pull request {number} is merged: nothing to close")
        self.folder.update("pulls", number, _close_document)
        return self.read(number)

    def _name_branch(self, number: int) -> str:
        document = self.folder.read("pulls", number)
        return Fields(self.folder.name("pulls", number), document).text("branch")

    def _offers(self, number: int, branch: str) -> bool:
        try:
            document = self.folder.read("pulls", number)
            fields = Fields(self.folder.name("pulls", number), document)
            if fields.text("branch") != branch:
                return False
            return fields.choice("state", PullState) is PullState.OPEN
        except StateError:
            # A file that is being edited must neither hide the pull request nor stop all others.
            if f"\nbranch: {branch}\n".encode() in self.folder.raw("pulls", number):
                raise
            return False

    def _add(
        self, branches: Branches, branch: str, base: str, front: dict[str, object], body: str
    ) -> int:
        head = branches.heads[branch]
        if branches.contains(base, head):
            raise NothingToMergeError(
                f"branch '{branch}' has no commits that '{base}' lacks: commit and push first"
            )
        front |= {"branch": branch, "base": base, "head": head}
        return self.folder.add_locked("pulls", ForgeFile(front, body))

    def _read(self, number: int, branches: Branches, *, logged: bool = True) -> PullRequest:
        document = self.folder.read("pulls", number)
        fields = Fields(self.folder.name("pulls", number), document)
        fields.check_keys(KEYS)
        fields.check_number(number)
        if self._catch_up(number, document, branches) is not document:
            document = self.folder.update(
                "pulls", number, lambda found: self._catch_up(number, found, branches)
            )
        return self._value(number, document, branches, logged=logged)

    def _catch_up(self, number: int, document: ForgeFile, branches: Branches) -> ForgeFile:
        """Return `document` with what has happened to its branches; itself if nothing has."""
        fields = Fields(self.folder.name("pulls", number), document)
        base, head = fields.text("base"), fields.commit("head")
        now = branches.heads.get(fields.text("branch"), head)
        if document.unsettled:
            document = complete(document, now)
        if fields.choice("state", PullState) is not PullState.OPEN:
            return document
        # A branch that was set back to its base has nothing to merge, but was not merged either:
        # only the last commit that the base lacked tells when it has been.
        if now != head and not branches.contains(base, now):
            head = now
            document = document.with_front(head=head)
        if branches.contains(base, head):
            merged = self.repository.find_merge(head, branches.heads[base])
            document = document.end(PullState.MERGED, merged=merged)
        return document

    def _value(
        self, number: int, document: ForgeFile, branches: Branches, *, logged: bool
    ) -> PullRequest:
        fields = Fields(self.folder.name("pulls", number), document)
        state = fields.choice("state", PullState)
        branch, base, head = fields.text("branch"), fields.text("base"), fields.commit("head")
        if state is PullState.OPEN:
            head = branches.heads.get(branch, head)
        whole = branches.heads.get(base, "")
        return PullRequest(
            number=number,
            title=fields.text("title", limit=TITLE_LIMIT),
            state=state,
            author=fields.text("author", "unknown"),
            at=fields.time("created"),
            branch=branch,
            base=base,
            head=head,
            body=document.body,
            conflicts=state is PullState.OPEN and self.conflicts.would_conflict(whole, head),
            merged_as=fields.commit("merged"),
            closed_at=0.0 if state is PullState.OPEN else fields.time("closed"),
            reviews=document.reviews,
            comments=document.comments,
            touched=f"{len(document.comments)}" if document.comments else "",
            check=self.checks.read(head, settled=state is not PullState.OPEN, logged=logged)
            if head
            else NO_CHECK,
        )


def _close_document(document: ForgeFile) -> ForgeFile:
    over = document.front.get("state") == PullState.CLOSED
    return document if over else document.end(PullState.CLOSED)


def _base(pull: PullRequest) -> str:
    """Return the revision that a pull request is compared with."""
    return f"{pull.merged_as}^1" if pull.merged_as else f"refs/heads/{pull.base}"


def _save_as_author(review: Review) -> Review:
    """Return the review as edited by its author alone."""
    remarks = (structs.replace(one, editor=review.author) for one in review.comments)
    return structs.replace(review, comments=tuple(remarks), editor=review.author)
