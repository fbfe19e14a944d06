"""Answers of people to an escalation: by `sm reply`, in the vault, or as a comment on the forge."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.model import Comment, Issue
from sm.adapters.forge.trust import Trust
from sm.base.errors import StateError
from sm.base.nonce import make_nonce
from sm.channels import vault
from sm.issues.look.brief import cut
from sm.issues.look.taken import is_trusted_comment
from sm.sessions.history import Escalation
from sm.sessions.session import IssueSession
from sm.store.damage import read_irreplaceable
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import SessionDir

COMMENT = "comment-"
"""The id of an answer on the forge begins with it."""


class Reply(Struct, frozen=True):
    """A person's answer at `at` (seconds since 1970), and its place.

    A comment has no text until `read_texts` has looked it up.
    """

    id: str
    at: float
    author: str
    text: str


def add(directory: SessionDir, author: str, text: str, key: str | None = None) -> Reply:
    """Keep an answer until it is handed over, under `key` or its own name."""
    ensure_private_dir(directory.replies, parents=False)
    at = time.time()
    reply = Reply(key or f"{at:.3f}-{make_nonce(3)}", at, author, text)
    write_json(_file(directory, reply.id), reply, durable=True)
    return reply


def find(directory: SessionDir, key: str) -> Reply | None:
    """Return the answer with this `key`."""
    return _read(_file(directory, key))


def _read(file: Path) -> Reply | None:
    return read_irreplaceable(file, Reply, "the agent does not get this answer: give it again")


def _file(directory: SessionDir, key: str) -> Path:
    return directory.replies / f"{key}.json"


def list_replies(
    session: IssueSession, issue: Issue | None, trust: Trust, asked: Escalation
) -> tuple[Reply, ...]:
    """Return every answer of a trusted person to what was asked, oldest first.

    Comments have the time of the forge, which may differ from that of this machine. So they are
    compared with the question's own comment. The file in the vault has the question's mark, and may
    be answered long before the forge has taken the comment.
    """
    since = _question_at(issue, asked.at)
    told_at = _find_question(issue, asked.marker) or since
    found = [one for one in _typed(session.dir) if one.at > since]
    found += _from_vault(session, asked.marker)
    found += [one for one in _comments(issue, trust) if one.at > told_at]
    return tuple(sorted(found, key=lambda reply: (reply.at, reply.id)))


def explain_unread(session: IssueSession) -> str:
    """Say why an answer in the vault cannot be read, '' if it can."""
    try:
        _answer_in_vault(session)
    except StateError as error:
        return error.message
    return ""


def _question_at(issue: Issue | None, asked_at: float) -> float:
    """When the question could first be read, which is before its receipt was written."""
    ours = [comment.at for comment in (issue.comments if issue else ()) if comment.marker]
    return max((at for at in ours if at <= asked_at), default=asked_at)


def _find_question(issue: Issue | None, marker: str) -> float:
    """When the comment with this mark was made, by the forge's clock; 0 if there is none."""
    ours = [one.at for one in (issue.comments if issue else ()) if marker and one.marker == marker]
    return ours[0] if ours else 0.0


def read_texts(found: Iterable[Reply], comments: Iterable[Comment]) -> list[str]:
    """Return the texts of the answers; those that are comments come from `comments`.

    A deleted comment has no text.
    """
    bodies = defaultdict[tuple[float, str], list[str]](list)
    for comment in comments:
        if not comment.marker:
            bodies[comment.at, cut(comment.author)].append(comment.body)
    return [_text(reply, bodies[reply.at, reply.author]) for reply in found]


def _text(reply: Reply, bodies: list[str]) -> str:
    if not reply.id.startswith(COMMENT):
        return reply.text
    return bodies.pop(0) if bodies else ""


def _typed(directory: SessionDir) -> list[Reply]:
    if not directory.replies.is_dir():
        return []
    files = sorted(directory.replies.glob("*.json"))
    return [reply for file in files if (reply := _read(file)) is not None]


def _comments(issue: Issue | None, trust: Trust) -> list[Reply]:
    return [
        Reply(f"{COMMENT}{comment.at:.0f}-{comment.author}", comment.at, comment.author, "")
        for comment in (issue.comments if issue else ())
        if not comment.marker and is_trusted_comment(comment, trust)
    ]


def locate_question(session: IssueSession) -> Path | None:
    """Return the path of the question in the vault, if the project has one."""
    folder = session.project.settings.escalation.vault
    return folder / f"{session.name}.md" if folder else None


def _from_vault(session: IssueSession, marker: str) -> list[Reply]:
    try:
        found = _answer_in_vault(session, marker)
    except StateError:
        return []  # the other ways are open; `explain_unread` reports it
    return [found] if found else []


def _answer_in_vault(session: IssueSession, marker: str = "") -> Reply | None:
    file = locate_question(session)
    if file is None or not (text := vault.answer(file, marker=marker)):
        return None
    try:
        at = file.lstat().st_mtime
    except OSError:
        return None  # it was just moved away
    return Reply(f"vault-{at:.3f}", at, "vault", text)
