"""Requests of an agent to the forge: each is a file, which its reactor answers.

So one process writes to the forge for a session, with a token that the agent need not have. What an
agent reads costs its account one request in an interval, however often it asks.
"""

from __future__ import annotations

import hashlib
import math
import time
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, structs

from sm.base.clock import Deadline
from sm.base.errors import SmError, TemporaryError
from sm.base.issue_id import IssueId
from sm.base.nonce import make_nonce
from sm.sessions import registry
from sm.sessions.session import IssueSession
from sm.store.damage import read_each, read_rebuildable
from sm.store.files import discard, ensure_private_dir, list_names, write_json
from sm.store.paths import SessionDir

WAIT_S = 60.0
"""Time that an agent waits for the answer, in seconds; its reactor may be at a longer step."""
LOOK_S = 0.05
KEPT_S = 3600.0
"""Longest time that an answer is kept, in seconds."""
ASKED, ANSWERED = ".ask.json", ".answer.json"


class ForgeVerb(StrEnum):
    """Verb of a request: all that an agent may ask for."""

    ISSUE = "issue"
    PULL = "pull"
    DIFF = "diff"
    CHECK = "check"
    LOOK = "look"
    COMMENT = "comment"
    MERGE = "merge"


WRITES = (ForgeVerb.COMMENT, ForgeVerb.MERGE)


class ForgeRequest(Struct, frozen=True):
    """Request, made `at`; with the same `id` it is the same request.

    `text` is a comment, the message of a merge, or options of diff. `on_pull`: it is a comment on a
    pull request. The forge may still be at work on it until `not_before`.
    """

    id: str
    verb: ForgeVerb
    number: IssueId
    at: float
    text: str = ""
    head: str = ""
    on_pull: bool = False
    not_before: float = 0.0


class ForgeAnswer(Struct, frozen=True):
    """Answer to a request: `data` as JSON, or an `error` with its exit code."""

    at: float
    data: str = ""
    error: str = ""
    code: int = 0


class RefusedRequestError(SmError):
    """The reactor has refused what an agent has asked for."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


def make_request(
    verb: ForgeVerb, number: IssueId, *, text: str = "", head: str = "", on_pull: bool = False
) -> ForgeRequest:
    """Return a request: one that writes is new each time, one that reads always the same."""
    now = time.time()
    ident = make_nonce(8)
    if verb not in WRITES:
        ident = hashlib.sha256(f"{verb} {number} {text}".encode()).hexdigest()[:16]
    return ForgeRequest(ident, verb, number, now, text, head, on_pull)


def ask(session: IssueSession, asked: ForgeRequest, *, wait_s: float = WAIT_S) -> str:
    """Ask the session's reactor; return the data. A recent answer to the same request will do.

    Raises:
        RefusedRequestError: it is refused.
        TemporaryError: there is no answer in time.

    """
    kept_s = session.project.settings.ci.poll_s
    known = read_answer(session.dir, asked.id)
    if known is None or known.error or not 0 <= asked.at - known.at < kept_s:
        ensure_private_dir(session.dir.asks, parents=False)
        write_json(_file(session.dir, asked.id), asked, durable=asked.verb in WRITES)
        known = _await(session, asked, wait_s)
    if known.error:
        raise RefusedRequestError(known.error, known.code)
    return known.data


def _await(session: IssueSession, asked: ForgeRequest, wait_s: float) -> ForgeAnswer:
    deadline = Deadline(wait_s)
    registry.poke(session.dir)
    while not deadline.is_over:
        found = read_answer(session.dir, asked.id)
        if found and not _file(session.dir, asked.id).exists():
            return found
        time.sleep(LOOK_S)
    if asked.verb is ForgeVerb.COMMENT:
        raise TemporaryError(
            "the forge has not taken the comment yet: sm goes on trying, do not send it again"
        )
    discard(_file(session.dir, asked.id))
    if asked.verb is ForgeVerb.MERGE:  # the reactor may be in the midst of it
        raise TemporaryError(
            f"no answer in {wait_s:.0f} s: it may be merged all the same, look at it by sm pr show "
            f"{asked.number} before you try again"
        )
    raise TemporaryError(f"no answer in {wait_s:.0f} s: try again later")


def list_requests(directory: SessionDir) -> list[ForgeRequest]:
    """Return the requests without an answer, oldest first."""
    if not directory.asks.is_dir():
        return []
    found = read_each(directory.asks, ForgeRequest, ASKED)
    # Its id is a part of paths, so it is that of its own file.
    known = [one for name, one in found if name == f"{one.id}{ASKED}"]
    return sorted(known, key=lambda one: one.at)


def put_off(directory: SessionDir, asked: ForgeRequest, until: float) -> None:
    """Put the request off until then, in seconds since 1970."""
    write_json(_file(directory, asked.id), structs.replace(asked, not_before=until), durable=True)


def answer(directory: SessionDir, asked: ForgeRequest, given: ForgeAnswer) -> None:
    """Give the answer; then the request is over."""
    write_json(directory.asks / f"{asked.id}{ANSWERED}", given)
    discard(_file(directory, asked.id))


def read_answer(directory: SessionDir, ident: str) -> ForgeAnswer | None:
    """Return the last answer to that request."""
    return read_rebuildable(directory.asks / f"{ident}{ANSWERED}", ForgeAnswer)


def clear_answers(directory: SessionDir) -> None:
    """Remove the answers that are not wanted any more."""
    if not directory.asks.is_dir():
        return
    for name in list_names(directory.asks):
        file = directory.asks / name
        if name.endswith(ANSWERED) and _age(file) > KEPT_S:
            discard(file)


def _file(directory: SessionDir, ident: str) -> Path:
    return directory.asks / f"{ident}{ASKED}"


def _age(file: Path) -> float:
    try:
        return time.time() - file.lstat().st_mtime
    except FileNotFoundError:
        return -math.inf
