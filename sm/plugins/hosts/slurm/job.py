"""Job of Slurm from within: it clears old state, runs its session, and says what became of it.

Each session has a state root of its own on the node's disk, and one job of it at a time. Once the
session has ended, with its work pushed or kept in the clone, only its journal and its logs are left
there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from sm.adapters.process import run
from sm.base.errors import SmError
from sm.plugins.hosts.node import job
from sm.plugins.hosts.node.job import JobOrder
from sm.plugins.hosts.slurm.queue import write_note
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store.paths import Root

TELL_S = 10.0
JOB, RESTARTS = "SLURM_JOB_ID", "SLURM_RESTART_COUNT"
"""sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"; the second is there once a job was begun again."""


def run_job(project: Project, order: JobOrder, keep_s: float) -> str:
    """Run the session to its end; return what became of it, which the job's comment has then, too.

    A job that Slurm has begun again begins nothing: what it ran before may run on somewhere. What
    earlier sessions have left on this node goes after `keep_s`.

    Raises:
        SmError: the session could not begin.

    """
    if os.environ.get(RESTARTS, "0") != "0":
        said = "begun again by Slurm: the next attempt is another job"
        _tell(order, said)
        return said
    clear_old(project, keep_s)
    with job.listening() as told:
        try:
            said = job.run(project, order, told)
        except SmError as error:
            _tell(order, error.message)
            raise
        _tell(order, said)
        return said


def _tell(order: JobOrder, words: str) -> None:
    number = os.environ.get(JOB, "")
    if number.isdecimal():
        note = f"comment={write_note(order.attempt, words)}"
        with contextlib.suppress(SmError):  # it is told to the log, too
            run("scontrol", "update", f"jobid={number}", note, timeout_s=TELL_S)


def clear_old(project: Project, keep_s: float) -> list[Path]:
    """Remove state roots beside our own that have not changed for so long; return which.

    One with a session on record stays: that has not ended in order, so its work may not be saved.
    So does one with a worktree in it, and what is of another installation.
    """
    removed = []
    with contextlib.suppress(SmError, OSError):  # another job of this node tries again
        places = [entry.path for entry in project.git.worktrees()]
        for path in list_old(project.root.path, places, time.time() - keep_s):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def list_old(own: Path, worktrees: Iterable[Path], before: float) -> Iterator[Path]:
    """Yield the state roots of this installation that can go, beside the one of this job."""
    kept = {parent for place in worktrees for parent in (place, *place.parents)}
    mark = own.name.rpartition("-")[2]
    for path in sorted(own.parent.glob(f"sm-*-{mark}")):
        if path == own or path in kept or not _is_ours(path) or _has_sessions(Root(path)):
            continue
        if _find_last_change(Root(path)) < before:
            yield path


def _is_ours(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _has_sessions(root: Root) -> bool:
    try:
        return bool(registry.list_session_names(root))
    except SmError:  # nobody knows
        return True


def _find_last_change(root: Root) -> float:
    """When something was last done there, in seconds since 1970."""
    marks = (root.path, root.private, root.journal, root.sessions)
    return max(path.stat().st_mtime for path in marks if path.exists())
