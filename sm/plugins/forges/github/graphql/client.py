"""Sends GraphQL queries to GitHub, and reads what they found. It has a limit of its own."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Raw, Struct

from sm.adapters.forge.errors import RefusedError
from sm.base.errors import SmError, TemporaryError
from sm.base.text import one_line
from sm.plugins.forges.github.graphql import queries
from sm.plugins.forges.github.graphql.shapes import (
    CommitNode,
    Cost,
    GraphqlAnswer,
    GraphqlFault,
    IssueNode,
    Nodes,
    PullNode,
    QueryAnswer,
    Viewed,
)
from sm.plugins.forges.rest.reader import OBSERVE
from sm.plugins.forges.web.answer import HttpAnswer, read_part
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import BadShapeError, LimitedError
from sm.plugins.forges.web.ledger import RequestCount
from sm.plugins.forges.web.limits import SECONDARY_S, RateLimit, find_wait, read_limit
from sm.plugins.forges.web.request import SentRequest

T = TypeVar("T")
Out = TypeVar("Out", bound=GraphqlAnswer)

BUCKET = "graphql"
NO_FIELD = "doesn't exist on type"
"""GraphQL's words for a field that it does not know."""
NOT_FOUND, FORBIDDEN = "NOT_FOUND", "FORBIDDEN"
LIMITED = ("RATE_LIMIT", "RATE_LIMITED", "graphql_rate_limit")
"""The words for a limit, in an answer of 200: the type of the error, an older one, and its code."""
SECONDARY = "secondary rate limit"
ANSWERED = "of GraphQL's answer"
ROLLUP = "statusCheckRollup"


class QueryError(TemporaryError):
    """GraphQL has answered with nothing but errors."""


class NoGraphqlError(SmError):
    """The server has no GraphQL for our token, or one that is older than what was asked for."""

    def __init__(self, base: str, why: str) -> None:
        super().__init__(
            f"'{base}' has no GraphQL that sm can use ({why}): sm reads GitHub by GraphQL, so let "
            "the token use it; GitHub Enterprise Server has what is needed from 3.13 on"
        )


class AliasedAnswers(Struct, frozen=True):
    """Answers under each alias that is there, still to be read.

    `forbidden` are the aliases of pull requests of which the token may not see all checks, `late`
    those that were not found out in time, with GraphQL's words.
    """

    there: Mapping[str, Raw]
    forbidden: Collection[str] = ()
    late: Mapping[str, str] = {}


def find_graphql(base: str) -> str:
    """The address of GraphQL beside that of REST; on GitHub Enterprise it is not below it."""
    return f"{base.removesuffix('/v3')}/graphql"


