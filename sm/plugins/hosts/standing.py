"""Decides how a session elsewhere stands, by what its node has said."""

from __future__ import annotations

from sm.issues.runners import Placement, Seen, Standing
from sm.plugins.hosts.health import Kept, Silence


def judge(
    placement: Placement,
    kept: Kept | None,
    silence: Silence | None,
    lost_after_s: float,
    now: float,
) -> Seen:
    """Say how it stands; `silence` is there while its host does not answer.

    What a node said before the session was placed there is nothing about it.
    """
    host, known_at = placement.host, kept.at if kept else 0.0
    if silence:
        for_s = max(0.0, now - max(silence.since, placement.placed_at))
        how = Standing.LOST if for_s >= lost_after_s else Standing.SILENT
        return Seen(how, host, known_at, silence.why)
    if kept is None:
        return Seen(Standing.SILENT, host, 0.0)
    row = kept.report.rows.get(placement.session)
    if row is not None:
        return Seen(Standing.RUNNING, host, known_at, str(row.get("phase", "")))
    if placement.session in kept.report.ended:
        return Seen(Standing.OVER, host, known_at)
    return Seen(Standing.LOST, host, known_at, "its node knows nothing of it")
