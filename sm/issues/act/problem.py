"""Problem file: what keeps the session from what is due, for its reactor and for people."""

from __future__ import annotations

import os

from msgspec import Struct

from sm.adapters.forge.errors import MergeRefusedError, NothingToMergeError, RefusedError
from sm.adapters.git_push import PushRefusedError
from sm.base.errors import StateError, UsageError
from sm.base.refusal import Refusal, find_refusal
from sm.store.files import decode_json, read_guarded, write_json
from sm.store.paths import SessionDir

REFUSALS = (MergeRefusedError, NothingToMergeError, PushRefusedError, RefusedError, UsageError)
"""Errors by which the forge and the remote refuse: the same try would be refused again."""


class SessionProblem(Struct, frozen=True, omit_defaults=True):
    """Problem of a session; `refusal` if something in the agent's terminal is in the way.

    `lasts`: the same try fails until a person changes something, such as a rule of the remote.

    `not_before` is when it may be tried again at the earliest, in seconds since 1970: what a forge
    may still be at work on would be done twice. 0 if nothing speaks against an earlier try.
    """

    text: str
    refusal: Refusal | None = None
    not_before: float = 0.0
    lasts: bool = False

    @property
    def sentence(self) -> str:
        """Sentence that a person reads."""
        return f"{self.text}: {self.refusal.sentence}" if self.refusal else self.text


def read_problem(directory: SessionDir) -> SessionProblem | None:
    """Read what is in the way, None for nothing.

    Raises:
        StateError: the path is no plain file of ours.

    """
    data = read_guarded(directory.problem)
    if data is None:
        return None
    try:
        return decode_json(data, SessionProblem, directory.problem)
    except StateError:  # an older version has written a sentence alone
        sentence = data.decode("utf-8", "replace").strip()
        text, _, end = sentence.partition(": ")
        refusal = find_refusal(end)
        return SessionProblem(text, refusal) if refusal else SessionProblem(sentence)


def write_problem(
    directory: SessionDir, problem: SessionProblem, since: float | None = None
) -> None:
    """Write the problem; the file's time is its beginning (seconds since 1970; default: now).

    Raises:
        StateError: it cannot be written.

    """
    write_json(directory.problem, problem)
    if since is not None:
        os.utime(directory.problem, (since, since))


def note_problem(directory: SessionDir, problem: SessionProblem) -> None:
    """Write the problem; the file keeps its time if it says the same already."""
    if read_problem(directory) != problem:
        write_problem(directory, problem)
