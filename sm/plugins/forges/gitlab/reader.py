"""One repository on GitLab: its requests, and its answers in the shapes that all forges have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar
from urllib.parse import quote

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import Comment, IssueState, PullRequest, Review, hash_review
from sm.plugins.forges.gitlab import ci, reviews
from sm.plugins.forges.gitlab.convert import (
    DEVELOPER,
    make_comment_shape,
    make_file,
    make_issue_shape,
    make_pull_shape,
    make_repository,
)
from sm.plugins.forges.gitlab.hold import add_removal, hold_back
from sm.plugins.forges.gitlab.project import GitlabProject
from sm.plugins.forges.gitlab.quick_actions import defuse, shorten_title, title_pull
from sm.plugins.forges.gitlab.shapes import (
    BranchJson,
    ComparisonJson,
    Diff,
    IssueJson,
    Member,
    MergeRequest,
    Note,
    ProjectJson,
    ThreadJson,
)
from sm.plugins.forges.rest.convert import make_comment, make_pull, shorten, space_out
from sm.plugins.forges.rest.protection import BranchRules
from sm.plugins.forges.rest.pulls import refuse_nothing
from sm.plugins.forges.rest.reader import READ, STATES, TRUST, WRITE
from sm.plugins.forges.rest.shapes import (
    Comparison,
    File,
    IssueShape,
    Label,
    PullShape,
    Repository,
    User,
)
from sm.plugins.forges.rest.status import StatusPart
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.request import Params

T = TypeVar("T")

OPENED = {"open": "opened", "closed": "all"}
"""GitLab's words for states. What is merged is not among what is closed, so all is asked for."""
EVENTS = {"open": "reopen", "closed": "close"}


