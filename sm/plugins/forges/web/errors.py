"""Failures of a request to a forge over HTTP, beside those that any forge may have."""

from __future__ import annotations

from sm.adapters.forge.errors import RefusedError
from sm.base.errors import TemporaryError


class BadAnswerError(TemporaryError):
    """The answer is not what the forge promises: cut off, too long, or of another shape."""


class BadShapeError(BadAnswerError):
    """The answer came whole, and has another shape: the same request will bring the same answer."""


class TooLongError(BadShapeError):
    """The answer is longer than it may be, and so it will be the next time."""


class LimitedError(TemporaryError):
    """The forge takes no more requests until `until` (seconds since the epoch)."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class TokenRefusedError(TemporaryError):
    """The forge does not accept the token; a new one may be there at the next try."""


class MovedAwayError(RefusedError):
    """The thing that was asked for is another one in another repository now."""
