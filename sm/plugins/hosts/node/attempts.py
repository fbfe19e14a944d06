"""Begins a session on this node for another installation, and remembers that it did.

What is remembered tells a session that has ended from one that was lost with the node's state.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, spell
from sm.issues.start import begin_placed
from sm.plugins.hosts.folder import open_plugin_folder
from sm.plugins.hosts.rules import check
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.damage import read_rebuildable
from sm.store.files import ensure_private_dir, write_json
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
