"""Makes the values of `sm.adapters.forge.model` from GraphQL's answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import structs

from sm.adapters.forge.model import (
    Check,
    CheckState,
    Comment,
    InlineComment,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    Saved,
    SourcedText,
)
from sm.base.foreign import NAME_LIMIT, TITLE_LIMIT, tidy
from sm.plugins.forges.github.graphql.shapes import (
    Actor,
    CommentNode,
    Context,
    IssueNode,
    PullNode,
    QueueEntry,
    Remark,
    ReviewNode,
    ReviewThread,
    TimelineNode,
    there,
)
from sm.plugins.forges.github.parts import make_unbegun_suite_parts
from sm.plugins.forges.rest.convert import (
    REVIEWS,
    cut_hunk,
    read_login,
    read_moment,
    space_out,
    split_marker,
    stand,
)
from sm.plugins.forges.rest.protection import DRAFT, BranchRules, hold_by_state, queue_up
from sm.plugins.forges.rest.shapes import User
from sm.plugins.forges.rest.status import StatusPart, combine

STATES = {"OPEN": PullState.OPEN, "MERGED": PullState.MERGED, "CLOSED": PullState.CLOSED}
CONFLICTING, UNKNOWN = "CONFLICTING", "UNKNOWN"
WORDS = {
    "PENDING": CheckState.PENDING,
    "EXPECTED": CheckState.PENDING,
    "SUCCESS": CheckState.SUCCESS,
    "FAILURE": CheckState.FAILURE,
    "ERROR": CheckState.FAILURE,
}
"""GitHub's words for all checks of a commit."""


def read_actor(actor: Actor | None) -> str:
    """The name of an account as REST has it: else an app could be taken for a user of its name."""
    if actor is None or not actor.login:
        return read_login(None)
    bot = actor.kind == "Bot" and not actor.login.endswith("[bot]")
    return read_login(User(actor.login + "[bot]" * bot))


def make_pull(node: PullNode, rules: Callable[[str], BranchRules], *, has_ci: bool) -> PullRequest:
    """A pull request, with its check if that was asked for; `rules` gives those of a branch."""
    is_open = node.state == "OPEN"
    branch = node.head_ref_name[:NAME_LIMIT]
    if node.is_cross_repository:
        branch = f"{read_actor(node.head_repository_owner)}:{branch}"
    pull = PullRequest(
        number=node.number,
        title=tidy(node.title)[:TITLE_LIMIT],
        state=STATES.get(node.state, PullState.CLOSED),
        author=read_actor(node.author),
        at=read_moment(node.created_at),
        branch=branch,
        base=node.base_ref_name[:NAME_LIMIT],
        head=node.head_ref_oid,
        conflicts=is_open and node.mergeable == CONFLICTING,
        merged_as=node.merge_commit.oid if node.merge_commit and node.state == "MERGED" else "",
        closed_at=read_moment(node.closed_at),
        touched=node.updated_at,
        reviews=make_reviews(node.reviews.nodes if node.reviews else ()),
    )
    if not is_open or not node.commits or node.is_cross_repository:
        return pull
    asked = rules(pull.base)
    pull = structs.replace(pull, check=make_check(node, asked, has_ci=has_ci))
    return read_hold(pull, node, asked)


def read_hold(pull: PullRequest, node: PullNode, rules: BranchRules) -> PullRequest:
    """Return it with what keeps GitHub from merging it."""
    if node.is_in_merge_queue:
        entry = node.merge_queue_entry or QueueEntry()
        return queue_up(pull, entry.position, entry.state)
    state = DRAFT if node.is_draft else node.merge_state_status
    return hold_by_state(pull, state, node.review_decision or "", rules)


def make_reviews(nodes: Iterable[ReviewNode | None] | None) -> tuple[Review, ...]:
    """The reviews that stand."""
    return stand([one for each in there(nodes) if (one := _review(each))])


def _review(node: ReviewNode) -> tuple[Review, bool] | None:
    """A review, and whether it was dismissed; None for a draft."""
    if node.submitted_at is None or node.state == "PENDING":
        return None
    state = REVIEWS.get(node.state, ReviewState.COMMENTED)
    review = Review(
        id=str(node.full_database_id or 0),
        author=read_actor(node.author),
        at=read_moment(node.submitted_at),
        state=state,
        head=node.commit.oid if node.commit else "",
        body=node.body.replace("\r\n", "\n"),
        editor=_editor(node),
        revision=join_revision(node.last_edited_at or "", ""),
    )
    return review, node.state == "DISMISSED"


def join_revision(edited_at: str, remarked_at: str) -> str:
    """The revision of a review, by when its text and one of its remarks were edited last."""
    return f"{edited_at[:NAME_LIMIT]}|{remarked_at[:NAME_LIMIT]}"


