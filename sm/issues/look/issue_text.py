"""Issue's title and text as its agent knows them: taken at the pick-up, kept until the end.

Later edits reach the agent only if a trusted person has made them, and then as a change. People are
told of what is passed over, once.
"""

from __future__ import annotations

import time

from msgspec import structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import (
    Comment,
    Issue,
    IssueState,
    Saved,
    SourcedText,
    hash_text,
)
from sm.adapters.forge.trust import Trust
from sm.base.errors import TemporaryError
from sm.base.issue_id import IssueId, spell
from sm.base.text import one_line
from sm.issues.look.kept_text import (
    Heeded,
    KeptPart,
    KeptText,
    keep_edited,
    note_passed_over,
)
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.issues.rules.material import Edited
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.damage import read_rebuildable
from sm.store.files import discard, write_json
from sm.store.paths import SessionDir

TITLE, TEXT, COMMENT = "title", "text", "comment"
"""Parts of an issue that can be passed over."""


class UntrustedTextError(TemporaryError):
    """The last edit is of an account that is not trusted; a trusted person can vouch for it."""


class AnotherIssueError(NotFoundError):
    """The number belongs to another issue now."""


class TakenIssue(KeptText, frozen=True):
    """Title and text of an issue since `at`.

    `seen` is the hash of the forge's text that was dealt with last, `heard` the time of the last
    comment that was. `filed_at` is when the issue was filed, by the forge's clock, 0 if that is not
    known yet.
    """

    title: str
    body: str
    author: str
    at: float
    heard: float = 0.0
    filed_at: float = 0.0

    def list_parts(self) -> dict[str, str]:
        """Return title and text."""
        return {TITLE: self.title, TEXT: self.body}

    @property
    def hash(self) -> str:
        """Id of title and text."""
        return hash_text(self.title, self.body)


# The text


def read_taken(directory: SessionDir) -> TakenIssue | None:
    """Return the issue as the agent knows it; None if it was never taken, or is lost."""
    return read_rebuildable(directory.issue, TakenIssue)


def read_edited(directory: SessionDir) -> Edited | None:
    """Return the edit that the agent is still to be told of."""
    return read_rebuildable(directory.edited, Edited)


def take(session: IssueSession, *, by_hand: bool = False, anew: bool = False) -> TakenIssue:
    """Return the issue's title and text, taken now if that was not done before.

    `by_hand`: a person has asked for it, so it is taken as it is. `anew`: it was taken before, and
    is lost.

    Raises:
        UntrustedTextError: an account that is not trusted has edited it last.
        SmError: the forge cannot say.

    """
    if known := read_taken(session.dir):
        return known
    project = session.project
    source = project.forge.issues.read_source(session.issue)
    if not by_hand:
        check_source(project, session.issue, source)
    seen = last_snapshot(project.directory)
    issue = seen.issue(session.issue) if seen else None
    taken = TakenIssue(
        source.title,
        source.body,
        source.author,
        time.time(),
        seen=hash_text(source.title, source.body),
        heard=max((comment.at for comment in issue.comments), default=0.0) if issue else 0.0,
        filed_at=issue.at if issue else 0.0,
    )
    _write(session.dir, taken)
    how = "anew" if anew else "first"
    project.record(events.TextTaken(session=session.name, how=how, hash=taken.hash))
    return taken


def refuse_another(session: IssueSession) -> None:
    """Refuse the issue that has the session's number now, and is not the one that was taken.

    A forge whose database is set back to an older copy gives numbers a second time.

    Raises:
        AnotherIssueError: it was filed at another time; nothing may be written there.

    """
    known, seen = read_taken(session.dir), last_snapshot(session.project.directory)
    now = seen.issue(session.issue) if seen else None
    if not session.project.settings.forge.is_elsewhere:  # there a person may edit the time
        return
    if known and now and known.filed_at and now.at and now.at != known.filed_at:
        raise AnotherIssueError(
            f"issue {session.issue} is not the one that this session was begun for "
            f"(“{one_line(known.title, 100)}”), but was filed later: was the forge set back to an "
            f"older copy? End the session by sm kill {session.address.replace('#', ' ')}, and file "
            "its issue anew"
        )


def check_source(project: Project, issue: IssueId, source: SourcedText) -> None:
    """Refuse a title or a text, unless a trusted person has saved it last or set a label after.

    If the forge does not say who has edited it, the author counts.

    Raises:
        UntrustedTextError: it has to be labelled again.

    """
    labels = project.settings.labels
    marks = [source.labelled.get(one) for one in (labels.backlog, labels.in_progress)]
    named = [source.title_saved, source.body_saved, *filter(None, marks)]
    trust = find_trust(project, [source.author, *(saved.by for saved in named)])
    for part, saved in ((TITLE, source.title_saved), (TEXT, source.body_saved)):
        if not _is_vouched(saved, source.author, [one for one in marks if one], trust):
            who = saved.by or source.author
            raise UntrustedTextError(
                f"{spell(issue)}: '{who}', who is not trusted, has saved its {part} last: "
                f"to have it worked on, read it, and set the label '{labels.backlog}' anew"
            )


def _is_vouched(saved: Saved, author: str, marks: list[Saved], trust: Trust) -> bool:
    if trust.includes(saved.by or author):
        return True
    # A forge's times are whole seconds: an edit within the label's second may come after it.
    return bool(saved.by) and any(mark.at > saved.at and trust.includes(mark.by) for mark in marks)


