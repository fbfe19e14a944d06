"""Slots of a project, given to its sessions. `max_sessions` says how many there are.

A slot is a file with the session's name, and so is a place in the line of those that wait for one.
So no session has to be looked at to know how many are at work. A process that dies in between
leaves a file too many or too few: the next tick of dev-poll corrects that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sm.base.errors import StateError
from sm.issues.look.observe import recall
from sm.issues.look.slot import find_directory, read_slot, read_time
from sm.issues.look.snapshot import Snapshot, last_snapshot
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.failpoint import crash_point
from sm.store.files import (
    create_exclusive,
    discard,
    ensure_private_dir,
    list_names,
    write_atomic,
)
from sm.store.paths import ProjectDir


def take(session: IssueSession) -> bool:
    """Take a slot for a session that has work again; return whether it has one now.

    If none is free it waits in a line, and is woken when its turn has come.
    """
    project, directory = session.project, find_directory(session)
    if (directory.slots / session.name).exists():
        return True
    with _locked(project):
        line = _list_line(directory)
        ahead = line.index(session.name) if session.name in line else len(line)
        if _count_left(project, directory) > ahead:
            _move(session.name, directory.slot_line, directory.slots)
            crash_point("slot:taken")
            return True
        create_exclusive(directory.slot_line / session.name)
        return False


def take_for_new(project: Project, name: str) -> bool:
    """Take a slot for an issue that is about to be taken up, unless sessions wait for it."""
    with _locked(project):
        if count_free(project):
            create_exclusive(project.directory.slots / name)
            return True
        return False


def occupy(session: IssueSession) -> None:
    """Take a slot for a session that is at work already, even if none is free."""
    directory = find_directory(session)
    if not (directory.slots / session.name).exists():
        with _locked(session.project):
            _move(session.name, directory.slot_line, directory.slots)


def free(session: IssueSession) -> None:
    """Give the session's slot back, or its place in the line; wake the first in the line."""
    slot = read_slot(session)
    if slot.held_at is not None or slot.waits_at is not None:
        free_by_name(session.project, session.name)


def free_by_name(project: Project, name: str) -> None:
    """Give back the slot of a session that may have no record."""
    directory = project.directory
    with _locked(project):
        for folder in (directory.slots, directory.slot_line):
            discard(folder / name)
        woken = _list_next(project)
    crash_point("slot:freed")
    if woken:
        registry.poke(project.root.session(woken[0]))
    else:
        write_atomic(directory.slot_freed, "")


def count_free(project: Project) -> int:
    """Count the slots left once all sessions that wait for one have it. Changes nothing."""
    directory = project.root.project(project.name)
    held = _list_files(directory.slots) if directory.slots.is_dir() else _list_at_work(project)
    taken = len(held) + len(_list_files(directory.slot_line))
    return max(0, project.settings.max_sessions - taken)


def correct(project: Project) -> None:
    """Take back the slots of sessions that are gone, and wake those that could have one.

    Only one tick does that at a time, so a slot that a start has taken before its record is not
    lost.
    """
    directory = project.directory
    with _locked(project):
        held = _list_files(directory.slots)
        for name in held:
            if _is_gone(project, name):
                discard(directory.slots / name)
        for name in _list_files(directory.slot_line):
            if name in held or _is_gone(project, name):
                discard(directory.slot_line / name)
        woken = _list_next(project)
    for name in woken:
        registry.poke(project.root.session(name))


def _is_gone(project: Project, name: str) -> bool:
    return not project.root.session(name).identity.exists()


@contextlib.contextmanager
def _locked(project: Project) -> Iterator[None]:
    directory = project.directory
    with lock.hold(directory.slots_lock):
        ensure_private_dir(directory.slot_line)
        if not directory.slots.is_dir():
            _fill(project, directory)
        yield


def _fill(project: Project, directory: ProjectDir) -> None:
    """Give a slot to each session whose agent is at work: an older version kept none."""
    made = directory.slots.with_name(f".{directory.slots.name}.made")
    ensure_private_dir(made)
    for name in _list_at_work(project):
        create_exclusive(made / name)
    try:
        made.rename(directory.slots)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{directory.slots}': {reason}: remove it") from error


def _list_at_work(project: Project) -> list[str]:
    seen = last_snapshot(project.root.project(project.name)) or Snapshot(0.0)
    return [one.name for one in registry.list_for(project) if _works(one, seen)]


def _works(session: IssueSession, seen: Snapshot) -> bool:
    try:
        return recall(session, seen).facts.is_at_work
    except StateError:  # its next pass tells of the damage
        return True


def _move(name: str, line: Path, slots: Path) -> None:
    create_exclusive(slots / name)
    discard(line / name)


def _count_left(project: Project, directory: ProjectDir) -> int:
    """Count the slots that nobody holds; if nothing new may begin, open work goes on with one."""
    return max(project.settings.max_sessions, 1) - len(_list_files(directory.slots))


def _list_next(project: Project) -> list[str]:
    """List the sessions in the line for which a slot is free now."""
    directory = project.directory
    return _list_line(directory)[: max(_count_left(project, directory), 0)]


def _list_line(directory: ProjectDir) -> list[str]:
    """List the sessions that wait for a slot, the longest first."""
    names = _list_files(directory.slot_line)
    return sorted(names, key=lambda name: (read_time(directory.slot_line / name) or 0.0, name))


def _list_files(folder: Path) -> list[str]:
    """List the names in a folder, without what was put aside."""
    return [name for name in list_names(folder) if not name.startswith(".")]
