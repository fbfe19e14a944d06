"""Reads many pull requests or issues at once: by GraphQL, or one by one over REST."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw, structs

from sm.adapters.forge.combine import combine
from sm.adapters.forge.errors import MergeRefusedError, NotFoundError
from sm.adapters.forge.github import queries
from sm.adapters.forge.github.convert import (
    UNKNOWN,
    make_comments,
    make_pull,
    make_source,
    make_whole_reviews,
)
from sm.adapters.forge.github.shapes import (
    Cost,
    EnqueueResult,
    Fault,
    IssueNode,
    PullNode,
    QueueEntry,
    Result,
)
from sm.adapters.forge.model import Check, Comment, PullRequest, PullState, Review, SourcedText
from sm.adapters.forge.rest import convert
from sm.adapters.forge.rest.held import hold_back
from sm.adapters.forge.rest.reader import OBSERVE, Reader
from sm.adapters.forge.rest.rules import BranchRules
from sm.adapters.forge.rest.shapes import CommentShape, PullShape
from sm.adapters.forge.web.answer import read_part
from sm.adapters.forge.web.client import Params, Request
from sm.adapters.forge.web.errors import (
    BadAnswerError,
    BadShapeError,
    LimitedError,
    RefusedError,
    TooLongError,
    UnreachableError,
)
from sm.adapters.forge.web.ledger import Count
from sm.errors import TemporaryError
from sm.text import one_line

T = TypeVar("T")

FLOOR = 100
"""With fewer points left, GraphQL is spared: REST has a limit of its own."""
ONE_BY_ONE = 40
"""Pull requests that are read whole over REST in one observation: the newest of own branches."""
DISCUSSED = 25
"""Issues whose comments are."""
CLOSED_PAGES = 4
"""Of the list of closed pull requests: those that were changed last."""
LAST_CHANGED: Params = {"state": "closed", "sort": "updated", "direction": "desc"}
BUCKET = "graphql"
NO_FIELD = "doesn't exist on type"
"""What GraphQL says of a field that it does not know."""
NOT_FOUND, RATE_LIMITED = "NOT_FOUND", "RATE_LIMITED"
ANSWERED = "of GraphQL's answer"


class QueryError(TemporaryError):
    """GraphQL has answered with nothing but errors."""


class UnknownFieldError(QueryError):
    """The server's GraphQL is older than something that was asked for."""


NOT_TO_BE_HAD = (QueryError, RefusedError, LimitedError, BadAnswerError, UnreachableError)
"""GraphQL has limits and troubles of its own. If REST fails, too, the observation has failed."""