def find_trust(project: Project, people: list[str]) -> Trust:
    """Return who is trusted among `people`; the forge is asked about those silent so far."""
    if named := project.settings.trusted:
        return Trust(named)
    seen = last_snapshot(project.directory)
    known = set(seen.writers if seen else ())
    new = set(filter(None, people)) - known
    return Trust((), known | (project.forge.find_writers(new) if new else set()))


def is_untouched(session: IssueSession) -> bool:
    """Say whether the forge has the text that the agent knows, or one of trusted people alone.

    Raises:
        SmError: the forge cannot say.

    """
    known = read_taken(session.dir)
    source = session.project.forge.issues.read_source(session.issue)
    if known and (known.title, known.body) == (source.title, source.body):
        return True
    saved = (source.title_saved, source.body_saved)
    trust = find_trust(session.project, [source.author, *(one.by for one in saved)])
    return all(trust.includes_editor(one.by, source.author) for one in saved)


def adopt(directory: SessionDir, edited: Edited) -> None:
    """Replace the agent's text by the edited one, which it was told; repeating is harmless."""
    waiting = read_edited(directory)
    is_last = waiting is not None and waiting.id == edited.id
    if taken := read_taken(directory):
        told = taken.take_over(is_last=is_last, title=edited.title, body=edited.body)
        _write(directory, told)
    if is_last:
        discard(directory.edited)


def _write(directory: SessionDir, taken: TakenIssue) -> None:
    # The text as it was then is nowhere else.
    write_json(directory.issue, taken, durable=True)


# Later edits and comments


def watch(session: IssueSession) -> None:
    """Deal with the edits and comments that the last look at the forge shows. Holds its lock.

    Raises:
        AnotherIssueError: it is another issue.
        SmError: the forge does not say who has edited it; it is asked again in the next pass.

    """
    seen = last_snapshot(session.project.directory)
    issue = seen.issue(session.issue) if seen else None
    if seen is None or issue is None or issue.state is not IssueState.OPEN:
        return
    taken = read_taken(session.dir)
    if taken is None:
        if not session.dir.receipts.exists():
            return  # a start that is not done yet takes it
        taken = take(session, anew=True)
    refuse_another(session)
    if seen.taken_at <= taken.at:
        return
    if not taken.filed_at:
        taken = structs.replace(taken, filed_at=issue.at)
        _write(session.dir, taken)
    taken = _pass_over_comments(session, taken, issue, seen)
    if issue.text_hash and issue.text_hash != taken.seen:
        _heed(session, taken, issue.text_hash)


def is_trusted_comment(comment: Comment, trust: Trust) -> bool:
    """Whether a comment may reach the agent: only trusted people have written and edited it."""
    return trust.includes(comment.author) and (
        not comment.editor or comment.editor == comment.author or trust.includes(comment.editor)
    )


def _pass_over_comments(
    session: IssueSession, taken: TakenIssue, issue: Issue, seen: Snapshot
) -> TakenIssue:
    new = [comment for comment in issue.comments if comment.at > taken.heard]
    if not new:
        return taken
    trust = seen.trust(session.project.settings)
    for comment in new:
        if not comment.marker and not is_trusted_comment(comment, trust):
            is_theirs = not trust.includes(comment.author)
            note_passed_over(session, COMMENT, comment.author if is_theirs else comment.editor)
    taken = structs.replace(taken, heard=max(comment.at for comment in new))
    _write(session.dir, taken)
    return taken


def _heed(session: IssueSession, taken: TakenIssue, seen: str) -> None:
    """Keep what a trusted person has changed for the agent, and tell people of the rest."""
    project = session.project
    source = project.forge.issues.read_source(session.issue)
    trust = find_trust(
        project, [source.author, taken.author, source.title_saved.by, source.body_saved.by]
    )
    now = {
        TITLE: KeptPart(source.title, source.title_saved.by),
        TEXT: KeptPart(source.body, source.body_saved.by),
    }
    found = taken.heed(now, lambda editor: trust.includes_editor(editor, source.author))
    for part, editor in found.strangers.items():
        note_passed_over(session, part, editor)
    keep_edited(session.dir.edited, _make_edited(taken, found))
    _write(session.dir, structs.replace(taken, seen=seen, passed_over=found.passed_over))


def _make_edited(taken: TakenIssue, found: Heeded) -> Edited | None:
    if not found.changed:
        return None
    title, body = found.changed.get(TITLE, taken.title), found.changed.get(TEXT, taken.body)
    ident = f"{hash_text(title, body)[:16]}-{time.time():.3f}"
    return Edited(ident, title, body, found.editors)


def issue_of(session: IssueSession) -> Issue:
    """Return the issue as its agent knows it, without labels and comments.

    Raises:
        SmError: its text is lost, and cannot be taken again.

    """
    taken = read_taken(session.dir) or take(session, anew=True)
    return make_issue(session, taken)


def make_issue(session: IssueSession, taken: TakenIssue | None) -> Issue:
    """Return the issue with these texts; without any it has the title that is on record."""
    number, state = session.issue, IssueState.OPEN
    if taken is None:
        return Issue(number, session.record.title, state, author="", at=0.0)
    return Issue(number, taken.title, state, taken.author, taken.at, body=taken.body)
