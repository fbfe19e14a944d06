"""Attempts of other installations on this node: they are begun, remembered, and kept alive.

The record tells a session that has ended from one that was lost with the node's state. No
`dev-poll` runs here: whoever has placed sessions calls often, and then they are looked after. In a
job of a cluster the job itself does that: what a step of it has begun may end with that step.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.own_start import fork_aside
from sm.base.errors import SmError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.issues.poll import tick
from sm.issues.start import begin_placed
from sm.plugins.hosts.folder import open_plugin_folder
from sm.plugins.hosts.rules import check
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, write_atomic, write_json
from sm.store.paths import Root, check_name, name_session


class Begun(Struct, frozen=True):
    """The last attempt that was begun here for a session of that name."""

    attempt: int
    claim: str


def begin(project: Project, issue: IssueId, attempt: int, claim: str, rules: str = "") -> str:
    """Have the session run here; return its id. One that has ended since is not begun again.

    `rules` are those of whoever has placed it, by which it is to be merged; '' for an older one.

    Raises:
        UsageError: it would be merged by weaker rules here.
        SmError: it cannot be begun; as `begin_placed`.

    """
    if rules:
        check(project.settings, rules)
    name = name_session(project.name, issue)
    if has_begun(project.root, name, attempt) and not find_attempt(project.root, name):
        return name
    session = begin_placed(project, issue, attempt, claim)
    if session.record.attempt != attempt:
        raise UsageError(f"'{name}' works on {spell(issue)} here already, as no attempt of yours")
    write_json(_locate(project.root, name), Begun(attempt, claim), durable=True)
    return session.name


def has_begun(root: Root, name: str, attempt: int) -> bool:
    """Say whether that attempt was begun here once."""
    found = read_rebuildable(_locate(root, name), Begun)
    return found is not None and found.attempt == attempt


def find_attempt(root: Root, name: str) -> int:
    """Return the attempt of the session on record; 0 if there is none."""
    session = registry.find(root, name)
    return session.record.attempt if isinstance(session, IssueSession) else 0


def _locate(root: Root, name: str) -> Path:
    folder = ensure_private_dir(open_plugin_folder(root) / "begun")
    return folder / f"{check_name(name, 'session')}.json"


EVERY_S = 20.0


def keep_alive(project: Project) -> None:
    """Have what is due for the project done, aside, unless that was just now, or a job does it."""
    if not lock.is_held(_locate_mark(project, "keeper")):
        _look_after(project)


@contextlib.contextmanager
def keeping_alive(project: Project) -> Iterator[Callable[[], None]]:
    """Be the only one who does that; yield a function that is to be called often."""
    with lock.try_hold(_locate_mark(project, "keeper")):
        yield lambda: _look_after(project)


def _look_after(project: Project) -> None:
    last = _locate_mark(project, "kept")
    with contextlib.suppress(OSError):
        if 0 <= time.time() - last.stat().st_mtime < EVERY_S:
            return
    write_atomic(last, "")
    fork_aside(lambda: _tend(project))


def _locate_mark(project: Project, what: str) -> Path:
    return open_plugin_folder(project.root) / f"{what}-{project.name}"


def _tend(project: Project) -> None:
    with contextlib.suppress(SmError):  # the next call does it again, and the sessions say why
        for _ in tick(project, takes_up=False):
            pass
