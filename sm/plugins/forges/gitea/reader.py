"""Reads a repository on Forgejo or Gitea: where their interface differs from GitHub's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar
from urllib.parse import quote

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError, RefusedError
from sm.adapters.forge.model import Comment, IssueState, Review
from sm.base.errors import SmError
from sm.base.foreign import read_number
from sm.plugins.forges.gitea.shapes import ActionRun, Compared, Needed
from sm.plugins.forges.gitea.statuses import RunReader, list_runs, read_statuses
from sm.plugins.forges.rest.convert import make_comment, name_branch, read_login, space_out
from sm.plugins.forges.rest.protection import BranchRules, name_checks
from sm.plugins.forges.rest.pulls import refuse_nothing
from sm.plugins.forges.rest.reader import GONE, PAGES, READ, WRITE
from sm.plugins.forges.rest.shapes import (
    Branch,
    ChangedEntry,
    CommentShape,
    Comparison,
    InlineShape,
    IssueShape,
    Label,
    PullShape,
    ReviewShape,
    TimelineShape,
    User,
)
from sm.plugins.forges.rest.status import StatusPart
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.request import Params

NEEDED = 5
"""Most dependencies of an issue or a pull request that are named."""
LIMIT = 50
"""Entries of a page; a server may give fewer."""
TOTAL = "x-total-count"
EMPTY_PAGES = 2
"""Pages of a timeline without an entry, one after the other, before it is taken to be over."""
NOT_ORGANISED = (403, 404, 410)
"""The owner is a person, or the token may not read organisations."""
DRAFT = re.compile(r"^(?:\s*(?:wip:|\[wip\]))+\s*", re.IGNORECASE)
"""Beginnings of a title that make a draft unless configured otherwise: `WorkInProgressPrefixes` in
`modules/setting/repository.go`."""
RECENT_PAGES = 4
"""Pages of pull requests in which a closed one of a branch is looked for."""
LOOKS = 8
UNCERTAIN_S = 1.0
"""A pull request is not `mergeable` either while the forge is finding out, as after each merge into
its base: how often it is asked again before that is a conflict, and how far apart.
"""


class GiteaReader(RunReader):
    """One repository on Forgejo or Gitea."""

    oldest_first: ClassVar[Params] = {"sort": "oldest"}
    colour: ClassVar[str] = "#8c8c8c"
    lists_writers: ClassVar[bool] = False
    """Its list of collaborators has those who may only read, and neither owners nor teams."""

    size_key: ClassVar[str] = "limit"
    page_size: ClassVar[int] = LIMIT

    def __init__(self, web: ForgeClient, repository: str) -> None:
        """`repository` is its present name."""
        super().__init__(web, repository)
        self._are_foreign: dict[int, bool] = {}

    def tells_more(self, headers: Mapping[str, str], seen: int) -> bool:
        """Whether an answer with these headers has another page behind it."""
        total = read_number(headers.get(TOTAL, ""))
        return total is None or seen < total

    # Labels go by their ids: a name that is unknown would be dropped without a word.

    def labels(self) -> Iterator[Label]:
        """Yield the labels of the repository, and of the organisation that owns it."""
        yield from self.entries("/labels", Label)
        path, seen = f"/orgs/{quote(self.repository.partition('/')[0], safe='')}/labels", 0
        for number in range(1, PAGES + 1):
            asked = {"limit": LIMIT, "page": number}
            answer = self.web.get(path, READ, asked, accept=NOT_ORGANISED)
            if answer.status in NOT_ORGANISED:
                return
            page = answer.read_page(Label)
            yield from page.found
            seen += page.size
            if not self.has_more(page, seen):
                return

    def label_ref(self, label: str) -> str | int:
        """The id of a label, which is made if there is none of that name."""
        for known in self.labels():
            if known.name == label:
                return known.id
        return self.make_label(label).id

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue. Which one of that name it has, the issue itself says."""
        for one in self.issue_shape(number).labels:
            if isinstance(one, Label) and one.name == label:
                path = f"{self.at}/issues/{number}/labels/{one.id}"
                self.web.write("DELETE", path, WRITE, accept=(404,))

    def issue_shapes(self, state: IssueState | None, labels: Iterable[str]) -> Iterator[IssueShape]:
        """All issues in that state: the list is by labels of the repository alone."""
        return super().issue_shapes(state, ())

    # Texts

    def is_missing(self, number: int) -> bool:
        """Whether there is no such issue or pull request: a comment on it is a 500 then.

        Recorded of Gitea 1.26.0-dev.
        """
        try:
            self.ask(f"/issues/{number}", ChangedEntry, f"issue or pull request {number}")
        except NotFoundError:
            return True
        except SmError:
            return False
        return False

    def comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments on an issue or a pull request, which come all at once."""
        path = f"{self.at}/issues/{number}/comments"
        found = self.web.get(path, READ).read_page(CommentShape)
        self.pass_over(found.bad)
        return space_out(make_comment(one, self.account) for one in found.found)

    def inline(self, number: int, reviews: Iterable[ReviewShape]) -> Iterable[InlineShape]:
        """The remarks on lines, of each review."""
        for review in reviews:
            path = f"{self.at}/pulls/{number}/reviews/{review.id}/comments"
            found = self.web.get(path, READ).read_page(InlineShape)
            self.pass_over(found.bad)
            for one in found.found:
                yield structs.replace(tidy_remark(one), pull_request_review_id=review.id)

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
            found = list(self._timeline(number))
        except RefusedError as error:
            if error.status in GONE:
                return {}
            raise
        return {
            str(one.review_id): (one.body or "").replace("\r\n", "\n")
            for one in found
            if one.type == "review" and one.review_id
        }

    def _timeline(self, number: int) -> Iterator[TimelineShape]:
        """Read what happened to a pull request.

        The header counts the page. What is left out of a page leaves a shorter one, or `null`.
        """
        empty, path = 0, f"{self.at}/issues/{number}/timeline"
        for page in range(1, PAGES + 1):
            answer = self.web.get(path, READ, {"limit": LIMIT, "page": page})
            found = answer.read(list[TimelineShape] | None)  # type: ignore[arg-type]  # a union
            yield from found or ()
            empty = 0 if found else empty + 1
            if empty >= EMPTY_PAGES:
                return

    def pull_shape(self, number: int) -> PullShape:
        """A pull request as the forge has it."""
        return self._note(super().pull_shape(number))

    def settled_shape(self, number: int) -> PullShape:
        """Return a pull request, asked for again while it is not `mergeable`."""
        found = self.pull_shape(number)
        for _ in range(LOOKS):
            if found.state != "open" or found.mergeable is not False:
                break
            found = self.shape_later(number)
        return found

    def shape_later(self, number: int) -> PullShape:
        """Return a pull request in a moment, when the forge may have found out."""
        time.sleep(UNCERTAIN_S)
        return self.pull_shape(number)

    def pull_shapes(self, asked: Params, purpose: str = READ) -> Iterator[PullShape]:
        """The pull requests of a list."""
        return map(self._note, self.entries("/pulls", PullShape, asked, purpose))

    def offer(
        self, branch: str, base: str, title: str, body: str, landed: Callable[[], bool]
    ) -> PullShape | None:
        """Open a pull request; None if one was opened by a try whose answer was lost.

        Raises:
            NothingToMergeError: the branch has no commits of its own, which the forge would allow.

        """
        refuse_nothing(self, branch, base)
        return super().offer(branch, base, DRAFT.sub("", title) or title, body, landed)

    def compare(self, base: str, head: str, what: str) -> Comparison:
        """Return what `head` has that `base` lacks."""
        names = "...".join(quote(name, safe="") for name in (base, head))
        found = self.ask(f"/compare/{names}", Compared, what)
        return Comparison(found.all_files, found.total_commits)

    def needed(self, number: int) -> list[str]:
        """List the open things that a pull request depends on; none without such a list."""
        path = f"{self.at}/issues/{number}/dependencies"
        answer = self.web.get(path, READ, {"limit": LIMIT}, accept=NOT_ORGANISED)
        found = [] if answer.status in NOT_ORGANISED else answer.read_page(Needed).found
        return [one.name(self.repository) for one in found if one.state == "open"]

    def pulls_of(self, branch: str, state: str) -> Iterable[PullShape]:
        """Yield the open pull requests, then the last others; Gitea has no filter by branch."""
        found = self.pull_shapes({"state": "open"})
        mine = [one for one in found if one.head.ref == branch]
        if mine or state == "open":
            return mine
        asked = {"state": "all", "sort": "recentupdate"}
        return map(self._note, self.entries("/pulls", PullShape, asked, most=RECENT_PAGES))

    # Checks

    def rule_paths(self, branch: str) -> dict[str, Callable[[HttpAnswer], BranchRules]]:
        """Return where the rules of a branch are: with itself, for all who may read it."""
        return {f"{self.at}/branches/{quote(branch, safe='/')}": _read_rules}

    def status_parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return the statuses of a commit as parts: their own CI writes those, too."""
        return read_statuses(self, head, purpose)

    def own_runs(self, head: str, purpose: str, accept: tuple[int, ...] = ()) -> list[ActionRun]:
        """List what their own CI has run on a commit, but not for pull requests of others."""
        return [run for run in list_runs(self, head, purpose, accept) if not self.is_foreign(run)]

    def is_foreign(self, run: ActionRun) -> bool:
        """Whether a run was begun by a pull request whose branch is not one of ours."""
        number = run.pull
        if run.is_fork_pull_request or not number:
            return run.is_fork_pull_request
        if number not in self._are_foreign:
            try:
                self.pull_shape(number)
            except NotFoundError:
                return True
        return self._are_foreign[number]

    def _note(self, shape: PullShape) -> PullShape:
        """The pull request as it is to be used; whether it is foreign is remembered."""
        found = tidy_pull(shape)
        self._are_foreign[found.number] = ":" in name_branch(found)
        return found

    def run_parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """None: there are no check runs."""
        return []


