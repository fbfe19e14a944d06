"""Decides how a session stands, by what Slurm says of its job. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sm.issues.runners import KnownState, Placement, Standing
from sm.plugins.hosts.slurm.queue import SlurmJob

WAITS = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
WAITS |= {"RESV_DEL_HOLD", "REQUEUE_FED"}
RUNS = frozenset({"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "RESIZING", "EXPEDITING"})
STANDS = frozenset({"SUSPENDED", "STOPPED"})
OVER = "COMPLETED"
FAILED = "FAILED"
"""squeue(1), "JOB STATE CODES"; all are in job_state_string of src/common/slurm_protocol_defs.c.

That has EXPEDITING since 25.11. Why a job waits is told as Slurm says it: job_reason_string there.
"""
NO_REASON = "None"
FORGOTTEN = "Slurm does not know its job any more"
UNKNOWN = "its job runs, and knows nothing of it any more"


def find_job(jobs: Iterable[SlurmJob], name: str, attempt: int) -> SlurmJob | None:
    """Return the job of an attempt; the latest if a person has begun another."""
    fitting = [one for one in jobs if (one.name, one.attempt) == (name, attempt)]
    return max(fitting, key=lambda one: _number(one.id), default=None)


def _number(job: str) -> int:
    return int(job) if job.isdecimal() else 0


def judge(
    placement: Placement, job: SlurmJob | None, known_at: float, *, is_gone: bool = False
) -> KnownState:
    """Say how it stands; `is_gone`: the job answers, and knows nothing of its session any more.

    Slurm forgets a job some minutes after its end (slurm.conf(5), MinJobAge), and may lose all. So
    one that it does not know is lost: if its session should still run, it is overtaken.
    """
    if job is None:
        return KnownState(Standing.LOST, placement.host, known_at, FORGOTTEN)
    where = job.node or placement.host
    if job.state in WAITS and job.words:  # its session has ended, and said so
        return KnownState(
            Standing.LOST, where, known_at, f"Slurm has put its job back: {job.words}"
        )
    if job.state in WAITS:
        reason = "" if job.reason == NO_REASON else job.reason
        return KnownState(Standing.WAITING, where, known_at, reason)
    if job.state in RUNS and is_gone:
        return KnownState(Standing.LOST, where, known_at, UNKNOWN)
    if job.state in RUNS:
        return KnownState(Standing.RUNNING, where, known_at, job.words)
    if job.state in STANDS:
        return KnownState(Standing.SILENT, where, known_at, job.state.lower())
    if job.state == OVER:
        return KnownState(Standing.OVER, where, known_at, job.words)
    told = f"Slurm says {job.state.lower().replace('_', ' ')}"
    return KnownState(Standing.LOST, where, known_at, f"{told}: {job.words}" if job.words else told)


def list_failed(jobs: Iterable[SlurmJob], names: Iterable[str]) -> dict[str, SlurmJob]:
    """Return the last job of each of these names, if it could not begin its session a while ago.

    Slurm lists it for some minutes. The session's next job would fail as well, so it is worth to
    wait as long.
    """
    wanted, last = set(names), dict[str, SlurmJob]()
    for one in jobs:
        if one.name in wanted and (
            one.name not in last or _number(last[one.name].id) < _number(one.id)
        ):
            last[one.name] = one
    return {name: one for name, one in last.items() if one.state == FAILED}
