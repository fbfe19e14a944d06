"""Which status an error is answered with."""

from __future__ import annotations

from sm.errors import SmError, StateError, TemporaryError, UsageError
from sm.session.caller import CallerError


class HttpError(SmError):
    """A request that is refused with a status of its own."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status."""
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


def status_of(error: SmError) -> int:
    """The status for an error: 409 for what is refused as things are now."""
    if isinstance(error, HttpError):
        return error.status
    return next(status for kind, status in _STATUS if isinstance(error, kind))