class Graphql:
    """GraphQL for one repository, `OWNER/NAME`."""

    def __init__(self, web: ForgeClient, repository: str) -> None:
        """Ask nothing yet."""
        self._web, self._repository = web, repository
        self.passed_over: list[str] = []
        """Things that could not be read, and why."""

    def ask(
        self, text: str, cursors: Mapping[str, str] = {}, *, partly: bool = False
    ) -> AliasedAnswers:
        """Return what a query has found; with `partly` also if one thing was not found out in time.

        Raises:
            QueryError: it has found nothing, or not all in time.

        """
        found = self.send(text, QueryAnswer, {**self._name, **cursors})
        data = found.data
        self._enter(data.rate_limit if data else None)
        if data is None or data.repository is None:
            raise self._query_error(found.faults)
        there = {alias: one for alias, one in data.repository.items() if bytes(one) != b"null"}
        nulls = set(data.repository) - set(there)
        troubles = [fault for fault in found.faults if fault.type != NOT_FOUND]
        lost = nulls - set(_list_words([one for one in found.faults if one not in troubles], nulls))
        if not troubles or (not lost and all(one.type == FORBIDDEN for one in troubles)):
            return AliasedAnswers(there, frozenset(_list_aliases(troubles)))
        late = _list_words(troubles, lost)  # what is null is there, and was not found out in time
        is_all = not there and len(data.repository) > 1
        if not partly or is_all or not late or lost != set(late):
            raise self._query_error(troubles)
        return AliasedAnswers(there, frozenset(_list_aliases(troubles)) - lost, late)

    def ask_issues(self, text: str, **cursors: str) -> list[IssueNode]:
        """The issues or pull requests with comments; what cannot be read is passed over."""
        found = self.ask(text, cursors)
        return list(self.read_each(found.there.values(), IssueNode))

    def ask_one(self, text: str, **cursors: str) -> PullNode | None:
        """The only pull request that is asked for; None if there is none."""
        for one in self.ask(text, cursors).there.values():
            return read_part(one, PullNode, ANSWERED)
        return None

    def ask_nodes(self, text: str, shape: type[T], ids: Sequence[str], **cursors: str) -> list[T]:
        """The things with these ids of GraphQL's own."""
        found = self.send(text, Nodes, {"ids": list(ids), **cursors})
        data = found.data
        self._enter(data.rate_limit if data else None)
        if data is None or data.nodes is None:
            raise self._query_error(found.faults)
        troubles = [one for one in found.faults if one.type not in (NOT_FOUND, FORBIDDEN)]
        if troubles:
            raise self._query_error(troubles)
        return list(self.read_each(data.nodes, shape))

    def read_each(self, entries: Iterable[Raw], shape: type[T]) -> Iterator[T]:
        """Yield the entries that can be read; the others are noted and passed over."""
        for data in entries:
            if bytes(data) == b"null":
                continue
            try:
                yield read_part(data, shape, ANSWERED)
            except BadShapeError as error:
                self.passed_over.append(error.message)

    def read_rollup(self, head: str) -> str:
        """The word for all checks of a commit; '' if there is none, or it is not told.

        Raises:
            QueryError: GraphQL is not to be had.

        """
        found = self.ask(queries.ask_rollup(), {"head": head})
        for one in found.there.values():
            rollup = read_part(one, CommitNode, ANSWERED).status_check_rollup
            return rollup.state if rollup else ""
        return ""

    def read_viewer(self) -> str:
        """The name of the account whose token we have, also of an app."""
        found = self.send(queries.ASK_VIEWER, Viewed, {})
        if found.data is None or found.data.viewer is None:
            raise self._query_error(found.faults)
        return found.data.viewer.login

    def _query_error(self, errors: Sequence[GraphqlFault]) -> QueryError | NoGraphqlError:
        said = one_line((errors[0].message or "") if errors else "it has no answer", 200)
        if NO_FIELD in said:
            return NoGraphqlError(self._web.base, said)
        return QueryError(f"GraphQL: {said}")

    @property
    def _name(self) -> dict[str, str]:
        owner, _, name = self._repository.partition("/")
        return {"owner": owner, "name": name}

    def send(self, text: str, shape: type[Out], variables: Mapping[str, object]) -> Out:
        """Send a query, or the one mutation: either may be sent again.

        Raises:
            LimitedError: nothing is left of its limit.
            NoGraphqlError: the server has no GraphQL for us.

        """
        self.refuse_limited()
        body = {"query": text, "variables": variables}
        where = find_graphql(self._web.base)
        asks = not text.startswith("mutation")
        request = SentRequest("POST", where, OBSERVE, body=body, harmless=True, asks=asks)
        try:
            answer = self._web.send(request)
        except RefusedError as error:
            raise NoGraphqlError(self._web.base, f"{error.status} {error.said}".strip()) from None
        found = answer.read(shape)
        for fault in found.faults:
            if fault.type in LIMITED or fault.code in LIMITED:
                raise self._limited(answer, fault)
        return found

    def refuse_limited(self) -> None:
        """Raise LimitedError if GraphQL is known to take no query now."""
        book = self._web.ledger.read()
        limit = book.limits.get(BUCKET)
        is_empty = limit and not limit.left and limit.resets_at > time.time()
        if limit and is_empty and self._web.is_limited_by(book):
            at = time.strftime("%H:%M:%S", time.localtime(limit.resets_at))
            raise LimitedError(f"GraphQL takes no more queries until {at}", limit.resets_at)

    def _limited(self, answer: HttpAnswer, fault: GraphqlFault) -> LimitedError:
        """The limit, kept so that every process spares GraphQL until its end."""
        now = time.time()
        told = read_limit(answer.headers, now)
        wait_s = find_wait(429, answer.headers, "", now)
        until = now + (wait_s or SECONDARY_S)
        if told and "retry-after" not in answer.headers:
            until = max(until, told.resets_at)
        kept = RateLimit(BUCKET, told.limit if told else 0, 0, until)
        self._web.ledger.count(OBSERVE, RequestCount(), kept, self._web.token.fingerprint)
        said = one_line(fault.message or "", 200)
        if SECONDARY in said.lower():
            self._web.ledger.block(until)  # it is counted over both interfaces
        return LimitedError(f"GraphQL takes no more queries for now: {said}", until)

    def _enter(self, cost: Cost | None) -> None:
        """Enter what the query has cost beyond the one point of each request."""
        if cost and cost.cost > 1:
            count = RequestCount(points=cost.cost - 1)
            self._web.ledger.count(OBSERVE, count, None, self._web.token.fingerprint)


def _list_aliases(faults: Iterable[GraphqlFault]) -> Iterator[str]:
    """The aliases of the things whose checks are not told."""
    for fault in faults:
        path = fault.path or []
        if ROLLUP in path and len(path) > 1:
            yield str(path[1])


def _list_words(faults: Iterable[GraphqlFault], aliases: Collection[str]) -> dict[str, str]:
    """List what GraphQL says of these aliases in the faults, as far as it does."""
    return {
        str(alias): f"GraphQL: {one_line(fault.message or '', 200)}"
        for fault in faults
        for alias in fault.path or []
        if alias in aliases
    }


def portions(things: Sequence[T], size: int = queries.ALIASES) -> Iterator[Sequence[T]]:
    """The things in queries of so many."""
    for start in range(0, len(things), size):
        yield things[start : start + size]
