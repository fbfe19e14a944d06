"""How a request to a forge fails, each way a class of its own, so that a caller can act on it."""

from __future__ import annotations

from sm.base.errors import SmError, TemporaryError


class UnreachableError(TemporaryError):
    """The forge did not answer, or only with an error of its own, as often as it was asked."""


class UnknownOutcomeError(UnreachableError):
    """It did not answer to a write that must not be repeated blindly: it may have been done."""


class BadAnswerError(TemporaryError):
    """The answer is not what the forge promises: cut off, too long, or of another shape."""


class BadShapeError(BadAnswerError):
    """It came whole, and has another shape: the same request will bring the same answer."""


class TooLongError(BadShapeError):
    """It is longer than it may be, and so it will be the next time."""


class LimitedError(TemporaryError):
    """The forge takes no more requests until `until` (seconds since the epoch)."""

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class TokenRefusedError(TemporaryError):
    """The forge does not accept the token; a new one may be there at the next try."""


class RefusedError(SmError):
    """The forge refuses the request for good; `status` is HTTP's, `said` its own words."""

    def __init__(self, message: str, status: int, said: str) -> None:
        super().__init__(message)
        self.status = status
        self.said = said


class MovedAwayError(RefusedError):
    """What was asked for is another thing in another repository now."""
