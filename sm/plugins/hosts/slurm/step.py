"""Calls the `sm` of a job by a step within it: `srun --overlap`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sm.adapters.process import CommandError, CommandTimeoutError, MissingProgramError, Result, ask
from sm.base.errors import SmError, TemporaryError
from sm.base.text import one_line
from sm.config.shapes import read_section
from sm.helper.lines import WireError, decode_line, encode_line
from sm.issues.runners import NoAnswerError, Placement
from sm.plugins.hosts import wire
from sm.plugins.hosts.slurm.queue import name_job
from sm.plugins.hosts.slurm.script import write_call
from sm.plugins.hosts.slurm.settings import Slurm
from sm.plugins.hosts.wire import CallAnswer, NodeRequest
from sm.sessions.project import Project

EXPORTED = "HOME,USER,LOGNAME,SHELL,PATH,LANG,LC_ALL,TERM"
"""Variables that a step gets of our environment; it has none of a login."""
SHELL = "/bin/sh"
SERVE = ("host", "serve")
FIRST_WORD_S = 15.0
"""A step says that it is there within that time, or its node is cut off: Slurm calls a job running
until it has missed the node for minutes (slurm.conf(5), SlurmdTimeout)."""


def read_settings(project: Project) -> Slurm:
    """Return how the project has its jobs run."""
    return read_section(project.settings, Slurm)


def call_job(
    project: Project,
    placement: Placement,
    argv: Sequence[str],
    *,
    stdin: str = "",
    within_s: float,
    patience_s: float | None = None,
    silent_s: float | None = None,
) -> CallAnswer:
    """Have the job's `sm` run with these arguments, in the project's clone there.

    Its first word is waited for no longer than `silent_s`, if that is given.

    Raises:
        NoAnswerError: it took too long.
        TemporaryError: there is no answer.

    """
    job, name = placement.handle, name_job(project.root, placement.session)
    request = NodeRequest(
        id=1, argv=tuple(argv), stdin=stdin, project=placement.project, within_s=within_s
    )
    words = [*run_in(read_settings(project), job, name), *SERVE]
    wait_s = within_s if patience_s is None else patience_s
    try:
        result = ask(
            *words,
            stdin=encode_line(request),
            timeout_s=wait_s,
            silent_s=silent_s,
            accept=(0, 1),
        )
    except CommandTimeoutError as error:
        raise NoAnswerError(f"job {job} does not answer in time", sent=True) from error
    except CommandError as error:
        raise TemporaryError(f"job {job} does not answer: {_find_reason(error.result)}") from error
    except MissingProgramError as error:
        raise SmError(f"{error.message}: install the client programs of Slurm") from error
    return _read_answer(job, result)


def run_in(settings: Slurm, job: str, name: str, *, terminal: bool = False) -> list[str]:
    """Return the command line that calls the job's `sm`, to which its arguments are added."""
    return [
        *("srun", "--quiet", "--overlap", f"--jobid={job}", "--nodes=1", "--ntasks=1"),
        *("--chdir=/", f"--export={EXPORTED}", *["--pty"] * terminal),
        *(SHELL, "-c", write_call(settings, name), "sm"),
    ]


def _read_answer(job: str, result: Result) -> CallAnswer:
    """Return the answer; a shell on the way may have said something before it."""
    answers = result.raw.partition(wire.MARK)[2].splitlines()[1:]
    with contextlib.suppress(WireError, IndexError):
        return decode_line(answers[0], CallAnswer)
    raise TemporaryError(f"job {job} does not answer: {_find_reason(result)}")


def _find_reason(result: Result) -> str:
    """Return the first line that says why; those after it say only that it has ended."""
    said = [one_line(line) for line in result.stderr.splitlines()]
    said += [f"it ended with {result.code}"]
    return next(filter(None, said)).removeprefix("srun: error: ").removeprefix("sm: ")
