"""Tokens that count now: those in the files as these are, not as they were at the start.

A line that is removed lets nobody in any more, from the next request on. A file that is gone, or
cannot be used, has no token until it is right again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TypeVar

from sm.base.errors import UsageError
from sm.base.output import warn
from sm.store.files import Stamp, find_stamp
from sm.web.address import read_readers, read_secret
from sm.web.rights import Tokens

T = TypeVar("T")
YOUNG_NS = 1_000_000_000
"""Age below which a file is read each time, in nanoseconds."""


class TokenFiles:
    """The files of `--token-file` and `--read-token-file`, if there are any."""

    def __init__(self, token: str, file: Path | None, readers_file: Path | None) -> None:
        """Read nothing yet; `token` is the one that acts if there is no file for it."""
        self._token, self._file, self._readers_file = token, file, readers_file
        self._tokens, self._stamps = Tokens(), list[Stamp]()
        self._told, self._said = set[str](), set[str]()

    def read(self) -> Tokens:
        """Return the tokens of the files, which are read again only when one has changed."""
        files = (one for one in (self._file, self._readers_file) if one)
        if (stamps := [find_stamp(one) for one in files]) != self._stamps or not stamps:
            # What is written again within a tick of the file system's clock has the same time.
            young = time.time_ns() - YOUNG_NS
            self._stamps = [] if any(at > young for _, at, _ in stamps) else stamps
            self._said = set()
            self._tokens = self._read()
            self._told = self._said
        return self._tokens

    def _read(self) -> Tokens:
        try:
            token = read_secret(self._file) if self._file else self._token
        except UsageError as error:
            token = self._tell(error, "")
        try:
            return Tokens(token, read_readers(self._readers_file, token))
        except UsageError as error:
            return Tokens(token, self._tell(error, ()))

    def _tell(self, error: UsageError, nothing: T) -> T:
        """Say what is wrong once, as long as it is so."""
        if error.message not in self._told:
            warn(f"{error.message}; until then no token in it lets anybody in")
        self._said.add(error.message)
        return nothing
