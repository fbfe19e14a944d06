"""Decides what of a host, or of a cluster, only a person can change. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sm.base.text import one_line
from sm.issues.runners import Hindrance, KnownState, Placement, Standing
from sm.plugins.hosts.dispatch.rules import REFUSALS
from sm.plugins.hosts.health import HostRefusal, HostSilence, KeptReport

CERTAIN = re.compile(
    r"Permission denied \("  # OpenSSH, sshconnect2.c: no key of ours is accepted
    r"|Host key verification failed"  # sshconnect.c
    r"|no sm there|does not understand sm"  # sm.plugins.hosts.ssh.channel
)
"""Errors that do not pass by themselves."""
REFUSED_S = 90.0
"""Age of a trouble that people are told of, in seconds: a forge may start again, a disk be full."""
TEXT_LIMIT = 400
MOST = 5
"""Issues that a sentence names."""

ENDLESS = frozenset({"BadConstraints", "InvalidAccount", "InvalidQOS", "JobHeldAdmin"})
ENDLESS |= {"PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit"}
"""Reasons of a job that does not begin until a person changes something: squeue(1), "JOB REASON
CODES"."""


def explain_silence(
    host: str, silence: HostSilence, lost_after_s: float, now: float
) -> Hindrance | None:
    """Say that a host is lost, or does not let us in; one that is just silent may come back."""
    if now - silence.since < lost_after_s and not CERTAIN.search(silence.why):
        return None
    said = silence.why.removeprefix(f"host '{host}' does not answer: ")
    text = f"Host '{host}' does not answer, and gets no sessions: {said}"
    return _make(f"host:{host}:silent:{silence.since:.0f}", text, host, silence.since)


def explain_shortage(host: str, project: str, kept: KeptReport) -> Hindrance | None:
    """Say what a host lacks for the project, by what it said last."""
    if not kept.report.short:
        return None
    since = kept.short_since or kept.at
    text = f"Host '{host}' gets nothing new: {', '.join(kept.report.short)}"
    return _make(f"host:{host}:short:{project}:{since:.0f}", text, host, since)


def explain_refusal(host: str, project: str, refusal: HostRefusal, now: float) -> Hindrance | None:
    """Say that a host answers, and cannot begin a session, unless that may pass."""
    if now - refusal.since < REFUSED_S:
        return None
    said = _strip_host(refusal.why, host)
    text = f"Host '{host}' answers, and cannot begin a session of '{project}': {said}"
    return _make(f"host:{host}:refuses:{project}:{refusal.since:.0f}", text, host, refusal.since)


def list_unfit(
    placements: Iterable[Placement], seen: Mapping[str, KnownState], now: float
) -> Iterator[Hindrance]:
    """Say which issues their hosts do not begin, while they begin others."""
    for one in placements:
        known = None if one.handle else seen.get(one.session)
        if known and known.standing is Standing.UNFIT and now - one.placed_at >= REFUSED_S:
            said = _strip_host(known.words, one.host)
            text = f"Host '{one.host}' does not begin {_name(one)}: {said}"
            key = f"host:{one.host}:unfit:{one.session}:{one.attempt}"
            yield _make(key, text, one.host, one.placed_at)


def tell_refusal(placement: Placement, seen: KnownState | None) -> str:
    """Say what a session waits for that its host does not begin; '' for any other."""
    if placement.handle or seen is None or seen.standing not in REFUSALS:
        return ""
    said = _strip_host(seen.words, placement.host)
    return f"host '{placement.host}' to begin it, which says: {said}"


def _strip_host(words: str, host: str) -> str:
    return words.removeprefix(f"host '{host}': ")


def list_unknown(hosts: Iterable[str], placements: Iterable[Placement]) -> Iterator[Hindrance]:
    """Name each host that has sessions, and is none of the configuration any more."""
    known, left = set(hosts), dict[str, list[Placement]]()
    for one in placements:
        if one.host not in known:
            left.setdefault(one.host, []).append(one)
    for host, there in left.items():
        text = (
            f"'{host}' has {_list_issues(there)}, and is no host of the configuration any more: "
            "add it again, so that it is known how they stand"
        )
        since = min(one.placed_at for one in there)
        yield _make(f"host:{host}:unknown:{there[0].project}", text, "", since)


def list_twins(twins: Mapping[str, str]) -> Iterator[Hindrance]:
    """Say which hosts are one machine under two names."""
    for twin, first in twins.items():
        text = f"Host '{twin}' is the machine of '{first}', and gets no sessions: remove one"
        yield _make(f"host:{twin}:twin:{first}", text, twin, 0.0)


def list_of_cluster(
    placements: Sequence[Placement], seen: Mapping[str, KnownState], patience_s: float, now: float
) -> Iterator[Hindrance]:
    """Say which jobs do not begin, and whether Slurm does not answer."""
    silent = dict[str, list[Placement]]()
    for one in placements:
        known = seen.get(one.session)
        if known is None:
            continue
        if known.standing is Standing.SILENT and 0 < known.known_at < now - patience_s:
            silent.setdefault(known.words, []).append(one)
        elif known.standing in (Standing.LOST, Standing.UNFIT) and known.words.startswith(FAILED):
            text = f"The job of {_name(one)} could not begin its session: {known.words}"
            # Its next attempt fails as well, mostly: that is one matter.
            yield _make(f"job:{one.session}:{known.words}", text, "slurm", one.placed_at)
        elif known.standing is Standing.WAITING and known.words in ENDLESS:
            text = f"The job of {_name(one)} does not begin: Slurm says {known.words}"
            key = f"job:{one.session}:{one.attempt}:{known.words}"
            yield _make(key, text, "slurm", one.placed_at)
    for why, there in silent.items():
        since = min(seen[one.session].known_at for one in there)
        text = f"Nothing is known of {_list_issues(there)}: {why}"
        yield _make(f"cluster:{there[0].project}:{since:.0f}", text, "slurm", since)


FAILED = "Slurm says failed"
"""What `sm.plugins.hosts.slurm.standing` says of a job that has ended with an error."""


def _list_issues(placements: Sequence[Placement]) -> str:
    names = [_name(one) for one in placements]
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _name(placement: Placement) -> str:
    return f"{placement.project}#{placement.issue}"


def _make(key: str, text: str, checked: str, since: float) -> Hindrance:
    command = f"sm host check {checked}" if checked else "sm host list"
    return Hindrance(key, one_line(text, TEXT_LIMIT), command, since)
