"""Health of hosts: their last reports, silences and refusals, and how their sessions stand by them.

A report is kept for when its node does not answer.
"""

from __future__ import annotations

import contextlib
import time

from msgspec import Struct

from sm.base.errors import SmError
from sm.issues.runners import KnownState, Placement, Standing
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.node.report import NodeReport
from sm.store.files import discard, read_json, write_json

LIMIT = 16 << 20
"""Bytes of a report; a session has about 2,000."""
GAP_S = 300.0
"""Two looks in vain that are further apart are two silences: in between nobody has looked."""


TRY_S, TRY_LONGEST_S = 600.0, 4 * 3600.0
"""Each try costs an issue an attempt. Whoever has mended the host says so by `sm host check`."""


class KeptReport(Struct, frozen=True):
    """A report, and when it came by our own clock (seconds since 1970).

    `short_since` is when the first one came that said that the machine lacks something, 0 if it
    lacks nothing.
    """

    at: float
    report: NodeReport
    short_since: float = 0.0


class HostSilence(Struct, frozen=True):
    """Silence of a host: since when it was asked in vain, and when last; seconds since 1970."""

    since: float
    last_at: float
    why: str


class HostRefusal(Struct, frozen=True):
    """Refusal of a host: since when it cannot begin sessions, and when it was last tried.

    Both are in seconds since 1970.
    """

    since: float
    last_at: float
    why: str

    def is_to_be_tried(self, now: float) -> bool:
        """Whether it gets one session to find out: after a while, each time after twice as long."""
        pause_s = min(max(TRY_S, self.last_at - self.since), TRY_LONGEST_S)
        return not 0 <= now - self.last_at < pause_s


def keep_report(folder: HostFolder, project: str, report: NodeReport) -> KeptReport:
    """Keep what a node has just said; it is not silent any more."""
    now, since = time.time(), 0.0
    if report.short:
        before = read_report(folder, project)
        since = (before.short_since if before else 0.0) or now
    kept = KeptReport(now, report, since)
    with contextlib.suppress(SmError):  # on a full disk it is known for now all the same
        write_json(folder.report(project), kept, limit=LIMIT)
        discard(folder.silent)
    return kept


def read_report(folder: HostFolder, project: str) -> KeptReport | None:
    """Return what the node has said last; None if it never did."""
    with contextlib.suppress(SmError):
        return read_json(folder.report(project), KeptReport, limit=LIMIT)
    return None


def note_silence(folder: HostFolder, why: str, now: float) -> HostSilence:
    """Note that the host was asked in vain; return since when it is."""
    known = read_silence(folder)
    goes_on = known is not None and 0 <= now - known.last_at < GAP_S
    silence = HostSilence(known.since if known and goes_on else now, now, why)
    with contextlib.suppress(SmError):
        write_json(folder.silent, silence)
    return silence


def note_refusal(folder: HostFolder, project: str, why: str, now: float) -> None:
    """Note that the host could not begin a session, by its own words."""
    known = read_refusal(folder, project)
    refusal = HostRefusal(known.since if known else now, now, why)
    with contextlib.suppress(SmError):
        write_json(folder.refusal(project), refusal)


def read_refusal(folder: HostFolder, project: str) -> HostRefusal | None:
    """Return since when the host cannot begin sessions of the project; None if it can."""
    with contextlib.suppress(SmError):
        return read_json(folder.refusal(project), HostRefusal)
    return None


def end_refusal(folder: HostFolder, project: str) -> None:
    """Forget the refusal: the host has begun a session, or was found to be well."""
    discard(folder.refusal(project))


def read_silence(folder: HostFolder) -> HostSilence | None:
    """Return since when it is asked in vain; None if it has answered the last time."""
    with contextlib.suppress(SmError):
        return read_json(folder.silent, HostSilence)
    return None


def judge(
    placement: Placement,
    kept: KeptReport | None,
    silence: HostSilence | None,
    lost_after_s: float,
    now: float,
) -> KnownState:
    """Say how it stands; `silence` is there while its host does not answer.

    What a node said before the session was placed there is nothing about it.
    """
    host, known_at = placement.host, kept.at if kept else 0.0
    if silence:
        for_s = max(0.0, now - max(silence.since, placement.placed_at))
        how = Standing.LOST if for_s >= lost_after_s else Standing.SILENT
        return KnownState(how, host, known_at, silence.why)
    if kept is None:
        return KnownState(Standing.SILENT, host, 0.0)
    row = kept.report.rows.get(placement.session)
    if row is not None:
        return KnownState(Standing.RUNNING, host, known_at, str(row.get("phase", "")))
    if placement.session in kept.report.ended:
        return KnownState(Standing.OVER, host, known_at)
    return KnownState(Standing.LOST, host, known_at, "its node knows nothing of it")
