"""Reads many pull requests or issues at once: by GraphQL, or one by one over REST."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Raw, structs

from sm.adapters.forge.errors import MergeRefusedError, NotFoundError, RefusedError
from sm.adapters.forge.model import Check, Comment, PullRequest, PullState, Review, SourcedText
from sm.base.text import one_line
from sm.plugins.forges.github.graphql import discussion, queries
from sm.plugins.forges.github.graphql.client import (
    ANSWERED,
    NOT_TO_BE_HAD,
    QueryError,
    UnknownFieldError,
    portions,
)
from sm.plugins.forges.github.graphql.convert import UNKNOWN, make_pull, make_reviews, make_source
from sm.plugins.forges.github.graphql.shapes import EnqueueResult, IssueNode, PullNode, QueueEntry
from sm.plugins.forges.github.reader import GithubReader
from sm.plugins.forges.rest import convert
from sm.plugins.forges.rest.combine import combine
from sm.plugins.forges.rest.held import DRAFT, hold_back
from sm.plugins.forges.rest.reader import OBSERVE
from sm.plugins.forges.rest.rules import BranchRules
from sm.plugins.forges.rest.shapes import PullShape
from sm.plugins.forges.web.answer import read_part
from sm.plugins.forges.web.client import Params

ONE_BY_ONE = 40
"""Pull requests that are read whole over REST in one observation: the newest of own branches."""
DISCUSSED = 25
"""Issues whose comments are."""
CLOSED_PAGES = 4
"""Of the list of closed pull requests: those that were changed last."""
LAST_CHANGED: Params = {"state": "closed", "sort": "updated", "direction": "desc"}


class Details:
    """Of one repository."""

    def __init__(
        self, reader: GithubReader, rules: Callable[[str], BranchRules], *, has_ci: bool
    ) -> None:
        """With `has_ci`, a commit without any check is still to be checked.

        `rules` gives those of a branch.
        """
        self._reader, self._graphql, self._has_ci = reader, reader.graphql, has_ci
        self.rules = rules
        self.unsure = set[int]()
        """Open pull requests of which GitHub has not yet found out whether they conflict."""
        self.of_forks = set[str]()
        """The commits that pull requests of forks are at, as far as they are known."""

    # By GraphQL

    def pulls(self, whole: Sequence[int], brief: Sequence[int] = ()) -> dict[int, PullRequest]:
        """These pull requests by number; those `brief` are without reviews and checks."""
        try:
            return self._pulls_at_once(whole, brief)
        except NOT_TO_BE_HAD:
            return self._pulls_one_by_one(whole) | self._pulls_in_list(brief)

    def _pulls_at_once(self, whole: Sequence[int], brief: Sequence[int]) -> dict[int, PullRequest]:
        nodes, forbidden = dict[int, PullNode](), set[int]()
        asked = [(number, True) for number in whole] + [(number, False) for number in brief]
        for some in portions(asked):
            text = queries.ask_pulls(
                [number for number, is_whole in some if is_whole],
                [number for number, is_whole in some if not is_whole],
            )
            found = self._graphql.ask(text)
            nodes |= {node.number: node for node in self._read_pulls(found.there.values())}
            forbidden |= {int(alias[1:]) for alias in found.forbidden}
        self.of_forks |= {one.head_ref_oid for one in nodes.values() if one.is_cross_repository}
        return self._reader.read_each(
            nodes, lambda number: self._complete(nodes[number], number in forbidden)
        )

    def _complete(self, node: PullNode, is_forbidden: bool) -> PullRequest:
        """With all of its reviews and checks, if GraphQL has not given all of them."""
        pull = make_pull(node, self.rules, has_ci=self._has_ci)
        if node.reviews and not node.reviews.is_whole:
            pull = structs.replace(pull, reviews=self._all_reviews(node))
        is_ours = node.state == "OPEN" and node.commits and not node.is_cross_repository
        if not is_ours or not self._lacks_checks(node, is_forbidden):
            return pull
        return structs.replace(pull, check=self._check(pull))

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
        except NOT_TO_BE_HAD:
            return self._reader.reviews(node.number)

    def _check(self, pull: PullRequest) -> Check:
        """What CI says of its head, over REST."""
        parts, required = self._reader.parts(pull.head, OBSERVE), self.rules(pull.base).checks
        found = combine(parts, pull.head, expected=self._has_ci, required=required)
        return structs.replace(found, progress=pull.check.progress)

    def states(self, numbers: Sequence[int], bare: Collection[int]) -> dict[int, PullNode] | None:
        """What changes of these without a trace in a list; None if GraphQL is not to be had.

        Nothing has checked the `bare` ones yet.
        """
        found = dict[int, PullNode]()
        try:
            for some in portions(list(numbers), queries.STATES):
                there = self._graphql.ask(queries.ask_states(some, bare)).there
                found |= {node.number: node for node in self._read_pulls(there.values())}
        except NOT_TO_BE_HAD:
            return None
        return found

    def _read_pulls(self, entries: Collection[Raw]) -> Iterator[PullNode]:
        for node in self._graphql.read_each(entries, PullNode):
            self.unsure.discard(node.number)
            if node.mergeable == UNKNOWN and node.state == "OPEN":
                self.unsure.add(node.number)
            yield node

    def one(self, number: int) -> PullNode | None:
        """How it stands in the merge queue; None without GraphQL."""
        try:
            return self.read_queueing(number)
        except NOT_TO_BE_HAD:
            return None

    def read_queueing(self, number: int) -> PullNode | None:
        """The same; None if the server is known to have no merge queues, as it is too old for them.

        Raises:
            TemporaryError: GraphQL is not to be had now.

        """
        try:
            found = self._graphql.ask_one(queries.ask_queueing(number))
        except (RefusedError, UnknownFieldError):
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
        try:
            return discussion.read_comments_of(self._graphql, numbers, deep)
        except NOT_TO_BE_HAD:
            newest = sorted(numbers, reverse=True)[:DISCUSSED]
            return self._reader.read_each(
                newest, lambda number: self._reader.comments(number, purpose=OBSERVE)
            )

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

    # Over REST

    def _pulls_one_by_one(self, numbers: Sequence[int]) -> dict[int, PullRequest]:
        """All of a few; of many the own ones, and those of forks as the list has them."""
        forks = self._list_forks() if len(numbers) > ONE_BY_ONE else {}
        own = sorted(set(numbers) - set(forks), reverse=True)
        if left := own[ONE_BY_ONE:]:
            self.unsure |= {*left}
            said = f"{len(left)} pull requests were not read, as GraphQL is not to be had"
            self._reader.pass_over([said])
        found = {number: forks[number] for number in numbers if number in forks}
        return found | self._reader.read_each(own[:ONE_BY_ONE], self._read_whole)

    def _list_forks(self) -> dict[int, PullRequest]:
        listed = map(convert.make_pull, self._reader.pull_shapes({"state": "open"}, OBSERVE))
        return {pull.number: pull for pull in listed if convert.is_of_fork(pull)}

    def _pulls_in_list(self, numbers: Sequence[int]) -> dict[int, PullRequest]:
        """Closed ones."""
        if not numbers:
            return {}
        shapes = self._reader.entries("/pulls", PullShape, LAST_CHANGED, OBSERVE, CLOSED_PAGES)
        return {one.number: convert.make_pull(one) for one in shapes if one.number in numbers}

    def _read_whole(self, number: int) -> PullRequest:
        shape = self._reader.pull_shape(number)
        pull = convert.make_pull(shape, self._reader.reviews(number))
        if pull.state is PullState.OPEN:
            pull = structs.replace(pull, check=self._check(pull))
            state = DRAFT if shape.draft else shape.mergeable_state
            pull = hold_back(pull, state, "", self.rules(pull.base))
        return pull
