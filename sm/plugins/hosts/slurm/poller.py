"""Process that asks the jobs of a project how their sessions stand.

An answer takes a step of the job and a start of `sm` there, which is more than one waits for who
wants to see a table. A job on a node that is cut off gives none, and Slurm calls it running for
minutes. So that process hands on what is kept for the jobs, too, and no tick waits for it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence

from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.helper.lines import decode_line
from sm.helper.process import Helper
from sm.issues.placements import list_placements, read_seen
from sm.issues.runners import Placement, Runner, Standing
from sm.plugins.hosts.messages.outbox import hand_on, has_kept
from sm.plugins.hosts.node.report import NodeReport
from sm.plugins.hosts.slurm import reports, step
from sm.plugins.hosts.slurm.reports import JobReport, Lack
from sm.sessions.project import Project
from sm.store import lock

YOUNG_S = 5.0
"""Age of a report that is not asked for again: each question is work for all of the cluster."""
ASK_S = 20.0
AT_ONCE = 8
LOOK_S = 0.02


def start(project: Project, running: Sequence[Placement], *, wait_s: float) -> None:
    """Have those asked that run, unless that was just done; wait so long for what they say."""
    if not _list_due(project, running) and not has_kept(project.directory, running):
        return
    _make_helper(project).ensure()
    deadline = Deadline(wait_s)
    while not deadline.is_over and _list_due(project, running):
        time.sleep(LOOK_S)


def _make_helper(project: Project) -> Helper:
    return reports.make_helper(project, "look", "jobs", "jobs.log")


def _list_due(project: Project, running: Sequence[Placement]) -> list[Placement]:
    said, young = reports.read(project, running), time.time() - YOUNG_S
    return [one for one in running if one.session not in said or said[one.session].at < young]


def look(project: Project, runner: Runner) -> None:
    """Ask all jobs of the project that run, and keep what they say; another may be about it.

    Those that answer get what is kept for them, by `runner`.
    """
    with _make_helper(project).take_place() as ours:
        if not ours:
            return
        placed = list_placements(project.directory)
        seen = read_seen(project.directory)
        running = [
            one
            for one in placed
            if (known := seen.get(one.session)) and known.standing is Standing.RUNNING
        ]
        due, before = _list_due(project, running), reports.read(project, placed)
        said = _ask_all(project, due, before) if due else {}
        if said:
            reports.keep(project, before | said)
        silent = {one.session for one in due} - said.keys()
        has_row = {name for name, one in (before | said).items() if not one.lacks} - silent
        there = [one for one in running if one.session in has_row]
        with contextlib.suppress(lock.HeldError):  # the next look does it
            hand_on(project, there, runner, ASK_S)


def _ask_all(
    project: Project, placements: Sequence[Placement], before: Mapping[str, JobReport]
) -> dict[str, JobReport]:
    """Return what those say that answer in time, and have said this before."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(AT_ONCE, len(placements))) as pool:
        answers = pool.map(lambda one: _ask_one(project, one, before.get(one.session)), placements)
        return {
            one.session: said
            for one, said in zip(placements, answers, strict=True)
            if said is not None
        }


def _ask_one(project: Project, placement: Placement, before: JobReport | None) -> JobReport | None:
    asked = json.dumps([[placement.session, placement.attempt]])
    words = ("host", "report", placement.project)
    try:
        answer = step.call_job(project, placement, words, stdin=asked, within_s=ASK_S)
        report = decode_line(answer.stdout.encode(), NodeReport)
    except SmError:
        return None
    row = report.rows.get(placement.session)
    if row is not None:
        return JobReport(placement.attempt, time.time(), row)
    is_over = placement.session in report.ended
    had_row = before is not None and before.lacks is not Lack.TO_BEGIN
    lacks = Lack.ENDED if is_over else Lack.GONE if had_row else Lack.TO_BEGIN
    return JobReport(placement.attempt, time.time(), lacks=lacks)
