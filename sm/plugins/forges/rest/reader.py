"""Reads single things of a repository over REST: what GitHub, Forgejo and Gitea have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar
from urllib.parse import quote

from sm.adapters.forge.errors import NotFoundError, RefusedError
from sm.adapters.forge.model import Comment, Issue, IssueState, PullRequest, Review
from sm.plugins.forges.rest.convert import (
    make_comment,
    make_issue,
    make_pull,
    make_reviews,
    read_login,
    shorten,
    space_out,
)
from sm.plugins.forges.rest.protection import BranchRules, name_checks
from sm.plugins.forges.rest.shapes import (
    METHODS,
    Branch,
    CommentShape,
    Comparison,
    File,
    InlineShape,
    IssueShape,
    Label,
    Permission,
    PullShape,
    Repository,
    ReviewShape,
    Rule,
    RuleParameters,
    User,
)
from sm.plugins.forges.rest.status import StatusPart
from sm.plugins.forges.web.answer import AnswerPage, HttpAnswer, has_next, read_page
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import BadShapeError, MovedAwayError
from sm.plugins.forges.web.request import Params

R = TypeVar("R")
T = TypeVar("T")

GONE = (404, 410)
PAGE = 100
PAGES = 50
"""Pages of a list; what is beyond them is left out."""
NEWEST = 10
"""Pull requests of one branch that are looked at: the last ones."""
OBSERVE = "observe"
"""The purpose of the requests for an observation."""
READ = "read"
"""The purpose of a request that is for a text or a single thing."""
WRITE, COMMENT = "write", "comment"
"""Purposes of requests that change something."""
TRUST = "trust"
"""Purpose of a request for people."""
STATES = {None: "all", IssueState.OPEN: "open", IssueState.CLOSED: "closed"}
WRITERS = ("admin", "write", "owner", "maintain")
"""The words for those who may push."""


class RestReader:
    """One repository, `OWNER/NAME`, as the account of the token sees it.

    It has each request that another forge words otherwise; when to send it, is said elsewhere.
    """

    def __init__(self, web: ForgeClient, repository: str) -> None:
        """`repository` is its present name."""
        self.web, self.repository = web, repository
        self.at = f"/repos/{quote(repository, safe='/')}"
        self._passed_over: list[str] = []

    @cached_property
    def account(self) -> str:
        """Our account: what it has written may bear our marks."""
        return read_login(self.web.get("/user", READ).read(User))

    def repository_shape(self, purpose: str, ident: int = 0) -> Repository:
        """The repository: the one of this name, or whatever the one with that id is called."""
        return self.web.get(f"/repositories/{ident}" if ident else self.at, purpose).read(
            Repository
        )

    def ask(
        self,
        path: str,
        shape: type[T],
        what: str,
        params: Params | None = None,
        purpose: str = READ,
    ) -> T:
        """Read `path` below the repository; NotFoundError names `what` if it is missing."""
        try:
            return self.web.get(f"{self.at}{path}", purpose, params).read(shape)
        except RefusedError as error:
            if error.status in GONE:
                away = f": {error.said}" if isinstance(error, MovedAwayError) else ""
                raise NotFoundError(f"there is no {what} in '{self.repository}'{away}") from None
            raise

    def entries(
        self,
        path: str,
        shape: type[T],
        params: Params | None = None,
        purpose: str = READ,
        most: int = PAGES,
    ) -> Iterator[T]:
        """Every entry of a list below the repository, of at most so many pages."""
        seen = 0
        for number in range(1, most + 1):
            page = self.page(path, shape, params or {}, purpose, number)
            yield from page.found
            seen += page.size
            if not self.has_more(page, seen):
                return

    def page(
        self, path: str, shape: type[T], params: Params, purpose: str, number: int = 1
    ) -> AnswerPage[T]:
        """Page `number` of a list below the repository.

        What cannot be read is noted and passed over, so that it stands in the way of no other.
        Only reviews decide together: one that cannot be read may be the one that counts, so it
        makes the whole page unreadable.
        """
        is_apart = shape in self.apart

        def ask(number: int, size: int) -> AnswerPage[T]:
            asked = {self.size_key: size, "page": number, **params}
            answer = self.web.get(f"{self.at}{path}", purpose, asked)
            if is_apart:
                return answer.read_page(shape)
            found = answer.read(list[shape])  # type: ignore[valid-type]  # built from an argument
            return AnswerPage(found, len(found), headers=answer.headers)

        page = read_page(ask, number, self.page_size)
        if page.bad and not is_apart:
            raise BadShapeError(page.bad[0])
        self.pass_over(page.bad)
        return page

    def has_more(self, page: AnswerPage[T], seen: int = 0) -> bool:
        """Whether there may be another page, with `seen` entries up to this one."""
        return page.size > 0 and (page.headers is None or self.tells_more(page.headers, seen))

    def tells_more(self, headers: Mapping[str, str], seen: int) -> bool:
        """Whether an answer with these headers has another page behind it."""
        return has_next(headers)

    size_key: ClassVar[str] = "per_page"
    """The parameter for the entries of a page."""
    page_size: ClassVar[int] = PAGE
    """Entries of a full page."""
    apart: ClassVar[frozenset[type]] = frozenset(
        {IssueShape, PullShape, CommentShape, InlineShape, Label, File, User}
    )
    """The shapes of entries of which each is read for itself."""

    def pass_over(self, reasons: Iterable[str]) -> None:
        """Note what could not be read, and why."""
        self._passed_over += reasons

    def read_each(self, numbers: Iterable[int], read: Callable[[int], R]) -> dict[int, R]:
        """Return what `read` returns for each number, without those that are gone.

        One of which it cannot read all is passed over.
        """
        found = dict[int, R]()
        for number in numbers:
            try:
                found[number] = read(number)
            except BadShapeError as error:
                self.pass_over([f"number {number} is passed over: {error.message}"])
            except NotFoundError:
                continue
            except RefusedError as error:
                if error.status not in GONE:
                    raise
        return found

    def take_passed_over(self) -> list[str]:
        """Return what was passed over since this was asked last."""
        found, self._passed_over = self._passed_over, []
        return found

    oldest_first: ClassVar[Params] = {"sort": "created", "direction": "asc"}
    """Parameters for a list in the order of its numbers."""
    lists_writers: ClassVar[bool] = True
    """Whether the forge can list those who may push, and no others."""

    def labels(self) -> Iterator[Label]:
        """Every label that an issue of the repository can have."""
        return self.entries("/labels", Label)

    def label_ref(self, label: str) -> str | int:
        """Return what stands for a label in a request: here its name."""
        return label

    colour: ClassVar[str] = "8c8c8c"
    """Colour of a label that is made, as the forge writes it."""

    def make_label(self, name: str) -> Label:
        """Make a label."""
        data = {"name": name, "color": self.colour}
        return self.web.write("POST", f"{self.at}/labels", WRITE, data).read(Label)

    # People

    def list_writers(self) -> Iterator[User]:
        """Everyone who may push."""
        return self.entries("/collaborators", User, {"permission": "push"}, TRUST)

    def may_push(self, author: str) -> bool:
        """Whether the account may push; RefusedError if the forge does not know it."""
        path = f"{self.at}/collaborators/{quote(author, safe='')}/permission"
        return self.web.get(path, TRUST).read(Permission).permission in WRITERS

    # Issues

    def issue_shapes(self, state: IssueState | None, labels: Iterable[str]) -> Iterator[IssueShape]:
        """The issues in that state that have the labels; others may be among them."""
        asked = {"state": STATES[state], **self.oldest_first}
        if wanted := ",".join(labels):
            asked["labels"] = wanted
        return self.entries("/issues", IssueShape, asked)

    def add_issue(self, title: str, body: str, labels: Iterable[str]) -> IssueShape:
        """File an issue."""
        refs = [self.label_ref(label) for label in labels]
        data = {"title": title, "body": body, "labels": refs}
        return self.web.write("POST", f"{self.at}/issues", WRITE, data).read(IssueShape)

    def change_issue(self, number: int, changes: dict[str, str]) -> IssueShape:
        """Change its `title`, `body` or `state`."""
        answer = self.web.write("PATCH", f"{self.at}/issues/{number}", WRITE, changes)
        return answer.read(IssueShape)

    def add_label(self, number: int, label: str) -> list[Label]:
        """Give an issue a label; all that it has then. One that is unknown is made."""
        data = {"labels": [self.label_ref(label)]}
        path = f"{self.at}/issues/{number}/labels"
        return self.web.write("POST", path, WRITE, data, harmless=True).read(list[Label])

    def remove_label(self, number: int, label: str) -> None:
        """Take a label off an issue, or find that it was taken off."""
        ref = quote(str(self.label_ref(label)), safe="")
        self.web.write("DELETE", f"{self.at}/issues/{number}/labels/{ref}", WRITE, accept=(404,))

    def comments_path(self, number: int, *, on_pull: bool) -> str:
        """Return where the comments are. Here pull requests and issues have the same numbers."""
        return f"{self.at}/issues/{number}/comments"

    def spell(self, label: str) -> str:
        """A label as it is configured, where the forge takes another spelling for the same."""
        return label

    def make_issue(self, shape: IssueShape, comments: Sequence[Comment] = ()) -> Issue:
        """An issue with these comments."""
        return make_issue(shape, comments, self.spell)

    def issue_shape(self, number: int) -> IssueShape:
        """An issue as the forge has it; NotFoundError if there is none, or a pull request."""
        found = self.ask(f"/issues/{number}", IssueShape, f"issue {number}")
        if found.pull_request is not None:
            raise NotFoundError(f"{number} is a pull request and no issue")
        return found

    def issue(self, number: int) -> Issue:
        """An issue with its comments."""
        shape = self.issue_shape(number)
        return self.make_issue(shape, self.comments(number) if shape.comments else ())

    def is_missing(self, number: int) -> bool:
        """Whether a comment has failed as its issue is missing: most forges say so, with a 404."""
        return False

    def comment_data(self, body: str) -> dict[str, str]:
        """A comment as the forge takes it."""
        return {"body": body}

    def comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments on an issue or a pull request, oldest first."""
        found = self.entries(f"/issues/{number}/comments", CommentShape)
        return space_out(make_comment(one, self.account) for one in found)

    # Pull requests

    def pull_shape(self, number: int) -> PullShape:
        """A pull request as the forge has it."""
        return self.ask(f"/pulls/{number}", PullShape, f"pull request {number}")

    def settled_shape(self, number: int) -> PullShape:
        """Return a pull request once the forge had time to find out about a conflict."""
        return self.pull_shape(number)

    def pull_shapes(self, asked: Params, purpose: str = READ) -> Iterator[PullShape]:
        """The pull requests of a list."""
        return self.entries("/pulls", PullShape, asked, purpose)

    def pulls_of(self, branch: str, state: str) -> Iterable[PullShape]:
        """The last pull requests of a branch; others may be among them."""
        owner = self.repository.partition("/")[0]
        asked: dict[str, str | int] = {
            "head": f"{owner}:{branch}",
            "state": state,
            "per_page": NEWEST,
            "sort": "created",
            "direction": "desc",
        }
        return self.web.get(f"{self.at}/pulls", READ, asked).read_page(PullShape).found

    def offer(
        self, branch: str, base: str, title: str, body: str, landed: Callable[[], bool]
    ) -> PullShape | None:
        """Open a pull request; None if one was opened by a try whose answer was lost."""
        data = {"title": title, "head": branch, "base": base, "body": body}
        answer = self.web.make(f"{self.at}/pulls", WRITE, data, landed)
        return answer.read(PullShape) if answer else None

    def close_pull(self, number: int) -> PullShape:
        """Close a pull request."""
        data = {"state": "closed"}
        return self.web.write("PATCH", f"{self.at}/pulls/{number}", WRITE, data).read(PullShape)

    def compare(self, base: str, head: str, what: str) -> Comparison:
        """Return what `head` has that `base` lacks."""
        names = "...".join(quote(name, safe="") for name in (base, head))
        return self.ask(f"/compare/{names}", Comparison, what)

    def files(self, number: int) -> Iterator[File]:
        """The files that a pull request changes."""
        return self.entries(f"/pulls/{number}/files", File)

    def pull(self, number: int) -> PullRequest:
        """A pull request with its reviews, without texts of others and without its check."""
        return make_pull(self.pull_shape(number), self.reviews(number))

    def whole_pull(self, number: int) -> PullRequest:
        """A pull request with its reviews and comments, and the texts of all."""
        shape = self.pull_shape(number)
        return make_pull(shape, self.whole_reviews(number), self.comments(number))

    def reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews that stand, without their texts."""
        found = make_reviews(self.entries(f"/pulls/{number}/reviews", ReviewShape))
        return tuple(map(shorten, found))

    def whole_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews that stand, with their texts."""
        found = list(self.entries(f"/pulls/{number}/reviews", ReviewShape))
        return make_reviews(found, self.inline(number, found) if found else ())

    def inline(self, number: int, reviews: Iterable[ReviewShape]) -> Iterable[InlineShape]:
        """The remarks on lines, of all these reviews."""
        return self.entries(f"/pulls/{number}/comments", InlineShape)

    # Branches and checks

    def rule_paths(self, branch: str) -> dict[str, Callable[[HttpAnswer], BranchRules]]:
        """Return where a branch has its rules, and how to read them: protection, and rulesets."""
        name = quote(branch, safe="/")
        return {
            f"{self.at}/branches/{name}": _read_protection,
            f"{self.at}/rules/branches/{name}?per_page={PAGE}": _read_rulesets,
        }

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' if there is none."""
        try:
            found = self.ask(f"/branches/{quote(branch, safe='/')}", Branch, f"branch '{branch}'")
        except NotFoundError:
            return ""
        return found.commit.sha or found.commit.id

    def parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return what every status and check run says of a commit."""
        return [*self.status_parts(head, purpose), *self.run_parts(head, purpose)]

    def status_parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return the statuses of a commit as parts."""
        return []

    def run_parts(self, head: str, purpose: str = READ) -> list[StatusPart]:
        """Return the check runs of a commit as parts."""
        return []


