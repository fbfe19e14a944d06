"""What is said of something that was there before."""

from __future__ import annotations

from sm.base.errors import UsageError


class GoneError(UsageError):
    """What was asked for is not there, or not any more."""