class Details:
    """Of one repository, whose GraphQL interface is at `graphql`."""

    def __init__(
        self,
        reader: Reader,
        graphql: str,
        rules: Callable[[str], BranchRules],
        *,
        has_ci: bool,
    ) -> None:
        """With `has_ci`, a commit without any check is still to be checked.

        `rules` gives those of a branch.
        """
        self._reader, self._graphql, self._has_ci = reader, graphql, has_ci
        self.rules = rules
        self.unsure = set[int]()
        """Open pull requests of which GitHub has not yet found out whether they conflict."""

    # By GraphQL

    def pulls(self, whole: Sequence[int], brief: Sequence[int] = ()) -> dict[int, PullRequest]:
        """These pull requests by number; those `brief` are without reviews and checks."""
        try:
            return self._pulls_at_once(whole, brief)
        except NOT_TO_BE_HAD:
            return self._pulls_one_by_one(whole) | self._pulls_in_list(brief)

    def _pulls_at_once(self, whole: Sequence[int], brief: Sequence[int]) -> dict[int, PullRequest]:
        found: dict[int, PullRequest] = {}
        asked = [(number, True) for number in whole] + [(number, False) for number in brief]
        for some in _portions(asked):
            text = queries.ask_pulls(
                [number for number, is_whole in some if is_whole],
                [number for number, is_whole in some if not is_whole],
            )
            found |= self._complete_each({node.number: node for node in self._ask_pulls(text)})
        return found

    def _complete_each(self, nodes: Mapping[int, PullNode]) -> dict[int, PullRequest]:
        return self._reader.read_each(nodes, lambda number: self._complete(nodes[number]))

    def _complete(self, node: PullNode) -> PullRequest:
        """With all of its checks, if they are more than one page."""
        pull = make_pull(node, self.rules, has_ci=self._has_ci)
        contexts = node.rollup.contexts if node.rollup else None
        if contexts is None or not contexts.page_info.has_next_page:
            return pull
        return structs.replace(pull, check=self._check(pull))

    def _check(self, pull: PullRequest) -> Check:
        """What CI says of its head, over REST."""
        parts, required = self._reader.parts(pull.head, OBSERVE), self.rules(pull.base).checks
        return combine(parts, pull.head, expected=self._has_ci, required=required)

    def states(self, numbers: Sequence[int]) -> dict[int, PullNode] | None:
        """What changes of these without a trace in a list; None if GraphQL is not to be had."""
        try:
            found = [
                node
                for some in _portions(list(numbers), queries.STATES)
                for node in self._ask_pulls(queries.ask_states(some))
            ]
        except NOT_TO_BE_HAD:
            return None
        return {node.number: node for node in found}

    def one(self, number: int) -> PullNode | None:
        """How it stands in the merge queue, and its whole reviews; None without GraphQL."""
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
            for node in self._ask_pulls(queries.ask_one(number)):
                return node
        except (RefusedError, UnknownFieldError):
            return None
        raise QueryError(f"GraphQL does not say how pull request {number} is to be merged")

    def enqueue(self, node: PullNode, head: str) -> QueueEntry:
        """Put it into the merge queue, if it is still at `head`.

        Raises:
            MergeRefusedError: GitHub does not take it.

        """
        asked = {"input": {"pullRequestId": node.id, "expectedHeadOid": head}}
        found = self._send(queries.ENQUEUE, EnqueueResult, asked)
        made = found.data.enqueue_pull_request if found.data else None
        if made is None:
            said = one_line(found.errors[0].message, 300) if found.errors else "it does not say why"
            raise MergeRefusedError(f"GitHub does not queue pull request {node.number}: {said}")
        return made.merge_queue_entry or QueueEntry()

    def comments(self, numbers: Sequence[int]) -> dict[int, tuple[Comment, ...]]:
        """The last comments on these issues."""
        found = dict[int, tuple[Comment, ...]]()
        try:
            for some in _portions(list(numbers)):
                found |= self._comments_at_once(some)
        except NOT_TO_BE_HAD:
            newest = sorted(numbers, reverse=True)[:DISCUSSED]
            return self._reader.read_each(newest, self._comments_of)
        return found

    def _comments_at_once(self, numbers: Sequence[int]) -> dict[int, tuple[Comment, ...]]:
        """Those on these issues; of fewer at once, down to one, while they are too long."""
        try:
            nodes = list(self._read_nodes(queries.ask_comments(numbers), IssueNode))
        except TooLongError:
            half = len(numbers) // 2
            if not half:
                return self._reader.read_each(numbers, self._comments_of)
            return self._comments_at_once(numbers[:half]) | self._comments_at_once(numbers[half:])
        return {node.number: make_comments(node) for node in nodes}

    def read_comments(self, number: int, *, on_pull: bool) -> tuple[Comment, ...]:
        """The last comments on an issue or pull request. REST does not say who has edited them.

        Raises:
            NotFoundError: there is no such thing.
            QueryError: GraphQL is not to be had now.

        """
        ask = queries.ask_pull_comments(number) if on_pull else queries.ask_comments([number])
        for data in self._ask(ask):
            return make_comments(read_part(data, IssueNode, ANSWERED))
        raise NotFoundError(f"there is no {number} in '{self._reader.repository}'")

    def source(self, number: int) -> SourcedText:
        """Title and text of an issue with who saved them last. REST does not say that.

        Raises:
            NotFoundError: there is no such issue.
            QueryError: GraphQL is not to be had now.

        """
        for data in self._ask(queries.ask_source(number)):
            return make_source(read_part(data, IssueNode, ANSWERED))
        raise NotFoundError(f"there is no issue {number} in '{self._reader.repository}'")

    def reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews of a pull request with their texts, and who has edited these.

        Raises:
            NotFoundError: there is no such pull request.
            QueryError: GraphQL is not to be had now. REST does not say who has edited a text.

        """
        for node in self._ask_pulls(queries.ask_reviews(number)):
            return make_whole_reviews(node)
        raise NotFoundError(f"there is no pull request {number} in '{self._reader.repository}'")

    def _ask_pulls(self, text: str) -> Iterator[PullNode]:
        for node in self._read_nodes(text, PullNode):
            self.unsure.discard(node.number)
            if node.mergeable == UNKNOWN and node.state == "OPEN":
                self.unsure.add(node.number)
            yield node

    def _read_nodes(self, text: str, shape: type[T]) -> Iterator[T]:
        """What a query has found; what cannot be read is noted and passed over."""
        for data in self._ask(text):
            try:
                yield read_part(data, shape, ANSWERED)
            except BadShapeError as error:
                self._reader.pass_over([error.message])

    def _ask(self, text: str) -> list[Raw]:
        """What a query has found, still to be read."""
        found = self._send(text, Result)
        data = found.data
        self._enter(data.rate_limit if data else None)
        if data is None or data.repository is None:
            raise _query_error(found.errors)
        there = [one for one in data.repository.values() if bytes(one) != b"null"]
        troubles = [fault for fault in found.errors if fault.type != NOT_FOUND]
        is_limited = any(fault.type == RATE_LIMITED for fault in troubles)
        if is_limited or (troubles and len(there) < len(data.repository)):
            raise _query_error(troubles)  # what is null is there, and was not found out in time
        return there

    def _send(self, text: str, shape: type[T], variables: Mapping[str, object] | None = None) -> T:
        """Send a query, or the one mutation: either may be sent again.

        Raises:
            QueryError: too little is left of its limit.

        """
        web = self._reader.web
        limit = web.ledger.read().limits.get(BUCKET)
        if limit and limit.left < FLOOR and limit.resets_at > time.time():
            raise QueryError("too few points are left for GraphQL")
        owner, _, name = self._reader.repository.partition("/")
        body = {"query": text, "variables": variables or {"owner": owner, "name": name}}
        return web.send(Request("POST", self._graphql, OBSERVE, body=body, harmless=True)).read(
            shape
        )

    def _enter(self, cost: Cost | None) -> None:
        """Enter what the query has cost beyond the one point of each request."""
        if cost and cost.cost > 1:
            count = Count(points=cost.cost - 1)
            web = self._reader.web
            web.ledger.count(OBSERVE, count, None, web.token.fingerprint)

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
            pull = hold_back(pull, shape.mergeable_state, "", self.rules(pull.base))
        return pull

    def _comments_of(self, number: int) -> tuple[Comment, ...]:
        shapes = self._reader.entries(f"/issues/{number}/comments", CommentShape, {}, OBSERVE)
        return convert.space_out(convert.make_comment(one, self._reader.account) for one in shapes)


def _query_error(errors: list[Fault]) -> QueryError:
    said = errors[0].message if errors else "it has no answer"
    kind = UnknownFieldError if NO_FIELD in said else QueryError
    return kind(f"GraphQL: {one_line(said, 200)}")


def _portions(things: Sequence[T], size: int = queries.ALIASES) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]
