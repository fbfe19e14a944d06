"""Woodpecker as the CI of a repository elsewhere: what has failed, its log, and another run.

Its verdict is in the statuses of the commit, and each of them links to its pipeline. Of that link
only the pipeline's number is used: anybody who may write a status could name another repository.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from sm.adapters.forge.errors import AtWorkError, RefusedError, UnreachableError
from sm.adapters.forge.model import CheckState
from sm.base.errors import UsageError
from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.rest.failed_job import BYTES, Report, clean_log
from sm.plugins.forges.rest.status import UNBEGUN, StatusPart
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.errors import BadAnswerError
from sm.plugins.forges.web.request import Params


class Repo(Struct, frozen=True):
    """A repository. Woodpecker's addresses have its own id."""

    id: int


class WorkflowStep(Struct, frozen=True):
    """A step of a workflow. Its log goes by its `id`, which is not its place (`pid`).

    `error` says why it could not even begin, if that is so: then it has no log.
    """

    id: int
    name: str = ""
    state: str = ""
    type: str = ""
    error: str = ""


class WoodpeckerWorkflow(Struct, frozen=True):
    """One file of a pipeline, or one combination of its matrix: then others have its name."""

    name: str = ""
    pid: int = 0
    error: str = ""
    children: list[WorkflowStep] | None = None


class Mistake(Struct, frozen=True):
    """A fault in the configuration of a pipeline."""

    message: str = ""
    is_warning: bool = False


class WoodpeckerPipeline(Struct, frozen=True):
    """The run of all workflows for one push."""

    number: int
    errors: list[Mistake] | None = None
    workflows: list[WoodpeckerWorkflow] | None = None
    status: str = ""
    commit: str = ""
    created: int = 0
    from_fork: bool = False


class LogEntry(Struct, frozen=True):
    """A line of a log; JSON has its bytes in base64."""

    data: bytes | None = None
    line: int = 0


T = TypeVar("T")

PURPOSE = "woodpecker"
PIPELINE = re.compile(r"/repos/[0-9]{1,18}/pipeline/([0-9]{1,18})(?:/([0-9]{1,9}))?(?:/|$)")
"""The page of a pipeline, or of a workflow in it: `server/forge/common/status.go`."""
AXIS = re.compile(r"/[0-9]{1,9}\Z")
"""End of the context of a status, behind the workflow, if that has a matrix."""
NAME, ERROR = "woodpecker", "error"
LISTED = 50
FAILED = ("failure", "error", "killed")
CLONE = "clone"
LATE_S = 30.0
"""Time between a failure and its log, in seconds: 0.8, 1.8 and 3.2 with Woodpecker 3.17. Until
then its answer is `null`, as for a step that has none."""
STEPS = 3
"""Failed steps whose logs are read."""
GONE = (403, 404, 410)


