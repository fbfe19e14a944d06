"""Pipelines of a commit, as parts of what CI says of it.

A commit may have several pipelines: of its branch, of its merge request, of the merge that GitLab
tries with the target, and one that holds what other programs say. GitLab merges by one of them, the
head pipeline of the merge request. So that one counts here, and what other programs say besides.

Whoever can read the project can fork it and offer the same commit. So only the project's own merge
requests and pipelines count.

The word of a pipeline already leaves out jobs that may fail, and waits for manual ones only where
they block. Jobs are read to name what has failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from msgspec import Struct, structs

from sm.adapters.forge.errors import AtWorkError, NotFoundError, RefusedError
from sm.base.errors import UsageError
from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.gitlab.project import GitlabProject
from sm.plugins.forges.gitlab.shapes import (
    BridgeJson,
    CommitJson,
    JobJson,
    MergeRequest,
    PipelineJson,
)
from sm.plugins.forges.rest.convert import read_moment
from sm.plugins.forges.rest.reader import GONE, WRITE
from sm.plugins.forges.rest.status import StatusPart

OVER = frozenset({"success", "failed", "canceled", "skipped"})
WAITING = frozenset({"manual", "scheduled"})
OF_REQUEST, EXTERNAL = "merge_request_event", "external"
BESIDES = frozenset({EXTERNAL, "parent_pipeline", "ondemand_dast_scan", "ondemand_dast_validation"})
"""The sources of pipelines that GitLab does not merge by."""
REQUESTS = "refs/merge-requests/"
"""Beginning of the `ref` of a pipeline of a merge request."""
NEWEST = 20
"""Pipelines of one commit that are looked at."""
CHILDREN, DEPTH = 5, 2
"""Child pipelines of one pipeline that are looked into; GitLab allows no more levels."""
BROKEN = frozenset(
    {
        *("runner_system_failure", "stuck_or_timeout_failure", "api_failure", "scheduler_failure"),
        *("data_integrity_failure", "runner_unsupported", "no_matching_runner", "user_blocked"),
        *("ci_quota_exceeded", "builds_disabled", "archived_failure", "project_deleted"),
        *("runner_provisioning_timeout", "job_router_failure", "stale_schedule"),
        *("stuck_pending_no_matching_runners", "stuck_pending_with_matching_runners"),
        *("no_updates_running", "no_updates_canceling", "server_timeout_canceling"),
        *("runner_interrupted", "runner_external_dependency_failure", "runner_configuration_error"),
    }
)
"""Reasons for which a job has failed, and not by the commit.

