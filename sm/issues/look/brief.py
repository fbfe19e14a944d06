"""Brief copies of issues and pull requests, for deciding: no long text, whatever its length.

A text is looked up on the forge when a person or an agent is to read it: see `compose`.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from sm.adapters.forge.model import (
    Check,
    Comment,
    Issue,
    IssueState,
    PullRequest,
    Review,
    ReviewState,
    hash_review,
    hash_text,
)
from sm.base.errors import StateError
from sm.base.issue_id import spell

NAME_LIMIT = 300
"""Greatest number of characters of a title, an author, a step of CI."""
COMMENTS_LIMIT = 500
"""Greatest number of comments of an issue whose authors and times are kept: the last ones."""
DEPENDENCIES_LIMIT = 1000
ASSIGNEES_LIMIT = 10


def brief_issue(issue: Issue, labels: Collection[str]) -> Issue:
    """Return an issue without texts: dependencies, times and authors of comments, some `labels`.

    Raises:
        StateError: it depends on more issues than anyone could mean.

    """
    is_open = issue.state is IssueState.OPEN
    return structs.replace(
        issue,
        title=cut(issue.title),
        author=cut(issue.author),
        labels=tuple(label for label in issue.labels if label in labels),
        waits=cut(issue.waits),
        body=_write_dependencies(issue) if is_open else "",
        comments=tuple(map(_brief_comment, issue.comments[-COMMENTS_LIMIT:])) if is_open else (),
        assignees=tuple(map(cut, issue.assignees[:ASSIGNEES_LIMIT])) if is_open else (),
        text_hash=(issue.text_hash or hash_text(issue.title, issue.body)) if is_open else "",
    )


def _write_dependencies(issue: Issue) -> str:
    needed = dict.fromkeys(issue.dependencies())
    if len(needed) > DEPENDENCIES_LIMIT:
        raise StateError(
            f"issue {spell(issue.number)} depends on {len(needed):,} issues, "
            f"{DEPENDENCIES_LIMIT:,} are "
            "allowed: it is passed over until it names fewer"
        )
    return "\n".join(f"Depends on {spell(number)}" for number in needed)


def _brief_comment(comment: Comment) -> Comment:
    author, marker, editor = cut(comment.author), cut(comment.marker), cut(comment.editor)
    return structs.replace(comment, body="", author=author, marker=marker, editor=editor)


def brief_pull(pull: PullRequest) -> PullRequest:
    """Return a pull request without texts, with what CI says of its head, in short."""
    return structs.replace(
        pull,
        title=cut(pull.title),
        author=cut(pull.author),
        body="",
        comments=(),
        reviews=_verdicts(pull.reviews),
        check=_brief_check(pull.check),
        held=cut(pull.held),
        touched=cut(pull.touched),
    )


def _brief_check(check: Check) -> Check:
    return structs.replace(check, step=cut(check.step), url=cut(check.url, 2000), log="", file="")


def _verdicts(reviews: tuple[Review, ...]) -> tuple[Review, ...]:
    """Return each reviewer's latest review that is more than a remark: only those decide."""
    latest: dict[str, Review] = {}
    for review in sorted(reviews, key=lambda review: review.at):
        if review.state is not ReviewState.COMMENTED:
            latest[review.author] = structs.replace(
                review,
                author=cut(review.author),
                body="",
                comments=(),
                editor="",
                revision=review.revision or hash_review(review),
            )
    return tuple(latest.values())


def cut(text: str, limit: int = NAME_LIMIT) -> str:
    """Return `text`; the end of one that is too long is replaced by '…'."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
