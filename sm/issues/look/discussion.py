"""Discussion on a pull request outside of reviews: the agent is told of trusted comments, once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from sm.adapters.forge.model import Comment
from sm.issues.look.issue_text import find_trust, is_trusted_comment
from sm.issues.look.snapshot import find_open_pull
from sm.sessions.history import fold
from sm.sessions.plan import read_receipts
from sm.sessions.session import IssueSession
from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import SessionDir

ROW = "pull-comment"
LATEST = 20
"""Greatest number of comments that a text quotes; `sm pr show` reads more."""


class HeardComments(Struct, frozen=True):
    """Comments that the agent is told of together; `heard` is the time of the last one.

    `seen` is the id that the pull request had when its comments were read last.
    """

    pull: int
    seen: str = ""
    heard: float = 0.0
    comments: tuple[Comment, ...] = ()

    @property
    def id(self) -> str:
        """Id of these comments, '' if there are none."""
        return f"{self.pull}-{self.heard:.3f}" if self.comments else ""


def read_heard_comments(directory: SessionDir) -> HeardComments | None:
    """Return the comments on the pull request that were last recorded."""
    return read_rebuildable(directory.pull_comments, HeardComments)


def read_discussion(session: IssueSession, number: int) -> tuple[Comment, ...]:
    """Return the latest comments of trusted people on a pull request, oldest first.

    Raises:
        SmError: the forge cannot say.

    """
    found = session.project.forge.pulls.read_comments(number)
    people = [name for one in found for name in (one.author, one.editor)]
    trust = find_trust(session.project, people)
    return tuple(one for one in found if not one.marker and is_trusted_comment(one, trust))


def watch(session: IssueSession) -> None:
    """Keep what the last look at the forge shows for the agent. The caller holds its lock.

    Raises:
        SmError: the forge cannot say; it is asked again in the next pass.

    """
    pull = find_open_pull(session)
    if pull is None:
        return
    known = read_heard_comments(session.dir)
    if known is None or known.pull != pull.number:
        known = HeardComments(pull.number)
    if pull.touched == known.seen:
        return
    is_told = fold(read_receipts(session.dir)).has(f"{ROW}:{known.id}")
    waiting = () if is_told else known.comments
    found = add(structs.replace(known, comments=waiting), read_discussion(session, pull.number))
    write_json(session.dir.pull_comments, structs.replace(found, seen=pull.touched))


def add(known: HeardComments, comments: Iterable[Comment]) -> HeardComments:
    """Return the record with the comments that came since."""
    new = tuple(one for one in comments if one.at > known.heard)
    heard = max([known.heard, *(one.at for one in new)])
    return structs.replace(known, heard=heard, comments=(*known.comments, *new)[-LATEST:])