def _read_rules(answer: HttpAnswer) -> BranchRules:
    """The required statuses, which may be patterns, and how many reviewers must agree."""
    found = answer.read(Branch)
    names = found.status_check_contexts or [] if found.enable_status_check else []
    rules = BranchRules(name_checks(names), found.required_approvals)
    return structs.replace(rules, may_merge=found.user_can_merge)


def tidy_pull(shape: PullShape) -> PullShape:
    """Return it with its branch also after that was deleted, and without a conflict that is none.

    A draft is never `mergeable`. What was pushed to `refs/for/…` has no label, and whoever can read
    the repository can do that. So it is foreign, although it is in the repository itself, and
    although a list may give it the name of one of our branches.
    """
    head = shape.head
    if not head.label:
        ref = f"refs/pull/{shape.number}/head"
        head = structs.replace(head, ref=ref, repo=None, user=User(read_login(shape.user)))
    elif head.ref.startswith("refs/pull/"):
        head = structs.replace(head, ref=head.label)
    return structs.replace(shape, head=head, mergeable=None if shape.draft else shape.mergeable)


def tidy_remark(shape: InlineShape) -> InlineShape:
    """Return it with its line, of the new side or the old one. The code may have changed unseen."""
    return structs.replace(shape, line=shape.position or shape.original_position)
