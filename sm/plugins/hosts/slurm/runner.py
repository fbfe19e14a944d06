"""The runner `slurm`: each session is a job of a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import structs

from sm.issues import placements as records
from sm.issues.runners import (
    Hindrance,
    KnownState,
    NodeAnswer,
    NodeRefusedError,
    NodeRow,
    Placement,
    Standing,
)
from sm.plugins.hosts import hindrances
from sm.plugins.hosts.dispatch.bearer import MakeShare
from sm.plugins.hosts.rules import read_rules, spell_rules
from sm.plugins.hosts.slurm import carrier, poller, queue, reports, standing, step
from sm.plugins.hosts.slurm.queue import QueueError, SlurmJob, name_job
from sm.plugins.hosts.slurm.reports import JobReport, Lack
from sm.plugins.hosts.slurm.script import write_job
from sm.sessions.project import Project

HOST = "slurm"
"""Host of a session before Slurm has chosen a node."""
SEVERAL = 2
CALL_S = 600.0
SHOW_S = 0.5
PATIENCE_S = 600.0
"""Absence of Slurm until people are told, in seconds: its controller may be started again."""
AGAIN_S = 5.0
"""Pause before Slurm is asked again after it did not answer, as within one tick of dev-poll."""


class SlurmRunner:
    """A `Runner` of `sm.issues.runners`."""

    def __init__(self) -> None:
        """Slurm has not been asked in vain yet."""
        self._in_vain: tuple[float, QueueError] | None = None

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return the queue for each job that there may be more.

        None while Slurm does not answer, or has just told of several that could not begin: then the
        cause is none of the issues.
        """
        free = step.read_settings(project).sessions - len(placements)
        if free <= 0:
            return []
        names = [name_job(project.root, one.session) for one in placements]
        try:
            failed = standing.list_failed(self._list_jobs(), names)
        except QueueError:
            return []
        return [] if len(failed) >= SEVERAL else [HOST] * free

    def place(self, project: Project, placement: Placement) -> Placement:
        """Submit the job, unless there is one of this attempt."""
        name = name_job(project.root, placement.session)
        job = self._find(name, placement)
        if job is None:
            self._refuse_failed(name, placement)
            settings = step.read_settings(project)
            options = queue.list_options(settings, placement, name)
            rules = spell_rules(read_rules(project.settings))
            handle = queue.submit(options, write_job(settings, placement, name, rules))
        else:
            handle = job.id
        return structs.replace(placement, handle=handle, placed_at=time.time())

    def _refuse_failed(self, name: str, placement: Placement) -> None:
        """Refuse a session whose last job could not begin it, as long as Slurm tells of that."""
        if failed := standing.list_failed(self._list_jobs(), [name]).get(name):
            told = standing.judge(placement, failed, time.time()).words
            raise NodeRefusedError(told, of_host=False)

    def _list_jobs(self) -> list[SlurmJob]:
        """Return all jobs; who was asked in vain just now is not asked again at once."""
        if self._in_vain and time.monotonic() < self._in_vain[0] + AGAIN_S:
            raise self._in_vain[1]
        try:
            jobs = queue.list_jobs()
        except QueueError as error:
            self._in_vain = time.monotonic(), error
            raise
        self._in_vain = None
        return jobs

    def _find(self, name: str, placement: Placement) -> SlurmJob | None:
        """Return the job of the attempt; those of earlier ones, which it would wait for, are ended.

        One of them may run on where Slurm does not reach it.
        """
        jobs = self._list_jobs()
        for one in jobs:
            is_there = one.state in standing.WAITS | standing.RUNS | standing.STANDS
            if one.name == name and one.attempt != placement.attempt and is_there:
                queue.cancel(one.id, name)
        return standing.find_job(jobs, name, placement.attempt)

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Ask Slurm once for all. While it does not answer, nothing is lost: jobs run on."""
        if not placements:
            return {}
        try:
            jobs = self._list_jobs()
        except QueueError as error:
            before = records.read_seen(project.root.project(project.name))
            return {one.session: _be_silent(one, before, error.message) for one in placements}
        said = reports.read(project, placements)
        found = {
            one.session: _judge(project, jobs, one, said.get(one.session)) for one in placements
        }
        running = [one for one in placements if _runs(found[one.session])]
        poller.start(project, running, wait_s=0.0)  # which hands on what is kept, too
        return found

    def bring(self, project: Project, placements: Sequence[Placement], make: MakeShare) -> None:
        """Have jobs that run brought what was seen of the forge."""
        seen = records.read_seen(project.root.project(project.name))
        running = [one for one in placements if _runs(seen.get(one.session))]
        carrier.bring(project, running, make)

    def show(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, NodeRow]:
        """Have the jobs that run asked; what does not answer soon has its last words shown."""
        seen = records.read_seen(project.root.project(project.name))
        running = [one for one in placements if _runs(seen.get(one.session))]
        poller.start(project, running, wait_s=SHOW_S)
        said = reports.read(project, placements)
        return {
            one.session: make_shown(seen.get(one.session), said.get(one.session))
            for one in placements
        }

    def list_hindrances(self, project: Project) -> list[Hindrance]:
        """Return which jobs cannot begin, and whether Slurm has been away for long."""
        directory = project.root.project(project.name)
        placed = [one for one in records.list_placements(directory) if one.runner == HOST]
        seen = records.read_seen(directory)
        return list(hindrances.list_of_cluster(placed, seen, PATIENCE_S, time.time()))

    def call(
        self,
        project: Project,
        placement: Placement,
        argv: Sequence[str],
        stdin: str = "",
        *,
        patience_s: float | None = None,
        silent_s: float | None = None,
    ) -> NodeAnswer:
        """Have the job's own `sm` do it."""
        found = step.call_job(
            project,
            placement,
            argv,
            stdin=stdin,
            within_s=CALL_S,
            patience_s=patience_s,
            silent_s=None if silent_s is None else max(silent_s, step.FIRST_WORD_S),
        )
        more = "sm: there was more than is passed on\n" if found.cut else ""
        return NodeAnswer(found.code, found.stdout, found.stderr + more)

    def attach(
        self, project: Project, placement: Placement, *, read_only: bool = False
    ) -> list[str]:
        """Return the command that enters its terminal, by a step of its job."""
        words = ["attach", f"{placement.project}#{placement.issue}", *["-r"] * read_only]
        return self.stream(project, placement, words)

    def stream(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that is a step of its job, which srun ends with itself.

        Without a terminal here srun goes on without one there, and says so.
        """
        return self._run_in_job(project, placement, argv, terminal=True)

    def pipe(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that is a step of its job without a terminal."""
        return self._run_in_job(project, placement, argv, terminal=False)

    def _run_in_job(
        self, project: Project, placement: Placement, argv: Sequence[str], *, terminal: bool
    ) -> list[str]:
        name = name_job(project.root, placement.session)
        settings = step.read_settings(project)
        return [*step.run_in(settings, placement.handle, name, terminal=terminal), *argv]

    def end(self, project: Project, placement: Placement) -> None:
        """Cancel the job; its session keeps its work, and ends its agent."""
        if placement.handle:
            queue.cancel(placement.handle, name_job(project.root, placement.session))


def _runs(seen: KnownState | None) -> bool:
    return seen is not None and seen.standing is Standing.RUNNING


def _judge(
    project: Project, jobs: Sequence[SlurmJob], placement: Placement, said: JobReport | None
) -> KnownState:
    name = name_job(project.root, placement.session)
    job = standing.find_job(jobs, name, placement.attempt)
    is_gone = said is not None and said.lacks is Lack.GONE
    return standing.judge(placement, job, time.time(), is_gone=is_gone)


def _be_silent(placement: Placement, before: Mapping[str, KnownState], why: str) -> KnownState:
    known = before.get(placement.session)
    host, known_at = (known.host, known.known_at) if known else (placement.host, 0.0)
    return KnownState(Standing.SILENT, host, known_at, why)


def make_shown(seen: KnownState | None, said: JobReport | None) -> NodeRow:
    """What is shown of a session: its last row, and what Slurm says if that is not that it runs."""
    row, known_at = (said.row or None, said.at) if said else (None, 0.0)
    if seen is None:
        return NodeRow(row, known_at, words="its job to be looked at")
    if seen.standing is Standing.SILENT:
        return NodeRow(row, known_at, seen.words, host=seen.host)
    if seen.standing is Standing.UNFIT:
        return NodeRow(
            None, 0.0, words=f"another job, as the last one could not begin it: {seen.words}"
        )
    if seen.standing is Standing.WAITING:
        why = f" ({seen.words})" if seen.words else ""
        return NodeRow(None, 0.0, words=f"a place in the queue{why}")
    lacks = said.lacks if said else None
    return NodeRow(row, known_at, words=LACKS[lacks].format(host=seen.host), host=seen.host)


LACKS: dict[Lack | None, str] = {
    None: "its agent on {host} to be heard",
    Lack.TO_BEGIN: "its session to begin in its job on {host}",
    Lack.GONE: "another job: that on {host} runs, and knows nothing of its session any more",
    Lack.ENDED: "its job on {host} to end: its session there is over",
}
"""Words for what a session waits for whose job runs, and has no row of it."""


RUNNER = SlurmRunner()
