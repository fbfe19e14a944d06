"""Report on a failed job of CI: its log, the step that failed, and who is to blame. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from sm.base.foreign import NAME_LIMIT, tidy
from sm.base.redact import redact
from sm.base.text import strip_ansi
from sm.plugins.forges.rest.shapes import JobShape

BYTES = 1024 * 1024
"""Bytes of the end of a log that are read: what a job says last is next to its failure."""
STAMP = re.compile(r"^\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z ", re.MULTILINE)
"""Stamp that GitHub and Forgejo put before each line."""
SECTION = re.compile(rb"section_(?:start|end):[0-9]{1,12}:[^\r\n]{1,500}?\r(?:\x1b\[0K)?")
"""Beginning or end of a part that GitLab's page can fold."""
CONTINUED = re.compile(rb"\n[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO]\+")
GITLAB_STAMP = re.compile(rb"^[0-9T:.-]{20,30}Z [0-9a-f]{2}[EO] ", re.MULTILINE)
"""Stamp of GitLab's newer runners before each line: the time, and whether it goes on the last."""
ERROR = "##[error]"
AFTER = 3
"""Lines that are shown after the last error: behind it come other steps, which clean up."""

BAD = ("failure", "timed_out", "cancelled", "startup_failure")
LOST = (
    "lost communication with the server",
    "was not acquired by Runner",
    "runner has received a shutdown signal",
    "no enabled runners online",
    "hosted runner encountered an error",
)
"""GitHub's notes on a job whose runner is to blame: a project has nothing to set there."""


class Report(Struct, frozen=True):
    """A report on one failed part of CI: the `step` in it that failed, and its whole `log`.

    `outage` says why the part has failed without having tested anything. `read_log` asks for a log,
    and what it returns takes the place of `log`.
    """

    log: str = ""
    step: str = ""
    outage: str = ""
    read_log: Callable[[], str] | None = None


def clean_log(data: bytes) -> str:
    """A whole log as people and agents may read it: no colours, no stamps, no secrets."""
    text = strip_ansi(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    return redact(STAMP.sub("", text))


def clean_trace(data: bytes) -> str:
    """A whole log as people and agents may read it: no stamps, folds, colours and secrets."""
    data = GITLAB_STAMP.sub(b"", CONTINUED.sub(b"", data))
    return clean_log(SECTION.sub(b"", data))


def trim_log(text: str, lines: int) -> str:
    """The part of a log that ends with its last error, at most `lines` lines of it."""
    found = text.splitlines(keepends=True)
    last = max((at for at, line in enumerate(found) if ERROR in line), default=None)
    if last is not None:
        found = found[: last + 1 + AFTER]
    return "".join(found[-lines:])


def name_step(job: JobShape) -> str:
    """The step that failed, '' if none has, or if it is not known which.

    Gitea says of each step what became of its job (`services/convert/convert.go`).
    """
    steps = job.steps or []
    failed = [one.name for one in steps if one.conclusion in BAD]
    if len(failed) == len(steps) > 1:
        return ""
    return tidy(failed[0])[:NAME_LIMIT] if failed else ""


def find_outage(job: JobShape, notes: Iterable[str]) -> str:
    """Why the job has failed before it could test anything, '' if it is not known to have."""
    for note in notes:
        if any(words.lower() in note.lower() for words in LOST):
            return tidy(note)[:NAME_LIMIT]
    if job.steps is not None and not job.steps and job.conclusion in BAD:
        return f"{tidy(job.name)[:NAME_LIMIT]} ended before its first step"
    return ""
