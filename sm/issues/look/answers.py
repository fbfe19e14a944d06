"""Answers of people to an escalation: by `sm reply`, or where a channel has them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from sm.adapters.forge.model import Comment, Issue
from sm.adapters.forge.trust import Trust
from sm.base.nonce import make_nonce
from sm.channels import people
from sm.channels.channel import Asked, PersonReply
from sm.channels.comments import COMMENT
from sm.issues.look.brief import cut
from sm.issues.look.issue_text import is_trusted_comment
from sm.sessions.history import Escalation
from sm.sessions.session import IssueSession
from sm.store.damage import read_irreplaceable
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import SessionDir


def add(
    directory: SessionDir,
    author: str,
    text: str,
    key: str | None = None,
    *,
    by_session: bool = False,
) -> PersonReply:
    """Keep an answer until it is handed over, under `key` or its own name."""
    ensure_private_dir(directory.replies, parents=False)
    at = time.time()
    reply = PersonReply(key or f"{at:.3f}-{make_nonce(3)}", at, author, text, by_session)
    write_json(_file(directory, reply.id), reply, durable=True)
    return reply


def find(directory: SessionDir, key: str) -> PersonReply | None:
    """Return the answer with this `key`."""
    return _read(_file(directory, key))


def _read(file: Path) -> PersonReply | None:
    return read_irreplaceable(
        file, PersonReply, "the agent does not get this answer: give it again"
    )


def _file(directory: SessionDir, key: str) -> Path:
    return directory.replies / f"{key}.json"


def list_replies(
    session: IssueSession, issue: Issue | None, trust: Trust, asked: Escalation
) -> tuple[tuple[PersonReply, ...], str]:
    """Return the answers to what was asked, oldest first: only of the person who was first.

    What other trusted people answer to the same question is not for the agent: they see on the
    issue, or are told where they answer, that somebody was first. The second value says why the
    answers of a channel cannot be read, '' if they can.
    """
    said = [
        one
        for one in (issue.comments if issue else ())
        if one.marker or is_trusted_comment(one, trust)
    ]
    # To a session that is asked before people nothing is said on the issue.
    is_first = asked.first or 0 < asked.since < asked.at
    since = asked.since if is_first else _question_at(said, asked)
    found, unread = people.list_replies(session, Asked(asked.marker, since, tuple(said)))
    found += [one for one in _typed(session.dir) if one.at > since]
    found.sort(key=lambda reply: (reply.at, reply.id))
    return tuple(one for one in found if one.author == found[0].author), unread


def _question_at(said: Iterable[Comment], asked: Escalation) -> float:
    """Return when the question could first be read, which is before its receipt was written.

    Only the question's own comment tells: after another comment of ours stands the answer to the
    last question.
    """
    own = (one.at for one in said if asked.marker and one.marker == asked.marker)
    return max((at for at in own if at <= asked.at), default=asked.at)


def read_texts(found: Iterable[PersonReply], comments: Iterable[Comment]) -> list[str]:
    """Return the texts of the answers; those that are comments come from `comments`.

    A deleted comment has no text.
    """
    bodies = defaultdict[tuple[float, str], list[str]](list)
    for comment in comments:
        if not comment.marker:
            bodies[comment.at, cut(comment.author)].append(comment.body)
    return [_text(reply, bodies[reply.at, reply.author]) for reply in found]


def _text(reply: PersonReply, bodies: list[str]) -> str:
    if not reply.id.startswith(COMMENT):
        return reply.text
    return bodies.pop(0) if bodies else ""


def find_last(directory: SessionDir) -> PersonReply | None:
    """Return the last answer that was typed; None if there is none on record."""
    return max(_typed(directory), key=lambda one: one.at, default=None)


def _typed(directory: SessionDir) -> list[PersonReply]:
    if not directory.replies.is_dir():
        return []
    files = sorted(directory.replies.glob("*.json"))
    return [reply for file in files if (reply := _read(file)) is not None]
