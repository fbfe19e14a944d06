"""What Woodpecker's interface answers, as far as it is read."""

from __future__ import annotations

from msgspec import Struct


class Repo(Struct, frozen=True):
    """A repository. Woodpecker's addresses have its own id."""

    id: int


class Step(Struct, frozen=True):
    """A step of a workflow. Its log goes by its `id`, which is not its place (`pid`)."""

    id: int
    name: str = ""
    state: str = ""
    type: str = ""


class Workflow(Struct, frozen=True):
    """One file of a pipeline, or one combination of its matrix."""

    name: str = ""
    error: str = ""
    children: list[Step] | None = None


class Mistake(Struct, frozen=True):
    """What is wrong with the configuration of a pipeline."""

    message: str = ""
    is_warning: bool = False


class Pipeline(Struct, frozen=True):
    """All that has run for one push."""

    number: int
    errors: list[Mistake] | None = None
    workflows: list[Workflow] | None = None


class LogEntry(Struct, frozen=True):
    """A line of a log; JSON has its bytes in base64."""

    data: bytes | None = None
    line: int = 0
