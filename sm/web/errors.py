"""Chooses the HTTP status for an error."""

from __future__ import annotations

from sm.base.errors import SmError, StateError, TemporaryError, UsageError
from sm.sessions.caller import CallerError


class HttpError(SmError):
    """A refused request, with its own status."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status beside the message."""
        super().__init__(message)
        self.status = status


class UnknownSessionError(SmError):
    """There is no such session."""


_STATUS: tuple[tuple[type[SmError], int], ...] = (
    (UnknownSessionError, 404),
    (CallerError, 403),
    (UsageError, 422),
    (TemporaryError, 503),
    (StateError, 500),
    (SmError, 409),
)


def choose_status(error: SmError) -> int:
    """Return the status for an error: 409 if the present state refuses the request."""
    if isinstance(error, HttpError):
        return error.status
    return next(status for kind, status in _STATUS if isinstance(error, kind))
