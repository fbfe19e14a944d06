"""Check runs and jobs of GitHub Actions as parts of what CI says of a commit. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sm.adapters.forge.combine import Part
from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.github.shapes import ActionsJob, ActionsRun, CheckRunShape
from sm.plugins.forges.rest.convert import read_moment

ACTIONS = "github-actions"


def make_run_part(shape: CheckRunShape, workflows: Mapping[int, str]) -> Part:
    """A check run as a part of what CI says; `workflows` has that of each suite, if it is known.

    Each run of a workflow has a suite of its own, and an app has one for each push.
    """
    suite, app = shape.check_suite.id if shape.check_suite else 0, shape.app and shape.app.slug
    owner = workflows.get(suite) or (app if app and app != ACTIONS else suite)
    is_over = shape.status == "completed"
    moment = shape.completed_at if is_over else shape.started_at
    output = shape.output
    said = [output.title, output.summary, output.text] if output else []
    return Part(
        name=tidy(shape.name)[:NAME_LIMIT],
        word=(shape.conclusion or "") if is_over else shape.status,
        url=(shape.html_url or "")[:1000],
        at=read_moment(moment),
        id=shape.id,
        key=f"run {owner} {shape.name}",
        has_log=app == ACTIONS,
        text="\n".join(filter(None, said)),
    )


def is_of_actions(shape: CheckRunShape) -> bool:
    """Whether it is a job of GitHub Actions."""
    return bool(shape.app and shape.app.slug == ACTIONS)


def make_job_part(job: ActionsJob, run: ActionsRun) -> Part:
    """A job of a run of Actions as a part of what CI says: the check run with its id."""
    is_over = job.status == "completed"
    moment = job.completed_at if is_over else job.started_at
    return Part(
        name=tidy(job.name)[:NAME_LIMIT],
        word=(job.conclusion if is_over else job.status) or "",
        url=(job.html_url or "")[:1000],
        at=read_moment(moment),
        id=job.id,
        key=f"run {run.key} {job.name}",
        has_log=True,
    )


def make_bare_run_part(run: ActionsRun) -> Part:
    """A run of Actions that has no job, as a part: it waits, or could not begin."""
    word = (run.conclusion if run.status == "completed" else run.status) or ""
    name, url = tidy(run.name or "")[:NAME_LIMIT], (run.html_url or "")[:1000]
    return Part(name, word, url, read_moment(run.updated_at), run.id, f"run {run.key}")
