"""Pull requests and issues of a GitHub repository, many in one query of GraphQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Raw, structs

from sm.adapters.forge.errors import MergeRefusedError, NotFoundError
from sm.adapters.forge.model import Comment, PullRequest, Review, SourcedText
from sm.base.text import one_line
from sm.plugins.forges.github.graphql import discussion, queries
from sm.plugins.forges.github.graphql.client import (
    ANSWERED,
    AliasedAnswers,
    NoGraphqlError,
    QueryError,
    portions,
)
from sm.plugins.forges.github.graphql.convert import UNKNOWN, make_pull, make_reviews, make_source
from sm.plugins.forges.github.graphql.shapes import EnqueueResult, IssueNode, PullNode, QueueEntry
from sm.plugins.forges.github.reader import GithubReader
from sm.plugins.forges.rest.protection import BranchRules
from sm.plugins.forges.rest.reader import OBSERVE
from sm.plugins.forges.rest.status import combine
from sm.plugins.forges.web.answer import read_part


class GithubDetails:
    """Pull requests and issues of one repository."""

    def __init__(
        self, reader: GithubReader, rules: Callable[[str], BranchRules], *, has_ci: bool
    ) -> None:
        """Ask nothing yet. With `has_ci`, a commit without any check is still to be checked.

        `rules` gives those of a branch.
        """
        self._reader, self._graphql, self._has_ci = reader, reader.graphql, has_ci
        self.rules = rules
        self.unsure = set[int]()
        """Open pull requests of which GitHub has not yet found out whether they conflict."""
        self.late = set[int]()
        """Pull requests that GraphQL did not find out in time."""
        self.of_forks = set[str]()
        """The commits that pull requests of forks are at, as far as they are known."""

    def pulls(self, whole: Sequence[int], brief: Sequence[int] = ()) -> dict[int, PullRequest]:
        """Read these pull requests by number; those `brief` are without reviews and checks."""
        nodes, forbidden = dict[int, PullNode](), set[int]()
        asked = [(number, True) for number in whole] + [(number, False) for number in brief]
        for some in portions(asked):
            text = queries.ask_pulls(
                [number for number, is_whole in some if is_whole],
                [number for number, is_whole in some if not is_whole],
            )
            found = self._ask_pulls(text)
            nodes |= {node.number: node for node in self._read_pulls(found.there.values())}
            forbidden |= {int(alias[1:]) for alias in found.forbidden}
        self.of_forks |= {one.head_ref_oid for one in nodes.values() if one.is_cross_repository}
        return self._reader.read_each(
            nodes, lambda number: self._complete(nodes[number], number in forbidden)
        )

    def _complete(self, node: PullNode, is_forbidden: bool) -> PullRequest:
        """Return it with all of its reviews and checks, if GraphQL has not given all of them."""
        pull = make_pull(node, self.rules, has_ci=self._has_ci)
        if node.reviews and not node.reviews.is_whole:
            pull = structs.replace(pull, reviews=self._all_reviews(node))
        is_ours = node.state == "OPEN" and node.commits and not node.is_cross_repository
        if not is_ours or not self._lacks_checks(node, is_forbidden):
            return pull
        parts, required = self._reader.parts(pull.head, OBSERVE), self.rules(pull.base).checks
        check = combine(parts, pull.head, expected=self._has_ci, required=required)
        return structs.replace(pull, check=structs.replace(check, progress=pull.check.progress))

    def _lacks_checks(self, node: PullNode, is_forbidden: bool) -> bool:
        """Whether its checks are more than one page, or not told, or may be those of a fork."""
        contexts = node.rollup.contexts if node.rollup else None
        if is_forbidden:
            self._reader.hides_runs = True
        is_whole = contexts is None or contexts.is_whole
        return is_forbidden or not is_whole or node.head_ref_oid in self.of_forks

    def _all_reviews(self, node: PullNode) -> tuple[Review, ...]:
        """The reviews without their texts: more than one page of them."""
        try:
            return make_reviews(discussion.read_reviews(self._graphql, node.number, node.reviews))
        except discussion.UntoldReviewError:
            return self._reader.reviews(node.number)

    def states(self, numbers: Sequence[int], bare: Collection[int]) -> dict[int, PullNode]:
        """Read what changes of these pull requests without a trace in a list.

        Nothing has checked the `bare` ones yet.
        """
        found = dict[int, PullNode]()
        for some in portions(list(numbers), queries.STATES):
            there = self._ask_pulls(queries.ask_states(some, bare)).there
            found |= {node.number: node for node in self._read_pulls(there.values())}
        return found

    def _ask_pulls(self, text: str) -> AliasedAnswers:
        """The pull requests of a query. Those that took GraphQL too long are asked for again."""
        found = self._graphql.ask(text, partly=True)
        late = {int(alias[1:]) for alias in found.late}
        self.unsure |= late
        self.late |= late
        for alias, why in found.late.items():
            self._reader.pass_over([f"number {alias[1:]} is passed over: {why}"])
        return found

    def _read_pulls(self, entries: Collection[Raw]) -> Iterator[PullNode]:
        for node in self._graphql.read_each(entries, PullNode):
            self.unsure.discard(node.number)
            if node.mergeable == UNKNOWN and node.state == "OPEN":
                self.unsure.add(node.number)
            yield node

    def read_queueing(self, number: int) -> PullNode | None:
        """Read its place in the merge queue; None if the server is too old to have such queues.

        Raises:
            TemporaryError: GraphQL is not to be had now.

        """
        try:
            found = self._graphql.ask_one(queries.ask_queueing(number))
        except NoGraphqlError:
            return None
        if found is None:
            raise QueryError(f"GraphQL does not say how pull request {number} is to be merged")
        return found

    def enqueue(self, node: PullNode, head: str) -> QueueEntry:
        """Put it into the merge queue, if it is still at `head`.

        Raises:
            MergeRefusedError: GitHub does not take it.
            TemporaryError: it takes no more queries for now.

        """
        asked = {"input": {"pullRequestId": node.id, "expectedHeadOid": head}}
        found = self._graphql.send(queries.ENQUEUE, EnqueueResult, asked)
        made = found.data.enqueue_pull_request if found.data else None
        if made is None:
            words = (found.faults[0].message if found.faults else "") or "it does not say why"
            said = one_line(words, 300)
            raise MergeRefusedError(f"GitHub does not queue pull request {node.number}: {said}")
        return made.merge_queue_entry or QueueEntry()

    def comments(
        self, numbers: Sequence[int], deep: Collection[int]
    ) -> dict[int, tuple[Comment, ...]]:
        """The last comments on these issues, and more of those on the `deep` ones."""
        return discussion.read_comments_of(self._graphql, numbers, deep)

    def read_comments(self, number: int, *, on_pull: bool) -> tuple[Comment, ...]:
        """The last comments on an issue or pull request. REST does not say who has edited them.

        Raises:
            NotFoundError: there is no such thing.
            QueryError: GraphQL is not to be had now.

        """
        kind = "PullRequest" if on_pull else "Issue"
        if (found := discussion.read_comments(self._graphql, kind, number)) is None:
            raise NotFoundError(f"there is no {number} in '{self._reader.repository}'")
        return found

    def source(self, number: int) -> SourcedText:
        """Title and text of an issue with who saved them last. REST does not say that.

        Raises:
            NotFoundError: there is no such issue.
            QueryError: GraphQL is not to be had now.

        """
        for data in self._graphql.ask(queries.ask_source(number)).there.values():
            found = make_source(read_part(data, IssueNode, ANSWERED))
            spelled = {self._reader.spell(name): by for name, by in found.labelled.items()}
            return structs.replace(found, labelled=spelled)
        raise NotFoundError(f"there is no issue {number} in '{self._reader.repository}'")

    def reviews(self, number: int, first: Collection[str] = ()) -> tuple[Review, ...]:
        """The reviews of a pull request with their texts, and who has edited these.

        If there are too many texts, those of who may push and of the people in `first` are read.

        Raises:
            NotFoundError: there is no such pull request.
            QueryError: GraphQL is not to be had now. REST does not say who has edited a text.

        """
        if (found := discussion.read_whole_reviews(self._graphql, number, first)) is None:
            raise NotFoundError(f"there is no pull request {number} in '{self._reader.repository}'")
        return found
