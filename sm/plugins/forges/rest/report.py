"""What is known of one failed part of CI."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Report(Struct, frozen=True):
    """What one failed part of CI says: the `step` in it that failed, and its whole `log`.

    `outage` says why the part has failed without having tested anything. `read_log` asks for a log,
    and what it returns takes the place of `log`.
    """

    log: str = ""
    step: str = ""
    outage: str = ""
    read_log: Callable[[], str] | None = None
