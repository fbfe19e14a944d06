"""Replies of a person to a session elsewhere: repeated because no answer came, one is taken once.

A reply has an id from the beginning, under which the node keeps it. Until the node has taken it,
its id is on record here, by the text: the same text sent again has the same id. By then the agent
may ask something else, which it would otherwise answer.
"""

from __future__ import annotations

import hashlib
import time

from msgspec import Struct

from sm.base.nonce import make_nonce
from sm.issues.runners import NoAnswerError, NodeAnswer, Placement, Runner
from sm.sessions.project import Project
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, write_json
from sm.store.paths import ProjectDir


class Unconfirmed(Struct, frozen=True):
    """Last reply to a session, until its node says that it has it."""

    ident: str
    attempt: int
    digest: str


def reply(
    project: Project,
    placement: Placement,
    runner: Runner,
    text: str,
    patience_s: float | None = None,
) -> NodeAnswer:
    """Answer the session's question on its node with `text`.

    Raises:
        TemporaryError: the node does not answer; the text says if it may have been done.
        StateError: the reply cannot be recorded, and was not sent.

    """
    directory = project.directory
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    file = directory.unconfirmed_replies / f"{placement.session}.json"
    known = read_rebuildable(file, Unconfirmed)
    if known is None or (known.attempt, known.digest) != (placement.attempt, digest):
        ident = f"{time.time():.3f}-{make_nonce(3)}"
        known = Unconfirmed(ident, placement.attempt, digest)
        ensure_private_dir(directory.unconfirmed_replies)
        write_json(file, known, durable=True)
    argv = ("reply", "--id", known.ident, placement.project, str(placement.issue), "-")
    try:
        answer = runner.call(project, placement, argv, text, patience_s=patience_s)
    except NoAnswerError as error:
        if not error.sent:
            raise
        doubt = f"{error.message}; it may be taken all the same: say the same again, it counts once"
        raise NoAnswerError(doubt, sent=True) from error
    if answer.code == 0:
        discard(file)
    return answer


def forget(directory: ProjectDir, session: str) -> None:
    """Forget the reply of a session that is over."""
    discard(directory.unconfirmed_replies / f"{session}.json")
