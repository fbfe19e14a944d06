"""Asks Slurm: submits a job, lists ours, and cancels one. Pure but for `Queue`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sm.adapters.process import CommandError, CommandTimeoutError, MissingProgramError, Result, run
from sm.base.errors import SmError, TemporaryError
from sm.base.foreign import read_number
from sm.base.text import one_line
from sm.issues.runners import Placement
from sm.plugins.hosts.slurm.settings import Slurm
from sm.store.paths import Root

ASK_S, SUBMIT_S = 10.0, 20.0
"""Time that a command of Slurm may take, which tries again while the controller is away."""
FIELDS = ("%i", "%j", "%T", "%r", "%N", "%k")
"""squeue(1): job, name, state, reason, nodes, comment; the last one may have any text."""
SEPARATOR = "|"
NOTE = re.compile(r"attempt=(\d+)(?: (.*))?", re.DOTALL)
SIGNAL = "B:USR1"
"""sbatch(1), `--signal`: only the script gets it, and not what it has started."""


class SlurmJob(Struct, frozen=True):
    """A job of ours. `attempt` 0: its comment does not say. `words`: what its session has said."""

    id: str
    name: str
    state: str
    reason: str
    node: str
    attempt: int
    words: str


def name_job(root: Root, session: str) -> str:
    """Return the name of a session's jobs: each installation of this user has its own."""
    place = f"{os.uname().nodename} {os.path.realpath(root.path)}"
    return f"sm-{session}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def list_options(settings: Slurm, placement: Placement, name: str) -> list[str]:
    """Return the options of sbatch for an attempt.

    No variable of ours goes along: the job has the environment of a login on its node. Slurm never
    begins a job again by itself, because one that it lost may run on: another attempt is another
    job. No two of a name run at once.
    """
    options = [f"--job-name={name}", "--dependency=singleton", "--no-requeue", "--export=NIL"]
    options += ["--output=/dev/null", f"--comment={write_note(placement.attempt)}"]
    if settings.licenses:
        options += [f"--licenses={','.join(settings.licenses)}"]
    if settings.time_limit_s:
        options += [f"--time={max(1, round(settings.time_limit_s / 60))}"]
        options += [f"--signal={SIGNAL}@{max(1, round(settings.notice_s))}"]
    return [*options, *list_wanted(settings)]


def list_wanted(settings: Slurm) -> list[str]:
    """Return the options of sbatch, and of srun, for a node as sessions need it."""
    options = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={settings.cpus}", "--chdir=/"]
    told = {"partition": settings.partition, "account": settings.account, "qos": settings.qos}
    told |= {"mem": settings.memory}
    options += [f"--{key}={value}" for key, value in told.items() if value]
    return [*options, *settings.options]


def write_note(attempt: int, words: str = "") -> str:
    """Return the comment of a job: its attempt, and what its session says."""
    return f"attempt={attempt} {one_line(words, 200)}".strip()


def read_jobs(lines: Iterable[str]) -> Iterator[SlurmJob]:
    """Read what squeue has listed in the format `FIELDS`; another line is none of ours."""
    for line in lines:
        parts = line.split(SEPARATOR, len(FIELDS) - 1)
        if len(parts) == len(FIELDS):
            number, name, state, reason, node, note = parts
            found = NOTE.fullmatch(note)
            attempt = read_number(found[1]) if found else 0
            words = one_line(found[2] or "") if found else ""
            yield SlurmJob(number, name, state, reason, node, attempt or 0, words)


class QueueError(TemporaryError):
    """Slurm does not answer."""


def submit(options: list[str], script: str) -> str:
    """Have a job wait; return its id.

    Raises:
        QueueError: Slurm does not answer; it may have taken the job all the same.
        SmError: it refuses such a job.

    """
    said = call("sbatch", "--parsable", *options, stdin=script, within_s=SUBMIT_S)
    number = said.stdout.strip().partition(";")[0]
    if not number.isdecimal():
        raise SmError(f"sbatch said no number of a job: '{one_line(said.stdout, 100)}'")
    return number


def list_jobs() -> list[SlurmJob]:
    """Return all jobs of this user that Slurm knows, also those that ended a while ago.

    Raises:
        QueueError: Slurm does not answer.

    """
    said = call(
        "squeue",
        "--noheader",
        "--states=all",
        f"--user={os.geteuid()}",
        f"--format={SEPARATOR.join(FIELDS)}",
        within_s=ASK_S,
    )
    return list(read_jobs(said.lines))


def cancel(job: str, name: str) -> None:
    """Cancel a job if it has that name; it is no error if there is none.

    Raises:
        QueueError: Slurm does not answer.

    """
    call("scancel", "--quiet", f"--name={name}", job, within_s=ASK_S)


AWAY = (
    "unable to contact slurm controller",
    "communication connection failure",
    "socket timed out",
    "connection timed out",
    "zero bytes were transmitted",
    "backup controller in standby mode",
    "munge encode failed",
)
"""Errors of the commands while the controller, or munge beside them, does not answer.

src/common/slurm_errno.c of 22.05.8, lines 72, 100 to 106, 172, 504 and 506; "connection timed out"
is of 26.05. src/plugins/auth/munge/auth_munge.c, line 228.
"""
FULL = (
    "job violates accounting/qos policy",
    "slurm temporarily unable to accept job",
    "resource temporarily unavailable",
    "unable to create job record, try again",
    "required partition not available",
)
"""Errors of sbatch if no more jobs are taken now; all else is refused for good.

The first is a limit of an account or a QOS (slurm_errno.c, line 229). With MaxJobCount jobs the
controller says EAGAIN (src/slurmctld/job_mgr.c, line 5376), and sbatch tries again by itself, for
longer than we wait (src/sbatch/sbatch.c, line 298). slurm_errno.c has the others.
"""


def call(*argv: str, stdin: str = "", within_s: float = ASK_S) -> Result:
    """Call a command of Slurm.

    Raises:
        QueueError: Slurm does not answer.
        SmError: there is no such command, or Slurm refuses it.

    """
    try:
        return run(*argv, stdin=stdin.encode(), timeout_s=within_s)
    except MissingProgramError as error:
        raise SmError(f"{error.message}: install the client programs of Slurm") from error
    except CommandTimeoutError as error:
        raise QueueError(f"Slurm does not answer: {error.message}") from error
    except CommandError as error:
        raise explain(error.result) from error


def explain(result: Result) -> SmError:
    """Return the error for what a command of Slurm has said: whether it is worth another try."""
    said = [one_line(line) for line in (result.stderr or result.stdout).splitlines()]
    last = next(filter(None, reversed(said)), f"it ended with {result.code}")
    text = "\n".join(said).lower()
    if any(sign in text for sign in AWAY):
        return QueueError(f"Slurm does not answer: {last}")
    kind = TemporaryError if any(sign in text for sign in FULL) else SmError
    return kind(f"Slurm refuses it: {last}")
