"""Marks what a tick of dev-poll could not do; then `--once` ends with an error."""

from __future__ import annotations


class Unable(str):
    """A line that says what could not be started or cared for, and why."""

    __slots__ = ()
