"""Folder for the check of one commit."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from msgspec import Struct

from sm.adapters.forge.model import CheckState
from sm.base.errors import StateError
from sm.store.files import read_json

LOG_LIMIT = 1024 * 1024
"""Limit of a log that is kept, in bytes: its end."""


class Verdict(Struct, frozen=True):
    """Result of a run: `at` and `took_s` in seconds, `code` as the shell gave it.

    `of` tells which command it was, '' for a result from before commands were kept.
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
    """Return a word that another command does not have, and that tells nothing of its content."""
    return hashlib.sha256(command.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class CheckFolder(Struct, frozen=True):
    """Folder of everything that is kept for one commit."""

    path: Path

    @property
    def result(self) -> Path:
        """Verdict, written once at the end."""
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        """Output of the command; only the output's end if it was too long."""
        return self.path / "log"

    @property
    def lock(self) -> Path:
        """Lock that the runner holds as long as it lives."""
        return self.path / "lock"

    @property
    def starts(self) -> Path:
        """File with a line for each runner that was started."""
        return self.path / "starts"

    @property
    def process(self) -> Path:
        """Command under way, so that the next runner can end what a killed one left."""
        return self.path / "process.json"

    def verdict(self) -> Verdict | None:
        """Result, once there is one; a damaged one counts as none, and is found out again."""
        with contextlib.suppress(StateError):
            return read_json(self.result, Verdict)
        return None
