"""Process aside that carries a look at the forge to jobs.

Each takes a step in its job, so a job is brought only what is new to it, or what it would soon not
count on any more. Nothing hears what jobs wish for: when an agent has written its phase, its
session looks by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, json, structs

from sm.base.errors import SmError
from sm.issues.look.look_share import LookShare
from sm.issues.placements import list_placements
from sm.issues.runners import Placement
from sm.plugins.hosts.dispatch.bearer import MakeShare
from sm.plugins.hosts.folder import open_folder
from sm.plugins.hosts.slurm import step
from sm.plugins.hosts.slurm.poller import AT_ONCE
from sm.plugins.hosts.slurm.reports import FOLDER, make_helper
from sm.sessions.project import Project
from sm.store.files import read_json, write_json

CARRY_S = 20.0
"""Time that a step may take; a look counts as that much older there, whose clock is unknown."""
LIMIT = 64 << 20
"""Bytes of what is to be brought to all jobs of a project."""


class Carried(Struct, frozen=True):
    """Share that a job was brought last: for which attempt, its digest, and when (by our clock)."""

    attempt: int
    digest: str
    at: float


class Load(Struct, frozen=True):
    """Shares that are to be brought, by the names of their sessions."""

    shares: dict[str, LookShare]


def bring(project: Project, placements: Sequence[Placement], make: MakeShare) -> None:
    """Bring shares to the jobs to which they are due; nobody waits for that."""
    shares = {one.session: structs.replace(make([one.issue]), wait_s=0.0) for one in placements}
    due = list_due(placements, shares, read_carried(project), time.time())
    if not due:
        return
    load = Load({one.session: shares[one.session] for one in due})
    write_json(_locate(project, "to-bring"), load, limit=LIMIT)
    make_helper(project, "carry", "bring").ensure()


def list_due(
    placements: Iterable[Placement],
    shares: Mapping[str, LookShare],
    carried: Mapping[str, Carried],
    now: float,
) -> list[Placement]:
    """Return the placements to which it is new, or was brought a while ago."""
    return [
        one
        for one in placements
        if not _is_known(one, shares[one.session], carried.get(one.session), now)
    ]


def _is_known(placement: Placement, share: LookShare, last: Carried | None, now: float) -> bool:
    if last is None or (last.attempt, last.digest) != (placement.attempt, digest(share)):
        return False
    return 0 <= now - last.at < share.lasts_s / 2


def digest(share: LookShare) -> str:
    """Return a word for all that it says, but for when."""
    timeless = structs.replace(share, seen=structs.replace(share.seen, taken_at=0.0))
    return hashlib.sha256(json.encode(timeless)).hexdigest()[:16]


def carry(project: Project) -> None:
    """Bring what is to be brought; another process may be about it."""
    from concurrent.futures import ThreadPoolExecutor

    with make_helper(project, "carry", "bring").take_place() as ours:
        load = read_json(_locate(project, "to-bring"), Load, limit=LIMIT) if ours else None
        if load is None:
            return
        placed = list_placements(project.directory)
        meant = [one for one in placed if one.session in load.shares]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda one: _carry_one(project, one, load.shares[one.session]), meant)
        done = {one.session: what for one, what in zip(meant, found, strict=True) if what}
        there = {one.session for one in placed}
        known = {name: one for name, one in read_carried(project).items() if name in there}
        write_json(_locate(project, "brought"), known | done)


def _carry_one(project: Project, placement: Placement, share: LookShare) -> Carried | None:
    """Bring it to one job; a job that does not take it looks by itself, and is asked again."""
    now = time.time()
    age = max(0.0, now - share.seen.taken_at) + CARRY_S
    words = ("host", "adopt", project.name, "--age", f"{age:.3f}")
    text = json.encode(share).decode()
    try:
        answer = step.call_job(project, placement, words, stdin=text, within_s=CARRY_S)
    except SmError:
        return None
    return Carried(placement.attempt, digest(share), now) if answer.code == 0 else None


def read_carried(project: Project) -> dict[str, Carried]:
    """Return what jobs were brought last, by their sessions."""
    with contextlib.suppress(SmError):
        return read_json(_locate(project, "brought"), dict[str, Carried]) or {}
    return {}


def _locate(project: Project, what: str) -> Path:
    return open_folder(project.root, FOLDER).path / f"{what}-{project.name}.json"
