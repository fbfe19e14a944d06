"""What is kept for the check of one commit."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.model import CheckState
from sm.base.errors import StateError
from sm.store.files import read_json

LOG_LIMIT = 1024 * 1024
"""Bytes of a log that are kept: its end."""


class Verdict(Struct, frozen=True):
    """The result of a run: `at` and `took_s` in seconds, `code` as the shell gave it.

    `of` tells which command it was, '' for a result of before that was kept.
    """

    state: CheckState
    step: str
    code: int
    at: float
    took_s: float = 0.0
    of: str = ""

    @property
    def overdue(self) -> bool:
        """Whether the command was stopped at the CI timeout, so that nothing is known."""
        return self.state is CheckState.PENDING

    def is_of(self, command: str) -> bool:
        """Whether the result is of this command, as far as that is known."""
        return self.of in ("", fingerprint(command))


def fingerprint(command: str) -> str:
    """A word that another command does not have, and that tells nothing of what is in it."""
    return hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class CheckFolder(Struct, frozen=True):
    """Everything that is kept for one commit."""

    path: Path

    @property
    def result(self) -> Path:
        """The verdict, written once at the end."""
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        """What the command said, its end where it said too much."""
        return self.path / "log"

    @property
    def lock(self) -> Path:
        """Held by the runner as long as it lives."""
        return self.path / "lock"

    @property
    def starts(self) -> Path:
        """One line for each runner that was started."""
        return self.path / "starts"

    @property
    def process(self) -> Path:
        """The command under way, so that the next runner can end what a killed one left."""
        return self.path / "process.json"

    def verdict(self) -> Verdict | None:
        """The result, once there is one; one that is damaged is none, and is found out again."""
        with contextlib.suppress(StateError):
            return read_json(self.result, Verdict)
        return None
