"""Reads the reviews of a merge request: who approves, who wants changes, and what they have said.

GitLab keeps no reviews. It knows who approves now, and how far each reviewer is; its own notes tell
when they said so, and its versions which commit they saw.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from sm.adapters.forge.model import InlineComment, Review, ReviewState
from sm.base.foreign import NAME_LIMIT
from sm.plugins.forges.gitlab.convert import make_user
from sm.plugins.forges.gitlab.project import GitlabProject
from sm.plugins.forges.gitlab.shapes import (
    AccountJson,
    Approvals,
    Note,
    Position,
    Reviewer,
    ThreadJson,
    Version,
)
from sm.plugins.forges.rest.convert import read_login, read_moment

TOLD = {
    "approved this merge request": ReviewState.APPROVED,
    "unapproved this merge request": ReviewState.COMMENTED,
    "requested changes": ReviewState.CHANGES_REQUESTED,
}
"""Beginnings of GitLab's own notes about a verdict."""
WANTS_CHANGES = "requested_changes"


class ToldVerdict(Struct, frozen=True):
    """A person's word on the whole, as GitLab's note `id` tells; 0 if there is none."""

    state: ReviewState
    at: float = 0.0
    id: int = 0


class ReviewMaterial(Struct, frozen=True):
    """Answers that reviews are made of."""

    approvals: Approvals
    reviewers: Sequence[Reviewer]
    threads: Sequence[ThreadJson]
    versions: Sequence[Version] = ()


def read_reviews(
    reader: GitlabProject, number: int, threads: Sequence[ThreadJson] | None = None
) -> tuple[tuple[Review, ...], frozenset[int]]:
    """The reviews that stand, oldest first; and the notes whose texts are in them."""
    at = f"/merge_requests/{number}"
    what = f"pull request {number}"
    found = ReviewMaterial(
        reader.ask(f"{at}/approvals", Approvals, what),
        list(reader.entries(f"{at}/reviewers", Reviewer)),
        list(reader.entries(f"{at}/discussions", ThreadJson)) if threads is None else threads,
    )
    if list_standing(found):
        versions = list(reader.entries(f"{at}/versions", Version))
        found = structs.replace(found, versions=versions)
    return make_reviews(found)


# Pure from here


def list_standing(material: ReviewMaterial) -> dict[str, ToldVerdict]:
    """The verdict of each person that stands now."""
    told = _list_told(material.threads)
    found: dict[str, ToldVerdict] = {}
    for approval in material.approvals.approved_by:
        last = _last(told, _name(approval.user), ReviewState.APPROVED)
        at = read_moment(approval.approved_at) or last.at
        found[_name(approval.user)] = structs.replace(last, at=at)
    reviewers = {_name(one.user): one.state for one in material.reviewers}
    for author, verdicts in told.items():
        wanted = verdicts[-1].state is ReviewState.CHANGES_REQUESTED
        if wanted and author not in reviewers:  # nobody has asked for this review
            found[author] = verdicts[-1]
    for author, state in reviewers.items():
        if state == WANTS_CHANGES:
            found[author] = _last(told, author, ReviewState.CHANGES_REQUESTED)
    return found


def _list_told(threads: Iterable[ThreadJson]) -> dict[str, list[ToldVerdict]]:
    """List each person's verdicts as GitLab's own notes tell them, oldest first."""
    found: dict[str, list[ToldVerdict]] = {}
    notes = (note for thread in threads for note in thread.notes if note.system)
    for note in sorted(notes, key=lambda note: note.id):
        for words, state in TOLD.items():
            if (note.body or "").startswith(words):
                verdict = ToldVerdict(state, read_moment(note.created_at), note.id)
                found.setdefault(_name(note.author), []).append(verdict)
    return found


def _last(
    told: Mapping[str, Sequence[ToldVerdict]], author: str, state: ReviewState
) -> ToldVerdict:
    fitting = [one for one in told.get(author, ()) if one.state is state]
    return fitting[-1] if fitting else ToldVerdict(state)


