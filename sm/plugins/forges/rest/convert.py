"""Makes the values of `sm.adapters.forge.model` from a forge's answers. Pure.

Every word was written by others, so it is bounded here, where it enters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote, unquote

from msgspec import structs

from sm.adapters.forge.model import (
    Comment,
    InlineComment,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    Review,
    ReviewState,
)
from sm.base.foreign import LABELS, NAME_LIMIT, TITLE_LIMIT, read_time, tidy, tidy_name
from sm.plugins.forges.rest.shapes import (
    BlockersShape,
    CommentShape,
    InlineShape,
    IssueShape,
    PullShape,
    ReviewShape,
    StatusShape,
    User,
)
from sm.plugins.forges.rest.status import APPROVAL, StatusPart

MARK = re.compile(r"^<!-- sm:([A-Za-z0-9._~%-]{1,600}) -->\Z", re.MULTILINE)
"""The hidden mark by which a comment of ours is found again.

It is an HTML comment in the last line, which forges keep and do not show. Who may write at all can
write one, so a reader believes it only in what our own account has said.
"""
BODY_LIMIT = 60_000
"""Characters of a text that every forge takes (GitHub: 65,536)."""
CUT = "\n\n… cut: the text was too long for the forge."


def add_marker(body: str, marker: str) -> str:
    """`body` with the mark behind it, if there is a marker; one that is too long is cut."""
    if len(body) > BODY_LIMIT:
        body = body[: BODY_LIMIT - len(CUT)] + CUT
    return f"{body}\n\n<!-- sm:{quote(marker[:NAME_LIMIT], safe='')} -->" if marker else body


def split_marker(text: str) -> tuple[str, str]:
    """A text without its mark, and the marker, '' if there is none."""
    text = text.replace("\r\n", "\n")
    ended = text.rstrip()
    found = MARK.search(ended, max(len(ended) - 1000, 0))
    if found is None:
        return text, ""
    return ended[: found.start()].rstrip(), unquote(found[1])


MILLISECOND = 0.001
GHOST = "ghost"
"""The author of what a deleted account has written."""
REVIEWS = {
    "APPROVED": ReviewState.APPROVED,
    "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED,
    "REQUEST_CHANGES": ReviewState.CHANGES_REQUESTED,
    "COMMENTED": ReviewState.COMMENTED,
    "COMMENT": ReviewState.COMMENTED,
}
"""The words for reviews. Any other is of one that does not count: pending, or dismissed."""
UNSUBMITTED = ("PENDING", "REQUEST_REVIEW")
"""Words of what is in the list of reviews, and is none yet: a draft, one that is asked for."""
WHOLE_FILE = "file"
UNAPPROVED = ("pending", "Pipeline is pending approval")
"""The status that Woodpecker writes of a pipeline which a person has to approve: `getStatus` in
`server/forge/gitea/gitea.go`, `server/forge/common/status.go`; asked of 3.17 beside both forges."""
HUNK_LINES, HUNK_WIDTH = 8, 300
"""Lines of the diff above a remark that are shown, and characters of each."""


def read_login(user: User | None) -> str:
    """The name of an account."""
    return tidy_name(user.login)[:NAME_LIMIT] if user and user.login else GHOST


def read_moment(text: str | None) -> float:
    """Seconds since the epoch; 0 for no moment, or for one that is none."""
    try:
        return read_time(text) if text else 0.0
    except ValueError:
        return 0.0


def make_issue(
    shape: IssueShape, comments: Sequence[Comment] = (), spell: Callable[[str], str] = str
) -> Issue:
    """An issue with these comments; `spell` gives a label as it is configured."""
    names = (one if isinstance(one, str) else one.name or "" for one in shape.labels[:LABELS])
    return Issue(
        number=shape.number,
        title=tidy(shape.title)[:TITLE_LIMIT],
        state=IssueState.OPEN if shape.state == "open" else IssueState.CLOSED,
        author=read_login(shape.user),
        at=read_moment(shape.created_at),
        labels=tuple(filter(None, (spell(tidy_name(name)[:NAME_LIMIT]) for name in names))),
        waits=_tell_blockers(shape.issue_dependencies_summary),
        body=(shape.body or "").replace("\r\n", "\n"),
        comments=tuple(comments),
        assignees=tuple(read_login(one) for one in (shape.assignees or [])[:LABELS] if one.login),
    )


def _tell_blockers(told: BlockersShape | None) -> str:
    """Say how many issues an issue of GitHub waits for, in words; '' for none."""
    if told is None or not told.blocked_by:
        return ""
    return "another issue" if told.blocked_by == 1 else f"{told.blocked_by} other issues"


def make_comment(shape: CommentShape, account: str) -> Comment:
    """A comment. Its mark counts if it is of `account`, which is ours."""
    author, text = read_login(shape.user), shape.body or ""
    body, marker = split_marker(text) if author == account else (text, "")
    return Comment(author, read_moment(shape.created_at), body, marker)


def space_out(comments: Iterable[Comment]) -> tuple[Comment, ...]:
    """The comments in their order. A forge's times are whole seconds, so equal ones are spaced out.

    Else an answer within the second of its question would not be one.
    """
    found: list[Comment] = []
    for comment in comments:
        last = found[-1].at if found else -1.0
        is_within = comment.at <= last < comment.at + 1
        at = round(last + MILLISECOND, 3) if is_within else comment.at
        found.append(structs.replace(comment, at=at))
    return tuple(found)


def make_pull(
    shape: PullShape, reviews: Iterable[Review] = (), comments: Iterable[Comment] = ()
) -> PullRequest:
    """A pull request without its check."""
    merged_at = read_moment(shape.merged_at)
    state = PullState.OPEN if shape.state == "open" else PullState.CLOSED
    return PullRequest(
        number=shape.number,
        title=tidy(shape.title)[:TITLE_LIMIT],
        state=PullState.MERGED if merged_at else state,
        author=read_login(shape.user),
        at=read_moment(shape.created_at),
        branch=name_branch(shape),
        base=shape.base.ref[:NAME_LIMIT],
        head=shape.head.sha[:NAME_LIMIT],
        body=(shape.body or "").replace("\r\n", "\n"),
        conflicts=shape.mergeable is False and state is PullState.OPEN,
        merged_as=(shape.merge_commit_sha or "")[:NAME_LIMIT] if merged_at else "",
        closed_at=merged_at or read_moment(shape.closed_at),
        reviews=tuple(reviews),
        comments=tuple(comments),
        sign=shape.sign,
        touched=shape.updated_at,
    )


def name_branch(shape: PullShape) -> str:
    """The branch; of a fork `OWNER:BRANCH`, which no branch of the repository can be called."""
    ref, head, base = shape.head.ref[:NAME_LIMIT], shape.head.repo, shape.base.repo
    if head is not None and base is not None and head.id == base.id:
        return ref
    owner = head.full_name.partition("/")[0] if head else ""
    return f"{read_login(shape.head.user or User(owner))}:{ref}"


def is_of_fork(pull: PullRequest) -> bool:
    """Whether its branch is in another repository."""
    return ":" in pull.branch


def make_review(shape: ReviewShape, comments: Iterable[InlineComment] = ()) -> Review | None:
    """A review, None if it has not been submitted. A dismissed one is a remark: see `stand`."""
    state = REVIEWS.get(shape.state.upper(), ReviewState.COMMENTED)
    if shape.submitted_at is None or shape.state.upper() in UNSUBMITTED:
        return None
    return Review(
        id=str(shape.id),
        author=read_login(shape.user),
        at=read_moment(shape.submitted_at),
        state=state,
        head=(shape.commit_id or "")[:NAME_LIMIT],
        body=(shape.body or "").replace("\r\n", "\n"),
        comments=tuple(comments),
        official=shape.official,
    )


def make_reviews(
    shapes: Iterable[ReviewShape], inline: Iterable[InlineShape] = ()
) -> tuple[Review, ...]:
    """The reviews that stand, oldest first, each with its reviewer's remarks on lines.

    On Forgejo and Gitea the answers of others to a remark belong to its review, too.
    """
    given = {shape.id: shape for shape in shapes}
    remarks: dict[int, list[InlineComment]] = {}
    for one in inline:
        of = given.get(one.pull_request_review_id or 0)
        if of and one.resolver is None and read_login(one.user) == read_login(of.user):
            remarks.setdefault(of.id, []).append(make_remark(one))
    found = [
        (review, shape.dismissed or shape.state.upper() == "DISMISSED")
        for shape in given.values()
        if (review := make_review(shape, remarks.get(shape.id, ())))
    ]
    return stand(found)


def make_remark(shape: InlineShape) -> InlineComment:
    """A remark on a line, with the end of the diff around it."""
    line = shape.line or shape.position or shape.original_line or shape.original_position
    return InlineComment(
        path=shape.path[:1000],
        line=max(line or 0, 0),
        body=shape.body.replace("\r\n", "\n"),
        hunk=cut_hunk(shape.diff_hunk),
        outdated=not (shape.line or shape.position or shape.subject_type == WHOLE_FILE),
        id=str(shape.id or ""),
    )


def cut_hunk(text: str | None) -> str:
    """The end of the diff above a remark."""
    lines = (text or "").replace("\r\n", "\n").splitlines()
    return "\n".join(one[:HUNK_WIDTH] for one in lines[-HUNK_LINES:])


def shorten(review: Review, revision: str = "") -> Review:
    """The review without its texts, whose `revision` is kept."""
    return structs.replace(review, body="", comments=(), editor="", revision=revision)


def stand(reviews: Iterable[tuple[Review, bool]]) -> tuple[Review, ...]:
    """Each review, as a remark if it was dismissed; the flags say which were.

    If a reviewer's last opinion was dismissed, the earlier ones do not come back: that reviewer has
    none. Those of one second are in the order of the forge: Gitea dismisses a verdict when its
    reviewer gives the next one (asked of 1.26.0-dev).
    """
    ordered = sorted(reviews, key=lambda one: one[0].at)
    dismissed = dict[str, int]()
    for place, (review, is_dismissed) in enumerate(ordered):
        if is_dismissed:
            dismissed[review.author] = place
    return tuple(
        structs.replace(review, state=ReviewState.COMMENTED)
        if place <= dismissed.get(review.author, -1)
        else review
        for place, (review, _) in enumerate(ordered)
    )


def make_status_part(shape: StatusShape) -> StatusPart:
    """A commit status as a part of what CI says.

    A forge gives the last one of each: two with one context are of two workflows.
    """
    word = (shape.state or shape.status).lower()
    return StatusPart(
        name=tidy(shape.context)[:NAME_LIMIT] or "status",
        word=APPROVAL if (word, shape.description) == UNAPPROVED else word,
        url=(shape.target_url or "")[:1000],
        at=read_moment(shape.updated_at),
        id=shape.id,
        key=f"status {shape.context} {shape.id}",
        text=shape.description or "",
    )
