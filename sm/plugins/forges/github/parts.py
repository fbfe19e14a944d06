"""Check runs and jobs of GitHub Actions as parts of what CI says of a commit. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.github.graphql.shapes import CheckSuite
from sm.plugins.forges.github.shapes import ActionsJob, ActionsRun, CheckRunShape
from sm.plugins.forges.rest.convert import read_moment
from sm.plugins.forges.rest.status import APPROVAL, UNBEGUN, StatusPart

ACTIONS = "github-actions"
ASKED = "action_required"
"""Conclusion of a run that begins once a person of the repository has approved it."""
NOT_BEGUN = ("failure", UNBEGUN)
"""Conclusions of a run that has no job, as the file of its workflow is wrong."""
WRONG_FILE = "GitHub could begin no job of this workflow: its file may be wrong"


def make_run_part(shape: CheckRunShape, workflows: Mapping[int, str]) -> StatusPart:
    """A check run as a part of what CI says; `workflows` has that of each suite, if it is known.

    Each run of a workflow has a suite of its own, and an app has one for each push.
    """
    suite, app = shape.check_suite.id if shape.check_suite else 0, shape.app and shape.app.slug
    owner = workflows.get(suite) or (app if app and app != ACTIONS else suite)
    is_over = shape.status == "completed"
    moment = shape.completed_at if is_over else shape.started_at
    output = shape.output
    said = [output.title, output.summary, output.text] if output else []
    return StatusPart(
        name=tidy(shape.name)[:NAME_LIMIT],
        word=(shape.conclusion or "") if is_over else shape.status,
        url=(shape.html_url or "")[:1000],
        at=read_moment(moment),
        id=shape.id,
        key=f"run {owner} {shape.name}",
        has_log=app == ACTIONS,
        text="\n".join(filter(None, said)),
    )


def make_job_part(job: ActionsJob, run: ActionsRun) -> StatusPart:
    """A job of a run of Actions as a part of what CI says: the check run with its id."""
    is_over = job.status == "completed"
    moment = job.completed_at if is_over else job.started_at
    return StatusPart(
        name=tidy(job.name)[:NAME_LIMIT],
        word=(job.conclusion if is_over else job.status) or "",
        url=(job.html_url or "")[:1000],
        at=read_moment(moment),
        id=job.id,
        key=f"run {run.key} {job.name}",
        has_log=True,
    )


def make_bare_run_part(run: ActionsRun, *, has_none: bool = True) -> StatusPart:
    """A run of Actions of which no job is told, as a part; whether it `has_none`.

    Then it could not begin, or waits: for a person of the repository if an action is required.
    """
    word = (run.conclusion if run.status == "completed" else run.status) or ""
    word = APPROVAL if word == ASKED else word
    word = UNBEGUN if has_none and word in NOT_BEGUN else word
    return _make_bare_part(run.name, word, run.html_url, run.updated_at, run.key, run.id)


def make_unbegun_parts(runs: Iterable[ActionsRun], begun: Collection[int]) -> list[StatusPart]:
    """The runs that could not begin: they are over, and have no job in the suites `begun`."""
    return [
        make_bare_run_part(run)
        for run in runs
        if run.status == "completed"
        and run.conclusion in NOT_BEGUN
        and run.check_suite_id not in begun
    ]


def make_unbegun_suite_parts(
    suites: Iterable[CheckSuite], begun: Collection[str]
) -> list[StatusPart]:
    """Make such parts of GraphQL's suites; `begun` are the workflows and events that have a job."""
    found = []
    for suite in suites:
        run, word = suite.workflow_run, (suite.conclusion or "").lower()
        if run is None or word not in (*NOT_BEGUN, ASKED) or (key := run.key) in begun:
            continue
        name, word = (
            run.workflow.name if run.workflow else "",
            APPROVAL if word == ASKED else UNBEGUN,
        )
        found.append(_make_bare_part(name, word, run.url, suite.updated_at, key))
    return found


def _make_bare_part(
    name: str | None, word: str, url: str | None, at: str | None, key: str, ident: int = 0
) -> StatusPart:
    return StatusPart(
        name=tidy(name or "")[:NAME_LIMIT],
        word=word,
        url=(url or "")[:1000],
        at=read_moment(at),
        id=ident,
        key=f"run {key}",
        text=WRONG_FILE if word == UNBEGUN else "",
    )