def _read_methods(kind: str, asked: RuleParameters) -> tuple[str, ...]:
    """Read how a rule of GitHub's lets the branch be merged into."""
    if kind == "required_linear_history":
        return ("squash", "rebase")
    allowed = asked.allowed_merge_methods
    return METHODS if allowed is None else tuple(one for one in METHODS if one in allowed)


def _read_protection(answer: HttpAnswer) -> BranchRules:
    """Read the checks that a branch's protection requires; it tells administrators the rest."""
    found = answer.read(Branch).protection
    required = found.required_status_checks if found else None
    if required is None:
        return BranchRules()
    names = [*required.contexts, *(one.context for one in required.checks)]
    return BranchRules(name_checks(list(dict.fromkeys(names))))


def _read_rulesets(answer: HttpAnswer) -> BranchRules:
    """Read what all rulesets together ask for."""
    found = BranchRules()
    for rule in answer.read_page(Rule).found:
        asked = rule.parameters or RuleParameters()
        found = found.join(
            BranchRules(
                name_checks([one.context for one in asked.required_status_checks]),
                asked.required_approving_review_count,
                asked.require_code_owner_review,
                asked.required_review_thread_resolution,
                asked.require_last_push_approval,
                _read_methods(rule.type, asked),
            )
        )
    return found
