"""Reviews as the agent knows them: taken when a text first quotes one, kept until it is settled.

Later edits reach the agent only if a trusted person has made them, and then as a change. People are
told of what is passed over, once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from msgspec import structs

from sm.adapters.forge.model import InlineComment, PullRequest, Review
from sm.adapters.forge.trust import Trust
from sm.issues.look.issue_text import find_trust
from sm.issues.look.kept_text import (
    Heeded,
    KeptPart,
    KeptText,
    keep_edited,
    note_passed_over,
    pass_over,
)
from sm.issues.look.snapshot import find_open_pull
from sm.issues.rules.material import EditedReview
from sm.sessions.session import IssueSession
from sm.store.damage import read_rebuildable
from sm.store.files import discard, write_json
from sm.store.paths import SessionDir

REVIEW, REMARK = "review", "remark"
"""Parts of a review that can be passed over."""


class TakenReview(KeptText, frozen=True):
    """Review as the agent knows it, with its texts; `seen` is its revision."""

    review: Review

    def list_parts(self) -> dict[str, str]:
        """Return its text, and those of its remarks."""
        return {key: part.text for key, part in _list_parts(self.review).items()}


TakenReviews = dict[str, TakenReview]
"""Reviews by id."""


def read_taken(directory: SessionDir) -> TakenReviews:
    """Return the reviews that the agent knows."""
    return read_rebuildable(directory.reviews, TakenReviews) or {}


def read_edited(directory: SessionDir) -> EditedReview | None:
    """Return the edit that the agent is still to be told of."""
    return read_rebuildable(directory.review_edited, EditedReview)


def take(session: IssueSession, pull: PullRequest | None, review: Review | None) -> Review | None:
    """Return the review that decides with its texts, taken now if that was not done before.

    A part that a person who is not trusted has edited last is left out.

    Raises:
        SmError: the forge cannot say.

    """
    if pull is None or review is None:
        return None
    kept = read_taken(session.dir)
    if known := kept.get(review.id):
        return known.review
    whole = _find(session.project.forge.pulls.read_reviews(pull.number), review.id) or review
    trust = find_trust(session.project, _list_editors(whole))
    told = leave_out(whole, trust)
    passed_over = _note_left_out(session, whole, trust)
    taken = TakenReview(told, seen=review.revision, passed_over=passed_over)
    standing = {one.id for one in pull.reviews}
    kept = {ident: one for ident, one in kept.items() if ident in standing}
    write_json(session.dir.reviews, {**kept, review.id: taken}, durable=True)
    return told


def _find(reviews: Iterable[Review], ident: str) -> Review | None:
    return next((one for one in reviews if one.id == ident), None)


def _list_editors(review: Review) -> list[str]:
    return [review.author, review.editor, *(one.editor for one in review.comments)]


def leave_out(review: Review, trust: Trust) -> Review:
    """Return the review without what a person who is not trusted is known to have edited last."""
    return structs.replace(
        review,
        body=review.body if _is_meant(review.editor, review, trust) else "",
        comments=tuple(one for one in review.comments if _is_meant(one.editor, review, trust)),
    )


def _is_meant(editor: str, review: Review, trust: Trust) -> bool:
    return editor in ("", review.author) or trust.includes(editor)


def _note_left_out(session: IssueSession, whole: Review, trust: Trust) -> dict[str, str]:
    """Tell people what was left out; return the hash of each such part."""
    passed_over: dict[str, str] = {}
    for key, part in _list_parts(whole).items():
        if not _is_meant(part.editor, whole, trust) and pass_over(passed_over, key, part.text):
            _note(session, key, part.editor)
    return passed_over


def _note(session: IssueSession, key: str, editor: str) -> None:
    note_passed_over(session, REVIEW if key == REVIEW else REMARK, editor)


def _list_parts(review: Review) -> dict[str, KeptPart]:
    remarks = {key: KeptPart(one.body, one.editor) for key, one in _by_key(review.comments).items()}
    return {REVIEW: KeptPart(review.body, review.editor)} | remarks


def _by_key(remarks: Iterable[InlineComment]) -> dict[str, InlineComment]:
    """Return the remarks by their ids, whatever their texts are."""
    found: dict[str, InlineComment] = {}
    for one in remarks:
        key = one.id or f"{one.path}:{one.line}"
        found[key if key not in found else f"{key} {len(found)}"] = one
    return found


def keep_known(directory: SessionDir, reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Return the reviews; those that the agent was told of have the texts that it knows."""
    kept = read_taken(directory)
    return tuple(kept[one.id].review if one.id in kept else one for one in reviews)


def adopt(directory: SessionDir, edited: EditedReview) -> None:
    """Replace the agent's review by the edited one, which it was told; repeating is harmless."""
    waiting = read_edited(directory)
    is_last = waiting is not None and waiting.id == edited.id
    kept = read_taken(directory)
    if known := kept.get(edited.now.id):
        told = known.take_over(is_last=is_last, review=edited.now)
        write_json(directory.reviews, {**kept, edited.now.id: told}, durable=True)
    if is_last:
        discard(directory.review_edited)


# Later edits


def watch(session: IssueSession) -> None:
    """Deal with the edits that the last look at the forge shows. The caller holds its lock.

    Raises:
        SmError: the forge does not say who has edited it; it is asked again in the next pass.

    """
    kept = read_taken(session.dir)
    pull = find_open_pull(session) if kept else None
    if pull is None:
        return
    waiting = read_edited(session.dir)
    if waiting and not _find(pull.reviews, waiting.now.id):
        discard(session.dir.review_edited)  # the reviewer has said something newer
        waiting = None
    for one in pull.reviews:
        known = kept.get(one.id)
        is_free = waiting is None or waiting.now.id == one.id
        if known and is_free and one.revision not in ("", known.seen):
            _heed(session, pull.number, one, known)
            return


def _heed(session: IssueSession, number: int, brief: Review, known: TakenReview) -> None:
    """Keep what a trusted person has changed for the agent, and tell people of the rest."""
    whole = _find(session.project.forge.pulls.read_reviews(number), brief.id)
    if whole is None:
        return
    trust = find_trust(session.project, _list_editors(whole))
    found = known.heed(
        _list_parts(whole), lambda editor: trust.includes_editor(editor, whole.author)
    )
    for key, editor in found.strangers.items():
        _note(session, key, editor)
    keep_edited(session.dir.review_edited, _make_edited(known.review, whole, found))
    seen = structs.replace(known, seen=brief.revision, passed_over=found.passed_over)
    kept = read_taken(session.dir)
    write_json(session.dir.reviews, {**kept, brief.id: seen}, durable=True)


def _make_edited(known: Review, whole: Review, found: Heeded) -> EditedReview | None:
    if not found.changed:
        return None
    remarks = _by_key(known.comments)
    remarks |= {k: one for k, one in _by_key(whole.comments).items() if k in found.changed}
    body = found.changed.get(REVIEW, known.body)
    now = structs.replace(known, body=body, comments=tuple(remarks.values()))
    return EditedReview(f"{known.id}-{time.time():.3f}", known, now, found.editors)