class Woodpecker:
    """The pipelines of one repository."""

    def __init__(self, web: ForgeClient, repository: str) -> None:
        """Ask nothing yet; `repository` is its full name, as on the forge."""
        self._web, self._repository = web, repository

    @cached_property
    def _at(self) -> str:
        found = self._get(f"/api/repos/lookup/{self._repository}", Repo)
        return f"/api/repos/{found.id}"

    def find_pipeline(self, part: StatusPart) -> int:
        """The number of the pipeline that a status is of; 0 if it is of another program."""
        if not part.url.startswith(f"{self._web.base}/"):
            return 0
        found = PIPELINE.search(part.url)
        return int(found[1]) if found else 0

    def list_unbegun(self) -> dict[str, StatusPart]:
        """The last pipelines that could not begin, by their commits.

        Their configuration is wrong: they have no workflow, so no status is written for them
        (`updatePipelineWithErr` in `server/pipeline/create.go`; asked of 3.17).
        """
        asked: Params = {"status": ERROR, "perPage": LISTED}
        found = self._web.get(f"{self._at}/pipelines", PURPOSE, asked).read(
            list[WoodpeckerPipeline]
        )
        return {
            one.commit: StatusPart(
                name=NAME,
                word=UNBEGUN,
                url=f"{self._web.base}{self._at.removeprefix('/api')}/pipeline/{one.number}",
                at=float(one.created),
                key=NAME,
            )
            for one in sorted(found, key=lambda one: one.number)
            if one.status == ERROR and one.commit and not one.from_fork
        }

    def read_report(self, part: StatusPart) -> Report:
        """Report on what failed in the pipeline of a status: the steps by name, with their logs."""
        number = self.find_pipeline(part)
        pipeline = self._get(f"{self._at}/pipelines/{number}", WoodpeckerPipeline)
        flows = _of_part(pipeline.workflows or [], part)
        failed = [step for flow in flows for step in flow.children or () if step.state in FAILED]
        errors = [one.message for one in pipeline.errors or () if not one.is_warning]
        errors += [flow.error for flow in flows if flow.error]
        errors += [f"{step.name}: {step.error}" for step in failed[:STEPS] if step.error]
        said = "\n".join(errors)
        names = dict.fromkeys(tidy(step.name)[:NAME_LIMIT] for step in failed[:STEPS])

        def read_log() -> str:
            logs = [self._log(number, step, part.at) for step in failed[:STEPS]]
            return "\n".join(filter(None, [*logs, clean_log(said.encode())]))

        return Report(said, ", ".join(names), _outage(failed), read_log)

    def _log(self, number: int, step: WorkflowStep, failed_at: float) -> str:
        """The log of a step, '' for one that has none, or none any more: others may have theirs.

        Raises:
            UnreachableError: it may still come.

        """
        at = f"{self._at}/logs/{number}/{step.id}"
        try:
            lines = self._get(at, list[LogEntry | None] | None)  # type: ignore[arg-type]  # a union
        except RefusedError as error:
            if error.status not in GONE:
                raise
            return ""
        ordered = sorted((one for one in lines or () if one), key=lambda one: one.line)
        if not ordered and not step.error and abs(time.time() - failed_at) < LATE_S:
            raise UnreachableError(f"Woodpecker has no log of the step '{tidy(step.name)}' yet")
        if not ordered:
            return ""
        data = b"\n".join((one.data or b"").rstrip(b"\n") for one in ordered)
        return clean_log(data[-BYTES:] + b"\n")

    def rerun(self, parts: Iterable[StatusPart]) -> bool:
        """Run the pipelines of these statuses again, those that failed; False if there is none.

        Raises:
            AtWorkError: one of them is still running.
            UsageError: the token may not do that.

        """
        mine = [part for part in parts if self.find_pipeline(part)]
        if any(part.state is CheckState.PENDING for part in mine):
            raise AtWorkError("Woodpecker is at work on the commit: wait for it")
        bad = [part for part in mine if part.state is not CheckState.SUCCESS]
        for number in dict.fromkeys(map(self.find_pipeline, bad or mine)):
            try:
                self._web.write("POST", f"{self._at}/pipelines/{number}", PURPOSE)
            except RefusedError as error:
                if error.status in GONE:
                    raise UsageError(f"Woodpecker does not run it again: {error.said}") from None
                raise
        return bool(mine)

    def _get(self, path: str, shape: type[T]) -> T:
        """Read `path`; for one that it does not know Woodpecker answers with its start page."""
        answer = self._web.get(path, PURPOSE)
        if answer.body.lstrip()[:1] == b"<":
            raise BadAnswerError(
                f"'{self._web.base}' answers GET {path} with a page: is forge.woodpecker_url right?"
            )
        return answer.read(shape)


def _of_part(flows: Sequence[WoodpeckerWorkflow], part: StatusPart) -> list[WoodpeckerWorkflow]:
    """The workflows that a status is of: it links to one, or its name ends with theirs."""
    found = PIPELINE.search(part.url)
    pid = int(found[2] or 0) if found else 0
    if linked := [flow for flow in flows if pid and flow.pid == pid]:
        return linked
    ends = {name.rpartition("/")[2] for name in (part.name, AXIS.sub("", part.name))}
    return [flow for flow in flows if flow.name in ends] or list(flows)


def _outage(failed: Iterable[WorkflowStep]) -> str:
    """Why nothing was tested: the repository could not even be cloned."""
    found = next((step for step in failed if step.type == CLONE), None)
    return f"the step '{tidy(found.name)[:NAME_LIMIT]}' failed" if found else ""