def split_revision(revision: str) -> tuple[str, str]:
    """The two moments that it is made of."""
    edited_at, _, remarked_at = revision.partition("|")
    return edited_at, remarked_at


def _editor(node: ReviewNode | Remark | CommentNode) -> str:
    """The account that has edited it last, '' if it was never edited."""
    return read_actor(node.editor) if node.last_edited_at else ""


def list_settled(threads: Iterable[ReviewThread]) -> frozenset[str]:
    """The ids of the first remarks of those threads that are resolved."""
    firsts = (
        one for thread in threads if thread.is_resolved for one in there(thread.comments.nodes)
    )
    return frozenset(str(one.full_database_id) for one in firsts)


def add_texts(
    reviews: Iterable[Review],
    texts: Mapping[str, ReviewNode],
    remarks: Mapping[str, Sequence[Remark]],
    settled: Collection[str],
) -> tuple[Review, ...]:
    """The reviews with their texts and remarks, by their ids; without `settled` threads."""
    found = []
    for one in reviews:
        if (node := texts.get(one.id)) is None:
            found.append(one)
            continue
        said = [each for each in remarks.get(one.id, ()) if not _is_settled(each, settled)]
        found.append(
            structs.replace(
                one,
                body=node.body.replace("\r\n", "\n"),
                editor=_editor(node),
                comments=tuple(map(_remark, said)),
            )
        )
    return tuple(found)


def _is_settled(remark: Remark, settled: Collection[str]) -> bool:
    first = remark.reply_to or remark
    return str(first.full_database_id) in settled


def _remark(remark: Remark) -> InlineComment:
    return InlineComment(
        path=remark.path[:1000],
        line=max(remark.line or remark.original_line or 0, 0),
        body=remark.body.replace("\r\n", "\n"),
        hunk=cut_hunk(remark.diff_hunk),
        outdated=remark.outdated,
        id=str(remark.full_database_id or ""),
        editor=_editor(remark),
    )


def make_check(node: PullNode, rules: BranchRules, *, has_ci: bool) -> Check:
    """Make a check of what CI says of the head."""
    contexts = node.rollup.contexts.nodes if node.rollup and node.rollup.contexts else ()
    runs = (one.check_suite.workflow_run for one in there(contexts) if one.check_suite)
    begun = {run.key for run in runs if run}
    parts = [*map(make_part, there(contexts)), *make_unbegun_suite_parts(node.suites, begun)]
    found = combine(parts, node.head_ref_oid, expected=has_ci, required=rules.checks)
    return structs.replace(found, progress=node.progress if rules.checks else "")


def make_part(context: Context) -> StatusPart:
    """A check run or a status as a part of what CI says."""
    if context.context:
        at, url = read_moment(context.created_at), context.target_url or ""
        key, name = f"status {context.context}", tidy(context.context)[:NAME_LIMIT]
        return StatusPart(name, context.state.lower(), url[:1000], at, key=key)
    is_over = context.status == "COMPLETED"
    at = read_moment(context.completed_at if is_over else context.started_at)
    word = (context.conclusion or "") if is_over else context.status
    name, url = tidy(context.name)[:NAME_LIMIT], (context.details_url or "")[:1000]
    return StatusPart(name, word.lower(), url, at, key=f"run {_owner(context)} {context.name}")


def _owner(context: Context) -> str:
    """Return what tells two check runs of one name apart, and not two runs of the same."""
    suite = context.check_suite
    if suite and suite.workflow_run:
        return suite.workflow_run.key
    return (suite.app.slug or "") if suite and suite.app else ""


def make_comments(nodes: Iterable[CommentNode | None] | None) -> tuple[Comment, ...]:
    """The comments on an issue or a pull request."""
    return space_out(map(_comment, there(nodes)))


def _comment(node: CommentNode) -> Comment:
    body, marker = split_marker(node.body) if node.viewer_did_author else (node.body, "")
    at = read_moment(node.created_at)
    return Comment(read_actor(node.author), at, body, marker, _editor(node))


def make_source(node: IssueNode) -> SourcedText:
    """An issue's title and text, who has saved them last, and who has set its labels."""
    author = read_actor(node.author)
    filed = Saved(read_moment(node.created_at), author)
    renamed = [_done(one) for one in there(node.renamed.nodes)] if node.renamed else []
    edited = Saved(read_moment(node.last_edited_at), read_actor(node.editor))
    return SourcedText(
        title=tidy(node.title)[:TITLE_LIMIT],
        body=node.body.replace("\r\n", "\n"),
        author=author,
        title_saved=renamed[-1] if renamed else filed,
        body_saved=edited if node.last_edited_at else filed,
        labelled={
            tidy(one.label.name)[:NAME_LIMIT]: _done(one)
            for one in there(node.labelled.nodes if node.labelled else ())
            if one.label
        },
    )


def _done(node: TimelineNode) -> Saved:
    return Saved(read_moment(node.created_at), read_actor(node.actor))
