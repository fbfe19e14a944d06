"""Whether a job has failed without having tested anything: what is known beside its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.rest.shapes import Job

BAD = ("failure", "timed_out", "cancelled", "startup_failure")
LOST = (
    "lost communication with the server",
    "was not acquired by Runner",
    "runner has received a shutdown signal",
    "no enabled runners online",
    "hosted runner encountered an error",
)
"""What GitHub notes of a job whose runner is to blame: of that a project has nothing to set."""


def name_step(job: Job) -> str:
    """The step that failed, '' if none has."""
    failed = [one.name for one in job.steps or () if one.conclusion in BAD]
    return tidy(failed[0])[:NAME_LIMIT] if failed else ""


def find_outage(job: Job, notes: Iterable[str]) -> str:
    """Why the job has failed before it could test anything, '' if it is not known to have."""
    for note in notes:
        if any(words.lower() in note.lower() for words in LOST):
            return tidy(note)[:NAME_LIMIT]
    if job.steps is not None and not job.steps and job.conclusion in BAD:
        return f"{tidy(job.name)[:NAME_LIMIT]} ended before its first step"
    return ""
