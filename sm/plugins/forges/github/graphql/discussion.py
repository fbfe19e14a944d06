"""Reads what people have said on GitHub, however much of it strangers have written between.

Whoever has an account may comment and review. So lists are paged to their end, texts that are too
long for one answer are asked for in smaller portions, and those of trusted people come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from sm.adapters.forge.model import Comment, Review
from sm.plugins.forges.github.graphql import queries
from sm.plugins.forges.github.graphql.client import Graphql, QueryError, portions
from sm.plugins.forges.github.graphql.convert import (
    add_texts,
    list_settled,
    make_comments,
    make_reviews,
    read_actor,
)
from sm.plugins.forges.github.graphql.shapes import (
    CommentNode,
    CommentPage,
    IssueNode,
    Remark,
    Remarks,
    ReviewNode,
    Reviews,
    ReviewThread,
    Threads,
    there,
)
from sm.plugins.forges.web.errors import TooLongError

T = TypeVar("T")
P = TypeVar("P", Reviews, Threads, Remarks)

SIZE = 100
"""Entries of a page."""
PAGES = 50
"""Most pages of reviews and threads."""
COMMENT_PAGES = 5
"""Most pages of comments: the last ones."""
REVIEWS = 20
"""Reviews whose texts are in one query."""
OTHERS = 100
"""Reviews of people who may not push whose texts are read: the last ones."""


class UntoldReviewError(QueryError):
    """A review in a list is null: REST says of this pull request what it is."""


# Comments


def read_comments_of(
    graphql: Graphql, numbers: Sequence[int], deep: Collection[int]
) -> dict[int, tuple[Comment, ...]]:
    """The last comments on these issues; on the `deep` ones so many pages of them."""
    found = dict[int, tuple[Comment, ...]]()
    for some in portions(list(numbers)):
        found |= _read_portion(graphql, some, deep)
    return found


def _read_portion(
    graphql: Graphql, numbers: Sequence[int], deep: Collection[int]
) -> dict[int, tuple[Comment, ...]]:
    """Read the comments on these issues; of fewer at once, down to one, while they are too long."""
    try:
        nodes = graphql.ask_issues(queries.ask_comments("Issue", numbers))
    except TooLongError:
        half = len(numbers) // 2
        if half:
            few, others = numbers[:half], numbers[half:]
            return _read_portion(graphql, few, deep) | _read_portion(graphql, others, deep)
        said = read_comments(graphql, "Issue", numbers[0])
        return {} if said is None else {numbers[0]: said}
    return {node.number: make_comments(_all_comments(graphql, node, deep)) for node in nodes}


def _all_comments(graphql: Graphql, node: IssueNode, deep: Collection[int]) -> list[CommentNode]:
    page = node.comments or CommentPage()
    if node.number not in deep or not page.page_info.has_previous_page:
        return there(page.nodes)
    return _read_before(graphql, "Issue", node.number, page)


def read_comments(graphql: Graphql, kind: str, number: int) -> tuple[Comment, ...] | None:
    """The last pages of comments on an issue or a pull request; None if there is no such thing."""
    size = SIZE
    while True:
        try:
            found = graphql.ask_issues(queries.ask_comments(kind, [number], size))
            break
        except TooLongError:
            if size == 1:
                raise
            size //= 2
    for node in found:
        return make_comments(_read_before(graphql, kind, number, node.comments or CommentPage()))
    return None


def _read_before(graphql: Graphql, kind: str, number: int, page: CommentPage) -> list[CommentNode]:
    """The comments of the page and of those before it, oldest first."""
    found, size = there(page.nodes), SIZE
    while page.page_info.has_previous_page and len(found) < COMMENT_PAGES * SIZE:
        cursor = page.page_info.start_cursor or ""
        try:
            nodes = graphql.ask_issues(
                queries.ask_comments_before(kind, number, size), cursor=cursor
            )
        except TooLongError:
            if size == 1:
                break
            size //= 2
            continue
        page = (nodes[0].comments if nodes else None) or CommentPage()
        found = [*there(page.nodes), *found]
    return found


# Reviews


def read_reviews(graphql: Graphql, number: int, page: Reviews | None) -> list[ReviewNode]:
    """The reviews of the page and of those before it, without their texts, oldest first.

    Raises:
        UntoldError: one of them is not told: it may be the one that decides.

    """

    def ask(cursor: str) -> Reviews:
        node = graphql.ask_one(queries.ask_reviews_before(number), cursor=cursor)
        return (node.reviews if node else None) or Reviews()

    pages = _page_on(page or Reviews(), ask)
    return [one for each in reversed(list(pages)) for one in _told(each.nodes)]


def _page_on(page: P, ask: Callable[[str], P]) -> Iterator[P]:
    """The page and those beyond it, in the direction in which it has been asked for."""
    yield page
    for _ in range(PAGES):
        if (cursor := page.page_info.beyond) is None:
            return
        page = ask(cursor)
        yield page


def _told(nodes: Sequence[T | None] | None) -> list[T]:
    found = there(nodes)
    if nodes is None or len(found) < len(nodes):
        raise UntoldReviewError("GraphQL does not tell all reviews")
    return found


def read_whole_reviews(
    graphql: Graphql, number: int, first: Collection[str]
) -> tuple[Review, ...] | None:
    """The reviews that stand, with their texts, without threads that are settled.

    Of people who may not push, and are not named in `first`, only the last reviews have texts.
    None if there is no such pull request.
    """
    if (node := graphql.ask_one(queries.ask_reviews(number))) is None:
        return None
    nodes = read_reviews(graphql, number, node.reviews)
    settled = list_settled(_read_threads(graphql, number, node.review_threads or Threads()))
    ids = _choose(nodes, first)
    texts = _read_texts(graphql, ids)
    remarks = {ident: _read_remarks(graphql, one) for ident, one in texts.items()}
    names = {one.id: str(one.full_database_id or 0) for one in nodes}
    return add_texts(
        make_reviews(nodes),
        {names[ident]: one for ident, one in texts.items() if ident in names},
        {names[ident]: said for ident, said in remarks.items() if ident in names},
        settled,
    )


def _choose(nodes: Sequence[ReviewNode], first: Collection[str]) -> list[str]:
    """The ids of the reviews whose texts are read."""
    heard, others = list[str](), list[str]()
    for one in nodes:
        is_heard = one.author_can_push_to_repository or read_actor(one.author) in first
        (heard if is_heard else others).append(one.id)
    return [ident for ident in (*heard, *others[-OTHERS:]) if ident]


def _read_threads(graphql: Graphql, number: int, page: Threads) -> list[ReviewThread]:
    """The threads of the page and of those behind it."""

    def ask(cursor: str) -> Threads:
        node = graphql.ask_one(queries.ask_threads_after(number), cursor=cursor)
        return (node.review_threads if node else None) or Threads()

    return [one for each in _page_on(page, ask) for one in there(each.nodes)]


def _read_texts(graphql: Graphql, ids: Sequence[str]) -> dict[str, ReviewNode]:
    """The reviews with these ids, with their texts and the first page of their remarks."""
    found = dict[str, ReviewNode]()
    for some in portions(ids, REVIEWS):
        found |= _read_some_texts(graphql, some)
    return found


def _read_some_texts(graphql: Graphql, ids: Sequence[str]) -> dict[str, ReviewNode]:
    """Read the texts of fewer reviews at once while they are too long; too long a one has none."""
    try:
        nodes = graphql.ask_nodes(queries.ASK_TEXTS, ReviewNode, ids)
    except TooLongError as error:
        half = len(ids) // 2
        if half:
            return _read_some_texts(graphql, ids[:half]) | _read_some_texts(graphql, ids[half:])
        graphql.passed_over.append(f"the text of a review is passed over: {error.message}")
        return {}
    return {one.id: one for one in nodes}


def _read_remarks(graphql: Graphql, review: ReviewNode) -> list[Remark]:
    """The remarks of a review on lines: its first page, and those behind it."""

    def ask(cursor: str) -> Remarks:
        asked = queries.ASK_REMARKS_AFTER
        try:
            nodes = graphql.ask_nodes(asked, ReviewNode, [review.id], cursor=cursor)
        except TooLongError:
            return Remarks()
        return (nodes[0].comments if nodes else None) or Remarks()

    pages = _page_on(review.comments or Remarks(), ask)
    return [one for each in pages for one in there(each.nodes)]
