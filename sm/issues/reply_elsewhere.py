"""A person's reply to a session elsewhere: said again after no answer came, it is taken once.

A reply has an id from the beginning, under which the node keeps it. Until the node has taken it,
its id is on record here, by the text: who says the same once more says it under the same id. By
then the agent may ask something else, to which it would be the answer.
"""

from __future__ import annotations

import hashlib
import time

from msgspec import Struct

from sm.base.nonce import make_nonce
from sm.issues.runners import Answer, Elsewhere, NoAnswerError, Runner
from sm.store.damage import read_rebuildable
from sm.store.files import discard, ensure_private_dir, write_json
from sm.store.paths import ProjectDir


class Unconfirmed(Struct, frozen=True):
    """The last reply to a session, until its node says that it has it."""

    ident: str
    attempt: int
    digest: str


def reply(there: Elsewhere, runner: Runner, text: str, patience_s: float | None = None) -> Answer:
    """Have the node answer the session's question with `text`.

    Raises:
        TemporaryError: the node does not answer; it says if it may have been done all the same.
        StateError: the reply cannot be noted, and was not sent.

    """
    directory, placement = there.project.directory, there.placement
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
        answer = runner.call(there.project, placement, argv, text, patience_s=patience_s)
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
