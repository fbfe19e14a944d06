"""Scripts that run on a node: that of a job, and that of a step in it which calls `sm`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sm.issues.runners import Placement
from sm.plugins.hosts.slurm.settings import KEEP_S, NODE, Slurm

FIND_SM = 'PATH="$PATH:$HOME/.local/bin"'
NODE_NAME = '"$SLURMD_NODENAME"'
"""srun(1), "OUTPUT ENVIRONMENT VARIABLES"; two nodes on one machine have their own, too."""


def write_job(settings: Slurm, placement: Placement, job_name: str, rules: str) -> str:
    """Return the script of the job of an attempt, which is to be merged by these rules.

    The notice of the time limit comes as SIGUSR1, which would end it before `sm` listens.
    """
    words = ["host", "job", placement.project, str(placement.issue)]
    words += ["--attempt", str(placement.attempt), "--claim", placement.claim]
    words += ["--notice", f"{settings.notice_s:g}", "--rules", rules]
    if settings.keep_s != KEEP_S:
        words += ["--keep", f"{settings.keep_s:g}"]
    return "\n".join(
        (
            "#!/bin/sh",
            f"# A session of sm: {placement.project}#{placement.issue}",
            "trap '' USR1",
            *_enter(settings, job_name),
            f"exec {_name_sm(settings)} {shlex.join(words)}",
            "",
        )
    )


def write_call(settings: Slurm, job_name: str) -> str:
    """Return the script of a step that calls the job's own `sm` with the step's arguments."""
    return "\n".join((*_enter(settings, job_name), f'exec {_name_sm(settings)} "$@"'))


def write_check(settings: Slurm, job_name: str, project: str, programs: Iterable[str]) -> str:
    """Return the script that says what a node has: a mark before each thing, and what it says.

    It looks at the state root that a session would have, and removes it again.
    """
    sm, name = _name_sm(settings), shlex.quote(project)
    return "\n".join(
        (
            f"trap {shlex.quote(TIDY)} EXIT",
            *_enter(settings, job_name),
            f'echo "{MARK}node $SLURMD_NODENAME"; echo "{MARK}date $(date +%s)"',
            f"for one in {' '.join(programs)}; do",
            f'  command -v "$one" >/dev/null || echo "{MARK}missing $one"',
            "done",
            f'said=$({sm} --version 2>&1) || {{ echo "{MARK}broken $said"; exit 0; }}',
            f'echo "{MARK}version $said"',
            f'said=$({sm} host facts {name} 2>&1) && echo "{MARK}facts $said" || {{',
            f'  echo "{MARK}stranger $said"',
            "  exit 0",
            "}",
            f'echo "{MARK}doctor $({sm} doctor --json 2>/dev/null)"',
        )
    )


MARK = "sm-check: "
TIDY = 'case $SM_STATE_ROOT in */sm-check-*) rm -rf -- "$SM_STATE_ROOT" ;; esac'


def _enter(settings: Slurm, job_name: str) -> tuple[str, ...]:
    """The lines that choose the session's own state root and tmux server.

    A tmux server belongs to the job that has started it, and ends with that.
    """
    root = f"{settings.state.rstrip('/')}/{job_name}"
    lines = [f"export SM_STATE_ROOT={_fill_in(root)} SM_TMUX_SOCKET={shlex.quote(job_name)}"]
    if settings.config:
        lines.append(f"export SM_CONFIG={_fill_in(settings.config)}")
    return (
        "umask 077",
        FIND_SM,
        *settings.prepare.splitlines(),
        *lines,
        'mkdir -p "$SM_STATE_ROOT" || exit',
    )


def _fill_in(path: str) -> str:
    return NODE_NAME.join(shlex.quote(part) if part else "" for part in path.split(NODE))


def _name_sm(settings: Slurm) -> str:
    return _fill_in(settings.sm) if settings.sm else "sm"
