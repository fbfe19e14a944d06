"""Adoption of another machine's look at the forge: the sessions that it places here need none."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import DecodeError, structs

from sm.base.decoder import decode
from sm.base.errors import UsageError
from sm.issues.look import snapshot, wishes
from sm.issues.look.look_share import LookShare
from sm.sessions.project import Project
from sm.store.paths import Root

HEAR_S = 25.0
"""Time that a wish is waited for, in seconds; then whoever hears them asks again."""


def read_share(text: str, age_s: float | None = None) -> LookShare:
    """Read a share; `age_s` is how old the look is at the most, if its time is by another clock.

    Raises:
        UsageError: it is another thing, or of another version.

    """
    try:
        share = decode(text.encode("utf-8", "surrogateescape"), LookShare)
    except DecodeError as error:
        raise UsageError(f"expected a look at the forge as JSON: {error}") from error
    if age_s is None:
        return share
    seen = structs.replace(share.seen, taken_at=time.time() - age_s)
    return structs.replace(share, seen=seen)


def adopt(project: Project, share: LookShare) -> None:
    """Have it count as a look of our own for a while.

    Raises:
        UsageError: it shows another thing than a look from here would.
        TemporaryError: not now.

    """
    snapshot.adopt(project, share)


def hear(root: Root, server: int) -> list[str]:
    """Return the projects whose sessions wish for a newer look, as soon as one does.

    Raises:
        UsageError: the process `server` has no ear for wishes.

    """
    try:
        return wishes.hear(root, server, HEAR_S)
    except OSError as error:
        where = Path(error.filename or "").name
        raise UsageError(f"nobody hears wishes here: {error.strerror} ({where})") from error
