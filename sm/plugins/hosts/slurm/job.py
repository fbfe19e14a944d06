"""What is done within a job of Slurm: it runs its session, and says what became of it."""

from __future__ import annotations

import contextlib
import os

from sm.adapters.process import run
from sm.base.errors import SmError
from sm.plugins.hosts.node import job
from sm.plugins.hosts.node.job import Order
from sm.plugins.hosts.slurm.queue import write_note
from sm.plugins.hosts.slurm.tidying import clear_old
from sm.sessions.project import Project

TELL_S = 10.0
JOB, RESTARTS = "SLURM_JOB_ID", "SLURM_RESTART_COUNT"
"""sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"; the second is there once a job was begun again."""


def run_job(project: Project, order: Order, keep_s: float) -> str:
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


def _tell(order: Order, words: str) -> None:
    number = os.environ.get(JOB, "")
    if number.isdecimal():
        note = f"comment={write_note(order.attempt, words)}"
        with contextlib.suppress(SmError):  # it is told to the log, too
            run("scontrol", "update", f"jobid={number}", note, timeout_s=TELL_S)
