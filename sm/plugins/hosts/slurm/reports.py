"""Last reports of sessions in jobs: a row each, in one file for a project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from sm.base.errors import SmError
from sm.helper.process import Helper
from sm.issues.runners import Placement
from sm.plugins.hosts.folder import open_folder
from sm.sessions.project import Project
from sm.store.files import read_json, write_json

FOLDER = "slurm"
VARIABLES = ("SLURM_CONF",)
"""Variables that the client programs of Slurm need (slurm.conf(5))."""
LIMIT = 16 << 20
"""Bytes of all rows of a project; each has about 2,000."""


class Lack(StrEnum):
    """State of a job that answers, and has no row of its session."""

    TO_BEGIN = "to begin"
    GONE = "gone"
    """Without a row that it had before."""
    ENDED = "ended"


class JobReport(Struct, frozen=True):
    """Report of an attempt's job, and when it came by our own clock (seconds since 1970).

    Its `row`, or what it `lacks`.
    """

    attempt: int
    at: float
    row: dict[str, Any] = {}
    lacks: Lack | None = None


def read(project: Project, placements: Iterable[Placement]) -> dict[str, JobReport]:
    """Return what these attempts have said, by the session's name; it may be damaged, and gone."""
    said: dict[str, JobReport] = {}
    with contextlib.suppress(SmError):
        said = read_json(_locate(project), dict[str, JobReport], limit=LIMIT) or {}
    attempts = {one.session: one.attempt for one in placements}
    return {name: one for name, one in said.items() if attempts.get(name) == one.attempt}


def keep(project: Project, said: Mapping[str, JobReport]) -> None:
    """Keep what is known now, in the place of what was; on a full disk it is known for now."""
    with contextlib.suppress(SmError):
        write_json(_locate(project), dict(said), limit=LIMIT)


def _locate(project: Project) -> Path:
    return _open_folder(project) / f"jobs-{project.name}.json"


def make_helper(project: Project, verb: str, name: str, log: str = "") -> Helper:
    """Return the process `sm host VERB` of a project, by the name of its lock and of its log."""
    folder = _open_folder(project)
    lock = folder / f"{name}-{project.name}.lock"
    return Helper(
        ("host", verb, project.name),
        lock,
        folder / log if log else lock.with_suffix(".log"),
        VARIABLES,
        {"SM_CONFIG": str(project.config.source), "SM_STATE_ROOT": str(project.root.path)},
    )


def _open_folder(project: Project) -> Path:
    return open_folder(project.root, FOLDER).path