They are those of GitLab's `Enums::Ci::CommitStatus`, with its `CommitStatusPresenter` for what they
mean. A script that takes too long (`job_execution_timeout`, `server_timeout_running`) is the
commit's.
"""
OWN_END, UNKNOWN = "killed", "stale"
"""Words of `combine` for CI that has failed itself, or has said nothing."""
SKIPPED = "the pipeline was skipped ([skip ci]), so nothing is known of the commit"


def find_request(reader: GitlabProject, head: str, purpose: str) -> MergeRequest | None:
    """The open merge request of our own branch whose head the commit is, with its pipeline."""
    path = f"/repository/commits/{head}/merge_requests"
    try:
        found = list(reader.entries(path, MergeRequest, {}, purpose))
    except RefusedError as error:
        if error.status not in GONE:
            raise
        return None
    own = [one for one in found if one.source_project_id == one.target_project_id]
    numbers = [one.iid for one in own if one.sha == head and one.state == "opened"]
    return reader.request(max(numbers), purpose) if numbers else None


def read_parts(
    reader: GitlabProject, head: str, request: MergeRequest | None, purpose: str
) -> list[StatusPart]:
    """Return the pipelines of the commit `head` as parts, and what failed there."""
    pipelines = list(_choose(reader, head, request, purpose))
    return [part for one in pipelines for part in _divide(reader, head, one, purpose)]


def _choose(
    reader: GitlabProject, head: str, request: MergeRequest | None, purpose: str
) -> Iterator[PipelineJson]:
    """The pipeline that decides, and the last one of other programs."""
    own = request.head_pipeline if request else None
    if own and not (_is_ours(own, request) and _is_of(reader, own, head, purpose)):
        own = None
    if own and own.status not in OVER:
        yield own  # whatever others say, it is not over
        return
    asked: dict[str, str | int]
    asked = {"sha": head, "order_by": "id", "sort": "desc", "per_page": NEWEST}  # the newest first
    found = reader.web.get(f"{reader.at}/pipelines", purpose, asked).read(list[PipelineJson])
    listed = [one for one in found if _counts(one, request)]
    own = own or _newest(listed, request.source_branch if request else "")
    others = [one for one in listed if one.source == EXTERNAL and one.id != (own.id if own else 0)]
    yield from [one for one in (own, *others[:1]) if one]


def _is_ours(pipeline: PipelineJson, request: MergeRequest | None) -> bool:
    """Whether it has run in the project that the merge request is to be merged into."""
    return request is None or pipeline.project_id in (0, request.target_project_id)


def _counts(pipeline: PipelineJson, request: MergeRequest | None) -> bool:
    """Whether a pipeline in our project is of a branch of ours, or of our own merge request.

    For another merge request, such as one of a fork, a pipeline may run here as well.
    """
    ref = pipeline.ref or ""
    return not ref.startswith(REQUESTS) or bool(
        request and ref.startswith(f"{REQUESTS}{request.iid}/")
    )


def _is_of(reader: GitlabProject, pipeline: PipelineJson, head: str, purpose: str) -> bool:
    """Whether the pipeline is of that head: a moment after a push it is of the last one.

    Of a merged result it has the merge, whose parents are the target and the head.
    """
    if pipeline.sha == head:
        return True
    if not (pipeline.ref or "").endswith(("/merge", "/train")):
        return False
    path = f"/repository/commits/{pipeline.sha}"
    try:
        found = reader.ask(path, CommitJson, "commit", purpose=purpose)
    except NotFoundError:
        return False
    return head in found.parent_ids


def _newest(pipelines: Iterable[PipelineJson], branch: str) -> PipelineJson | None:
    """Choose the pipeline of a merge request, then of the branch, then the newest."""

    def rank(one: PipelineJson) -> tuple[bool, bool, int]:
        return one.source == OF_REQUEST, one.ref == branch, one.id

    return max((one for one in pipelines if one.source not in BESIDES), key=rank, default=None)


# Parts


def _divide(
    reader: GitlabProject, head: str, pipeline: PipelineJson, purpose: str
) -> list[StatusPart]:
    """A pipeline as one part, or one that has failed as what has failed in it."""
    at, url = read_moment(pipeline.updated_at), (pipeline.web_url or "")[:1000]
    key = f"pipeline {pipeline.id}"
    if pipeline.status == "failed":
        failed = _list_failed(reader, head, pipeline, purpose)
        if failed:
            return [_make_part(one, pipeline, at) for one in failed]
        text = reader.ask(f"/pipelines/{pipeline.id}", PipelineJson, key).yaml_errors or ""
        return [StatusPart("pipeline", "failure", url, at, key=key, text=text)]
    if pipeline.status == "skipped":
        return [StatusPart("pipeline", UNKNOWN, url, at, key=key, text=SKIPPED)]
    word = "cancelled" if pipeline.status == "canceled" else pipeline.status
    return [StatusPart("pipeline", word, url, at, key=key)]


class FailedJob(Struct, frozen=True):
    """A job that has failed; `above` are the trigger jobs that lead to its pipeline."""

    job: JobJson
    above: tuple[str, ...] = ()
    has_log: bool = True


def _list_failed(
    reader: GitlabProject, head: str, pipeline: PipelineJson, purpose: str
) -> list[FailedJob]:
    """List what has failed in a pipeline. Other programs have statuses, without logs."""
    if found := list(_list_jobs(reader, pipeline, purpose)):
        return found
    path = f"/repository/commits/{head}/statuses"
    said = reader.entries(path, JobJson, {"pipeline_id": pipeline.id}, purpose)
    bad = [one for one in said if one.status == "failed" and not one.allow_failure]
    return [FailedJob(one, has_log=False) for one in bad]


def _list_jobs(
    reader: GitlabProject, pipeline: PipelineJson, purpose: str, above: tuple[str, ...] = ()
) -> Iterator[FailedJob]:
    """The failed jobs of a pipeline, and of its child pipelines, as far as it waits for them.

    GitLab lists only the last try of each. A pipeline of another project is told as the job that
    has begun it.
    """
    at, asked = f"/pipelines/{pipeline.id}", {"scope[]": "failed"}
    jobs = reader.entries(f"{at}/jobs", JobJson, asked, purpose)
    yield from (FailedJob(one, above) for one in jobs if not one.allow_failure)
    bridges = list(reader.entries(f"{at}/bridges", BridgeJson, asked, purpose))
    for bridge in [one for one in bridges if not one.allow_failure][:CHILDREN]:
        child, path = bridge.downstream_pipeline, (*above, bridge.name)
        is_own = child is not None and child.project_id == pipeline.project_id
        inner: list[FailedJob] = []
        if child and is_own and len(path) <= DEPTH:
            inner = list(_list_jobs(reader, child, purpose, path))
        if child and not inner:
            bridge = structs.replace(bridge, web_url=child.web_url or bridge.web_url)
        yield from inner or [FailedJob(bridge, above, has_log=False)]


def _make_part(failed: FailedJob, pipeline: PipelineJson, at: float) -> StatusPart:
    job = failed.job
    reason = job.failure_reason or ""
    is_own = reason in BROKEN
    name = ": ".join(filter(None, (*failed.above, job.name)))
    return StatusPart(
        name=tidy(name)[:NAME_LIMIT] or "job",
        word=OWN_END if is_own else "failure",
        url=(job.web_url or job.target_url or pipeline.web_url or "")[:1000],
        at=read_moment(job.finished_at) or at,
        id=job.id,
        key=f"pipeline {pipeline.id} {name} {job.id}",
        has_log=failed.has_log,
        text=f"GitLab's reason: {tidy(reason)[:NAME_LIMIT]}" if is_own else job.description or "",
    )


# Again


def rerun(reader: GitlabProject, head: str) -> None:
    """Have CI run again: what has failed, or everything if nothing has.

    Raises:
        AtWorkError: it is at work on the commit.
        UsageError: it has never run on it, or waits for a person.

    """
    request = find_request(reader, head, WRITE)
    found = next(_choose(reader, head, request, WRITE), None)
    if found is None or found.source == EXTERNAL:
        raise UsageError(f"GitLab has not run CI on {head[:12]}: start CI where it runs")
    if found.status in WAITING:
        raise UsageError(f"CI on {head[:12]} waits for a person: go on at {found.web_url}")
    if found.status not in OVER:
        raise AtWorkError(f"GitLab is at work on {head[:12]}: wait for it")
    is_retry = found.status in ("failed", "canceled")
    if is_retry:
        path = f"/pipelines/{found.id}/retry"
    elif found.source == OF_REQUEST and request:
        path = f"/merge_requests/{request.iid}/pipelines"
    else:
        path = f"/pipeline?ref={quote(found.ref or '', safe='')}"
    # Each of the others makes a pipeline. A second try, later, finds the first one's at work.
    reader.web.write("POST", f"{reader.at}{path}", WRITE, harmless=is_retry)
