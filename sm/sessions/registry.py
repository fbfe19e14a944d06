"""Knows which sessions there are: one directory each, with an identity."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from sm.base.errors import SmError, StateError, UsageError
from sm.base.issue_id import IssueId, rank
from sm.base.nonce import make_nonce
from sm.sessions import false_starts, pause, terminal
from sm.sessions.record import AnyRecord
from sm.sessions.session import AnySession, IssueSession, Session, open_session
from sm.store.damage import read_rebuildable
from sm.store.fifo import ensure_fifo, wake_reader
from sm.store.files import ensure_private_dir, list_names, read_json, write_json
from sm.store.paths import OF_ISSUES, Root, SessionDir, check_name, name_session
from sm.store.repair import repair

if TYPE_CHECKING:
    from sm.config.schema import Logs
    from sm.sessions.project import Project

REMOVED = ".removed-"
"""A directory under removal. It is renamed first, so a session is whole or not there at all."""


S = TypeVar("S", bound=Session)


def create(root: Root, identity: S) -> S:
    """Put a session on record, with its wake FIFO; return the record.

    If a session of this name is on record already, that record stays.

    Raises:
        StateError: its directory is not ours, or is damaged.

    """
    check_name(identity.name, "session")
    repair(root, root.session(identity.name))
    for folder in (root.private, root.sessions, root.session(identity.name).path):
        ensure_private_dir(folder)
    directory = root.session(identity.name)
    ensure_fifo(directory.wake)
    if known := read_rebuildable(directory.identity, type(identity.record)):
        return type(identity)(known)
    if found := pause.find(root, identity.project_name, identity.name):
        pause.set_mark(directory, pause.PauseMark(found.since))
    write_json(directory.identity, identity.record, durable=True)
    return identity


def rewrite(identity: AnySession) -> None:
    """Replace the record of a session. The caller holds `new_lock`."""
    write_json(identity.dir.identity, identity.record, durable=True)


def find(root: Root, name: str) -> AnySession | None:
    """Return the session of this name; None if there is none.

    Raises:
        StateError: its record is damaged.

    """
    return _read(root, check_name(name, "session"))


def load(root: Root, name: str) -> AnySession:
    """Return the session of this name.

    Raises:
        UsageError: there is none.
        StateError: its record is damaged.

    """
    if session := find(root, name):
        return session
    raise UsageError(f"no session '{name}': 'sm status' lists those there are")


def load_issue_session(root: Root, name: str) -> IssueSession:
    """Return the session of this name, which must work on an issue.

    Raises:
        UsageError: there is none.
        StateError: its record is damaged.

    """
    session = load(root, name)
    if isinstance(session, IssueSession):
        return session
    raise UsageError(f"'{name}' works on no issue: see 'sm children' and 'sm status'")


@contextlib.contextmanager
def tolerate_end(directory: SessionDir) -> Iterator[None]:
    """Ignore errors within the block if the session is forgotten meanwhile.

    Raises:
        StateError, FileNotFoundError: raised within, while the session is on record.

    """
    try:
        yield
    except (StateError, FileNotFoundError):
        if directory.identity.exists():
            raise


def load_for(project: Project, issue: IssueId) -> IssueSession:
    """Return the session of this issue; it uses `project`.

    Raises:
        UsageError: it has none.
        StateError: its record is damaged.

    """
    session = load_issue_session(project.root, name_session(project.name, issue))
    return session.provide(project=project)


def list_for(
    project: Project, report: Callable[[SmError], None] = lambda _: None
) -> list[IssueSession]:
    """Return the project's sessions, sorted by issue; `report` gets each damaged record."""
    found = [
        session.provide(project=project)
        for session in list_all(project.root, report)
        if isinstance(session, IssueSession) and session.record.project == project.name
    ]
    return sorted(found, key=lambda session: rank(session.issue))


def _read(root: Root, name: str) -> AnySession | None:
    try:
        found = read_json(root.session(name).identity, cast("type[AnyRecord]", AnyRecord))
    except StateError as error:
        raise StateError(f"{error.message}: {_remedy(root, name)}") from error
    return open_session(found) if found else None


def _remedy(root: Root, name: str) -> str:
    """Say what to do about a session's damaged record."""
    if name.startswith(OF_ISSUES):
        return "dev-poll makes it anew"
    folder = root.session(name).path
    return f"end it by tmux kill-session -t ={name}, then remove '{folder}'"


def _warn(error: SmError) -> None:
    from sm.base.output import warn

    warn(error.message)


def list_all(root: Root, report: Callable[[SmError], None] = _warn) -> list[AnySession]:
    """Return every session on record, sorted by name. It reports and skips a damaged record."""
    found = []
    for name in list_session_names(root):
        try:
            session = _read(root, name)
        except StateError as error:
            report(error)
            continue
        if session:  # no record yet: another process is just creating it
            found.append(session)
    return found


def list_damaged(root: Root) -> dict[str, SmError]:
    """Return the sessions with an unreadable record, by name, and the reasons."""
    found: dict[str, SmError] = {}
    for name in list_session_names(root):
        try:
            _read(root, name)
        except SmError as error:
            found[name] = error
    return found


def list_session_names(root: Root) -> list[str]:
    """Return the names of all session directories, whatever is in them, sorted."""
    return [name for name in list_names(root.sessions) if not name.startswith(".")]


def forget(root: Root, session: Session, logs: Logs | None = None) -> list[str]:
    """Remove the files of a session: those of the protocol, then its directory.

    `logs` decides whether its terminal log stays; without `logs` it goes. Returns why some of the
    protocol's files are left: other users may have put them there. The directory goes last and at
    once, so an interrupted call can be repeated. A call interrupted after that leaves a remnant,
    which the next call clears.
    """
    if logs is not None:
        terminal.keep_log(root, session.name, session.terminal_log, logs)
    if pause.is_paused(session.dir):
        pause.forget(root, session.name)
    false_starts.clear(root, session.name)
    left = [problem for path in session.files if (problem := _remove(path))]
    with contextlib.suppress(FileNotFoundError):
        remnant = root.sessions / f"{REMOVED}{session.name}-{make_nonce(4)}"
        root.session(session.name).path.rename(remnant)
    sweep(root)
    return left


def sweep(root: Root) -> None:
    """Remove the remnants of sessions whose removal was interrupted."""
    for remnant in root.sessions.glob(f"{REMOVED}*"):
        import shutil

        shutil.rmtree(remnant, ignore_errors=True)


def _remove(path: Path) -> str:
    """Remove a file, or the link in its place; return why it is still there, '' if it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return f"cannot remove '{path}': {os.strerror(error.errno or 0)}: it is not needed any more"
    return ""


def poke(directory: SessionDir) -> None:
    """Wake the session's monitor, if it has one; never wait. Write what it should find before.

    A monitor that does not listen yet makes a pass as it begins, so it finds that, too.
    """
    wake_reader(directory.wake)