class GitlabReader(GitlabProject):
    """A project on GitLab with all that a forge is asked for."""

    oldest_first: ClassVar[Params] = {"order_by": "created_at", "sort": "asc"}
    colour: ClassVar[str] = "#8c8c8c"

    def repository_shape(self, purpose: str, ident: int = 0) -> Repository:
        """The repository: the one of this name, or whatever the one with that id is called."""
        path = f"/projects/{ident}" if ident else self.at
        return make_repository(self.web.get(path, purpose).read(ProjectJson))

    def has_merge_trains(self) -> bool:
        """Whether the project merges by merge trains."""
        return self.web.get(self.at, READ).read(ProjectJson).merge_trains_enabled

    # People

    def list_writers(self) -> Iterator[User]:
        """Everyone who may push: here and in the groups above, by invitation, too."""
        for member in self.entries("/members/all", Member, {}, TRUST):
            if _may_push(member):
                yield User(member.username)

    def may_push(self, author: str) -> bool:
        """Whether the account may push. The query finds parts of names as well."""
        found = self.entries("/members/all", Member, {"query": author}, TRUST)
        return any(member.username == author and _may_push(member) for member in found)

    # Issues

    def issue_shape(self, number: int) -> IssueShape:
        """An issue as the forge has it; NotFoundError if there is none."""
        return make_issue_shape(self.ask(f"/issues/{number}", IssueJson, f"issue {number}"))

    def issue_shapes(self, state: IssueState | None, labels: Iterable[str]) -> Iterator[IssueShape]:
        """The issues in that state that have the labels."""
        word = STATES[state]
        asked: dict[str, str | int] = {"state": "opened" if word == "open" else word}
        asked |= self.oldest_first
        if wanted := ",".join(labels):
            asked["labels"] = wanted
        return map(make_issue_shape, self.entries("/issues", IssueJson, asked))

    def add_issue(self, title: str, body: str, labels: Iterable[str]) -> IssueShape:
        """File an issue. A label that is unknown is made."""
        data = {
            "title": shorten_title(title),
            "description": defuse(body),
            "labels": ",".join(labels),
        }
        answer = self.web.write("POST", f"{self.at}/issues", WRITE, data)
        return make_issue_shape(answer.read(IssueJson))

    def change_issue(self, number: int, changes: dict[str, str]) -> IssueShape:
        """Change its `title`, `body` or `state`."""
        data = {"title": shorten_title(changes["title"])} if "title" in changes else {}
        if "body" in changes:
            data["description"] = defuse(changes["body"])
        if "state" in changes:
            data["state_event"] = EVENTS[changes["state"]]
        return self._change(number, data)

    def _change(self, number: int, data: dict[str, str]) -> IssueShape:
        answer = self.web.write("PUT", f"{self.at}/issues/{number}", WRITE, data)
        return make_issue_shape(answer.read(IssueJson))

    def add_label(self, number: int, label: str) -> list[Label]:
        """Give an issue a label; all that it has then. One that is unknown is made."""
        names = self._change(number, {"add_labels": label}).labels
        return [Label(name) for name in names if isinstance(name, str)]

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue."""
        self._change(number, {"remove_labels": label})

    def comments_path(self, number: int, *, on_pull: bool) -> str:
        """Return where the comments are: pull requests have numbers of their own."""
        return f"{self.at}/{'merge_requests' if on_pull else 'issues'}/{number}/notes"

    def comment_data(self, body: str) -> dict[str, str]:
        """A comment that is no command."""
        return {"body": defuse(body)}

    def comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments on an issue or a pull request, oldest first; none on lines."""
        path = self.comments_path(number, on_pull=on_pull).removeprefix(self.at)
        return self.make_comments(self.entries(path, Note, {"sort": "asc"}))

    def make_comments(self, notes: Iterable[Note]) -> tuple[Comment, ...]:
        """Make comments of what people have said among these notes."""
        said = (make_comment_shape(one) for one in notes if not one.system and not one.position)
        return space_out(make_comment(one, self.account) for one in said)

    # Pull requests

    def pull_shape(self, number: int) -> PullShape:
        """A pull request as the forge has it."""
        return make_pull_shape(self.request(number))

    def pull_shapes(self, asked: Params, purpose: str = READ) -> Iterator[PullShape]:
        """The pull requests of a list."""
        state = str(asked.get("state", "all"))
        params = {**asked, "state": OPENED.get(state, state)}
        found = self.entries("/merge_requests", MergeRequest, params, purpose)
        return map(make_pull_shape, found)

    def pulls_of(self, branch: str, state: str) -> Iterable[PullShape]:
        """The pull requests of a branch; those of forks may be among them."""
        return self.pull_shapes({"state": state, "source_branch": branch})

    def pull(self, number: int) -> PullRequest:
        """A pull request with its reviews, without texts of others and without its check."""
        request = self.request(number)
        return hold_back(make_pull(make_pull_shape(request), self.reviews(number)), request)

    def whole_pull(self, number: int) -> PullRequest:
        """A pull request with the texts of all. GitLab says itself which threads are settled."""
        request = self.request(number)
        threads = list(self.entries(f"/merge_requests/{number}/discussions", ThreadJson))
        notes = [one for thread in threads for one in thread.notes]
        found, claimed = reviews.read_reviews(self, number, threads)
        loose = (one for one in notes if one.id not in claimed)
        pull = make_pull(make_pull_shape(request), found, self.make_comments(loose))
        return add_removal(hold_back(pull, request), notes)

    def reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews that stand, without their texts."""
        return tuple(shorten(one, hash_review(one)) for one in self.whole_reviews(number))

    def whole_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews that stand, with their texts; GitLab says itself what is settled."""
        return reviews.read_reviews(self, number)[0]

    def offer(
        self, branch: str, base: str, title: str, body: str, landed: Callable[[], bool]
    ) -> PullShape | None:
        """Open a pull request; None if one was opened by a try whose answer was lost.

        Raises:
            NothingToMergeError: the branch has no commits of its own, which GitLab would allow.

        """
        refuse_nothing(self, branch, base)
        data = {
            "title": title_pull(title),
            "description": defuse(body),
            "source_branch": branch,
            "target_branch": base,
        }
        answer = self.web.make(f"{self.at}/merge_requests", WRITE, data, landed)
        return make_pull_shape(answer.read(MergeRequest)) if answer else None

    def close_pull(self, number: int) -> PullShape:
        """Close a pull request."""
        path = f"{self.at}/merge_requests/{number}"
        answer = self.web.write("PUT", path, WRITE, {"state_event": "close"})
        return make_pull_shape(answer.read(MergeRequest))

    def compare(self, base: str, head: str, what: str) -> Comparison:
        """Return what `head` has that `base` lacks."""
        asked = {"from": base, "to": head}
        found = self.ask("/repository/compare", ComparisonJson, what, asked)
        return Comparison([make_file(one) for one in found.diffs], len(found.commits))

    def diffs(self, number: int) -> Iterator[Diff]:
        """Return how a pull request changes each file."""
        return self.entries(f"/merge_requests/{number}/diffs", Diff)

    def files(self, number: int) -> Iterator[File]:
        """The files that a pull request changes."""
        return map(make_file, self.diffs(number))

    # Branches and checks

    def rule_paths(self, branch: str) -> dict[str, Callable[[HttpAnswer], BranchRules]]:
        """None: what has to pass is in the pipeline, and GitLab holds what is not approved."""
        return {}

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' if there is none."""
        path = f"/repository/branches/{quote(branch, safe='')}"
        try:
            return self.ask(path, BranchJson, f"branch '{branch}'").commit.id
        except NotFoundError:
            return ""

    def parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return what CI says of a commit, as parts."""
        return ci.read_parts(self, head, ci.find_request(self, head, purpose), purpose)


def _may_push(member: Member) -> bool:
    return member.access_level >= DEVELOPER and member.state == "active"