def make_reviews(material: ReviewMaterial) -> tuple[tuple[Review, ...], frozenset[int]]:
    """A review for each person with a verdict or an open thread on a line.

    Its text is what that person has said since the verdict before. Threads that are resolved are
    left out.
    """
    told, standing = _list_told(material.threads), list_standing(material)
    found: list[Review] = []
    for author in dict.fromkeys([*standing, *_list_critics(material.threads)]):
        verdict = standing.get(author)
        earlier = [one.id for one in told.get(author, ()) if verdict and one.id < verdict.id]
        since = max(earlier, default=0)
        own = [one for one in material.threads if _is_by(one, author, since)]
        remarks = [one for one in own if one.notes[0].position and not _is_resolved(one)]
        if verdict is None:
            found.append(_make_open_one(author, remarks))
            continue
        said = [one.notes[0] for one in own if one.individual_note and one.notes[0].id < verdict.id]
        review = Review(
            id=str(verdict.id or f"{verdict.state}-{author}"),
            author=author,
            at=verdict.at,
            state=verdict.state,
            head=_find_head(material.versions, verdict.at),
            body="\n\n".join(filter(None, map(_text, said))),
            comments=tuple(_make_remark(one, author) for one in remarks),
        )
        found.append(review)
    return tuple(sorted(found, key=lambda one: (one.at, one.id))), _list_claimed(material.threads)


def _list_claimed(threads: Sequence[ThreadJson]) -> frozenset[int]:
    """The notes that are the text of a review, also of one in whose place another stands by now."""
    last = {author: verdicts[-1].id for author, verdicts in _list_told(threads).items()}
    return frozenset(
        thread.notes[0].id
        for thread in threads
        for author in last
        if _is_by(thread, author, 0)
        and thread.individual_note
        and thread.notes[0].id < last[author]
    )


def _make_open_one(author: str, remarks: Sequence[ThreadJson]) -> Review:
    """The remarks on lines of those who have given no verdict."""
    first, last = remarks[0].notes[0], remarks[-1].notes[0]
    return Review(
        id=f"thread-{first.id}",
        author=author,
        at=read_moment(last.created_at),
        state=ReviewState.COMMENTED,
        head=((last.position or Position()).head_sha or "")[:NAME_LIMIT],
        comments=tuple(_make_remark(one, author) for one in remarks),
    )


def _list_critics(threads: Iterable[ThreadJson]) -> Iterator[str]:
    """The authors of open threads on lines."""
    for thread in threads:
        if thread.notes and thread.notes[0].position and not _is_resolved(thread):
            yield _name(thread.notes[0].author)


def _is_by(thread: ThreadJson, author: str, since: int) -> bool:
    """Whether a person has begun the thread after the note `since`."""
    first = thread.notes[0] if thread.notes else None
    return bool(first and not first.system and first.id > since and _name(first.author) == author)


def _is_resolved(thread: ThreadJson) -> bool:
    notes = [note for note in thread.notes if note.resolvable]
    return bool(notes) and all(note.resolved for note in notes)


def _make_remark(thread: ThreadJson, author: str) -> InlineComment:
    """A thread as the remark of whoever began it: what others say there may be a stranger's."""
    at = thread.notes[0].position or Position()
    said = [_text(note) for note in thread.notes if _name(note.author) == author]
    return InlineComment(
        path=(at.new_path or at.old_path or "")[:1000],
        line=max(at.new_line or at.old_line or 0, 0),
        body="\n\n".join(filter(None, said)),
        id=str(thread.notes[0].id),
    )


def _find_head(versions: Collection[Version], at: float) -> str:
    """The commit that the merge request was at then: the last version that was made before."""
    known = sorted(versions, key=lambda one: read_moment(one.created_at))
    before = [one for one in known if read_moment(one.created_at) <= at]
    return before[-1].head_commit_sha[:NAME_LIMIT] if before else ""


def _text(note: Note) -> str:
    return (note.body or "").replace("\r\n", "\n").strip()


def _name(account: AccountJson | None) -> str:
    return read_login(make_user(account))
