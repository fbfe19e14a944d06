"""Issues that are not picked up, as no trusted person vouches for their text.

They are asked for again after a while, or when the text has changed: each time costs a request or
two, and they take no place of an issue that can be worked on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from sm.adapters.forge.model import Issue
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.damage import read_rebuildable
from sm.store.files import write_json
from sm.store.paths import ProjectDir, name_session

AGAIN_S = 300.0
"""Seconds until an issue is asked for again: a label may be taken off and set between two looks."""


class Doubt(Struct, frozen=True):
    """Reason why the text with that hash was not taken, `at` seconds since 1970."""

    text_hash: str
    at: float
    why: str


Doubts = dict[str, Doubt]
"""Doubts by the number of the issue."""


def _read(directory: ProjectDir) -> Doubts:
    return read_rebuildable(directory.doubts, Doubts) or {}


def note(directory: ProjectDir, issue: Issue, why: str) -> None:
    """Record that the issue was not taken now, and why."""
    known = _read(directory)
    write_json(
        directory.doubts, {**known, str(issue.number): Doubt(issue.text_hash, time.time(), why)}
    )


def tell(project: Project, issue: Issue, what: str, why: str) -> str:
    """Record it, in the journal only once, and return the line that a tick says about it."""
    note(project.directory, issue, why)
    name = name_session(project.name, issue.number)
    journal.record_once(project.root.journal, events.Problem(session=name, text=why))
    return f"did not {what} {why}"


def find(directory: ProjectDir, issue: Issue) -> str:
    """Return why the issue was not taken, '' if it was not asked for since its last change."""
    doubt = _read(directory).get(str(issue.number))
    return doubt.why if doubt and doubt.text_hash == issue.text_hash else ""


def pass_over(directory: ProjectDir, ready: Sequence[Issue], *, keep: bool) -> list[Issue]:
    """Return those of `ready` that may be tried; with `keep`, past doubts are forgotten.

    An issue that is no longer ready has lost its label: if it is set again, that is a new one.
    """
    known = _read(directory)
    if not known:
        return list(ready)
    now = time.time()
    held = {
        str(issue.number): doubt
        for issue in ready
        if (doubt := known.get(str(issue.number)))
        and doubt.text_hash == issue.text_hash
        and 0 <= now - doubt.at < AGAIN_S
    }
    if keep and held != known:
        write_json(directory.doubts, held)
    return [issue for issue in ready if str(issue.number) not in held]
