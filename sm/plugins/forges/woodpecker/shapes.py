"""What Woodpecker's interface answers, as far as it is read."""

from __future__ import annotations

from msgspec import Struct


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


class Workflow(Struct, frozen=True):
    """One file of a pipeline, or one combination of its matrix: then others have its name."""

    name: str = ""
    pid: int = 0
    error: str = ""
    children: list[WorkflowStep] | None = None


class Mistake(Struct, frozen=True):
    """What is wrong with the configuration of a pipeline."""

    message: str = ""
    is_warning: bool = False


class Pipeline(Struct, frozen=True):
    """All that has run for one push."""

    number: int
    errors: list[Mistake] | None = None
    workflows: list[Workflow] | None = None
    status: str = ""
    commit: str = ""
    created: int = 0
    from_fork: bool = False


class LogEntry(Struct, frozen=True):
    """A line of a log; JSON has its bytes in base64."""

    data: bytes | None = None
    line: int = 0
