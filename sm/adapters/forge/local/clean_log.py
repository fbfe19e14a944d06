"""Takes secrets out of what a CI command says before it is kept, so no reader gets them."""

from __future__ import annotations

from collections.abc import Callable

from sm.base.redact import redact

LONGEST = 64 * 1024
"""Limit of an unfinished line that is held back, in bytes."""


class CleanLog:
    """Log that passes its lines on without secrets, as `append` is given its bytes."""

    def __init__(self, append: Callable[[bytes], None]) -> None:
        """Begin a log."""
        self._append = append
        self._rest = b""

    def write(self, chunk: bytes) -> None:
        """Pass on the lines that are complete now."""
        lines, end, self._rest = (self._rest + chunk).rpartition(b"\n")
        if len(self._rest) > LONGEST:
            lines, end, self._rest = lines + end + self._rest, b"", b""
        if lines or end:
            self._append(clean_log(lines + end))

    def close(self) -> None:
        """Pass on what is left of a last line."""
        rest, self._rest = self._rest, b""
        if rest:
            self._append(clean_log(rest))


def clean_log(log: bytes) -> bytes:
    """Return the log without well-known secrets; bytes that are no text stay."""
    return redact(log.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
