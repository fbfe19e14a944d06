"""Reads a repository on Forgejo or Gitea: where their interface differs from GitHub's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar
from urllib.parse import quote

from msgspec import structs

from sm.adapters.forge.combine import Part
from sm.adapters.forge.model import Comment, Review
from sm.adapters.forge.rest.convert import make_comment, make_status_part, space_out
from sm.adapters.forge.rest.reader import GONE, READ, Reader
from sm.adapters.forge.rest.rules import BranchRules, name_checks
from sm.adapters.forge.rest.shapes import (
    Branch,
    CommentShape,
    InlineShape,
    Label,
    PullShape,
    ReviewShape,
    Statuses,
    TimelineShape,
)
from sm.adapters.forge.web.answer import Answer
from sm.adapters.forge.web.client import Params
from sm.adapters.forge.web.errors import RefusedError
from sm.foreign import read_number

LIMIT = 50
"""Entries of a page; a server may give fewer."""
STATUS_PAGES = 10
TOTAL = "x-total-count"
RECENT_PAGES = 4
"""Pages of pull requests in which a closed one of a branch is looked for."""
LOOKS = 8
UNCERTAIN_S = 1.0
"""A pull request is not `mergeable` either while the forge is finding out, as after each merge into
its base: how often it is asked again before that is a conflict, and how far apart.
"""
ACTIONS = "/actions/runs/"
"""Part of the address of what their own CI has run."""


class GiteaReader(Reader):
    """One repository on Forgejo or Gitea."""

    oldest_first: ClassVar[Params] = {"sort": "oldest"}
    colour: ClassVar[str] = "#8c8c8c"
    lists_writers: ClassVar[bool] = False
    """Its list of collaborators has those who may only read, and neither owners nor teams."""

    size_key: ClassVar[str] = "limit"
    page_size: ClassVar[int] = LIMIT

    def tells_more(self, headers: Mapping[str, str], seen: int) -> bool:
        """Whether an answer with these headers has another page behind it."""
        total = read_number(headers.get(TOTAL, ""))
        return total is None or seen < total

    # Labels go by their ids: a name that is unknown would be dropped without a word.

    def label_ref(self, label: str) -> str | int:
        """The id of a label, which is made if there is none of that name."""
        for known in self.entries("/labels", Label):
            if known.name == label:
                return known.id
        return self.make_label(label).id

    # Texts

    def comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments on an issue or a pull request, which come all at once."""
        path = f"{self.at}/issues/{number}/comments"
        found = self.web.get(path, READ).read(list[CommentShape])
        return space_out(make_comment(one, self.account) for one in found)

    def inline(self, number: int, reviews: Iterable[ReviewShape]) -> Iterable[InlineShape]:
        """The remarks on lines, of each review."""
        for review in reviews:
            path = f"{self.at}/pulls/{number}/reviews/{review.id}/comments"
            for one in self.web.get(path, READ).read(list[InlineShape]):
                yield structs.replace(one, pull_request_review_id=review.id)

    # Pull requests

    def whole_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews that stand, with their texts as they are now.

        The list of reviews goes on to have a text as it was first, after that was edited.
        """
        found = super().whole_reviews(number)
        texts = self._read_texts(number) if any(one.body for one in found) else {}
        return tuple(structs.replace(one, body=texts.get(one.id, one.body)) for one in found)

    def _read_texts(self, number: int) -> dict[str, str]:
        """The texts of reviews by their ids; none if the server has no timeline."""
        try:
            found = list(self.entries(f"/issues/{number}/timeline", TimelineShape))
        except RefusedError as error:
            if error.status in GONE:
                return {}
            raise
        return {
            str(one.review_id): (one.body or "").replace("\r\n", "\n")
            for one in found
            if one.type == "review" and one.review_id
        }

    def pull_shape(self, number: int) -> PullShape:
        """A pull request as the forge has it."""
        return tidy_pull(super().pull_shape(number))

    def settled_shape(self, number: int) -> PullShape:
        """The same, asked for again while it is not `mergeable`."""
        found = self.pull_shape(number)
        for _ in range(LOOKS):
            if found.state != "open" or found.mergeable is not False:
                break
            found = self.shape_later(number)
        return found

    def shape_later(self, number: int) -> PullShape:
        """The same in a moment, when the forge may have found out."""
        time.sleep(UNCERTAIN_S)
        return self.pull_shape(number)

    def pull_shapes(self, asked: Params, purpose: str = READ) -> Iterator[PullShape]:
        """The pull requests of a list."""
        return map(tidy_pull, self.entries("/pulls", PullShape, asked, purpose))

    def pulls_of(self, branch: str, state: str) -> Iterable[PullShape]:
        """Those that are open, then the last others; Gitea has no filter by branch."""
        found = self.pull_shapes({"state": "open"})
        mine = [one for one in found if one.head.ref == branch]
        if mine or state == "open":
            return mine
        asked = {"state": "all", "sort": "recentupdate"}
        return map(tidy_pull, self.entries("/pulls", PullShape, asked, most=RECENT_PAGES))

    # Checks

    def rule_paths(self, branch: str) -> dict[str, Callable[[Answer], BranchRules]]:
        """Where the rules of a branch are: with itself, for all who may read it."""
        return {f"{self.at}/branches/{quote(branch, safe='/')}": _read_rules}

    def status_parts(self, head: str, purpose: str = READ) -> list[Part]:
        """What the statuses say: their own CI writes those, too."""
        found: list[Part] = []
        for page in range(1, STATUS_PAGES + 1):
            asked = {"limit": LIMIT, "page": page}
            answer = self.web.get(f"{self.at}/commits/{head}/status", purpose, asked, accept=GONE)
            if answer.status in GONE:
                return []
            read = answer.read(Statuses)
            found += map(make_status_part, read.statuses or [])
            if not read.statuses or len(found) >= (read.total_count or 0):
                break
        return [structs.replace(part, has_log=ACTIONS in part.url) for part in found]

    def run_parts(self, head: str, purpose: str = READ) -> list[Part]:
        """None: there are no check runs."""
        return []


def _read_rules(answer: Answer) -> BranchRules:
    """The required statuses, which may be patterns, and how many reviewers must agree."""
    found = answer.read(Branch)
    names = found.status_check_contexts or [] if found.enable_status_check else []
    return BranchRules(name_checks(names), found.required_approvals)


def tidy_pull(shape: PullShape) -> PullShape:
    """With its branch also after that was deleted, and without a conflict that is none.

    A draft is never `mergeable`.
    """
    head = shape.head
    if head.ref.startswith("refs/pull/") and head.label:
        head = structs.replace(head, ref=head.label)
    return structs.replace(shape, head=head, mergeable=None if shape.draft else shape.mergeable)
