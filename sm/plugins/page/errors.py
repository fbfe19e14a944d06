"""Error about something that was there before."""

from __future__ import annotations

from sm.base.errors import UsageError


class GoneError(UsageError):
    """A thing that was asked for is not there, or not any more."""
