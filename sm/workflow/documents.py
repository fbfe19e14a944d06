"""The handoff documents of a session: their folder, and what an agent has written there.

No link is followed, and nothing but documents is ever removed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from sm.config.schema import HandoffCycle
from sm.errors import StateError
from sm.handoffdoc import is_name, missing
from sm.rotation import Document
from sm.session.registry import IssueSession, Session
from sm.store.files import create_exclusive, just_before

READ_LIMIT = 1024 * 1024
"""Bytes of a document in which its sections are looked for."""
ADVICE = "change handoff_cycle.folder in the configuration"


def folder(session: Session, cycle: HandoffCycle) -> Path:
    """Where the session's documents are: an absolute path without links, which may not exist.

    It is below the working directory, unless the configuration names an absolute one. Where
    several sessions may share that, each has a folder of its own in it.

    Raises:
        StateError: it would be outside of the working directory, or that is gone.

    """
    named = Path(cycle.folder)
    if named.is_absolute():
        return _real(named) / session.name
    base = _real(session.cwd)
    if not base.is_dir():
        raise StateError(f"the working directory '{base}' is gone")
    if ".." in named.parts:
        raise StateError(f"'{named}' is not below '{base}': {ADVICE}")
    wanted = base / named
    return wanted if isinstance(session, IssueSession) else wanted / session.name


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def check(folder: Path) -> None:
    """Refuse a folder that a link is on the way to.

    Raises:
        StateError: there is one.

    """
    if _real(folder) != folder:
        raise StateError(f"there is a link on the way to '{folder}': remove it, or {ADVICE}")


def prepare(folder: Path) -> None:
    """Make the folder where it is missing, and keep it out of git if nobody else uses it.

    Raises:
        StateError: it cannot be made, or a link is on the way to it.

    """
    check(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_ours = not any(folder.iterdir())
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{folder}': {reason}: {ADVICE}") from error
    if is_ours:
        create_exclusive(folder / ".gitignore", "*\n")


def written(folder: Path, since: float, sections: Sequence[str]) -> Document | None:
    """The newest document that was written since then (seconds since 1970), None without one.

    Links, special files, and what is empty or cannot be read are no documents.
    """
    after = just_before(since)
    for path, changed_ns in _documents(folder):
        if changed_ns < after:
            return None
        if text := _read(path).strip():
            lacks = missing(text, sections)
            return Document(path=str(path), written_at=changed_ns / 1e9, missing=lacks)
    return None


def prune(folder: Path, keep: int, never: Path) -> None:
    """Remove all but the newest `keep` documents; `never` stays, whatever its age."""
    for path, _ in _documents(folder)[keep:]:
        if path != never:
            with contextlib.suppress(OSError):
                path.unlink()


def _documents(folder: Path) -> list[tuple[Path, int]]:
    """Every plain file with a document's name, and when it was changed (ns), newest first."""
    if _real(folder) != folder:
        return []
    found = sorted(_plain_files(folder), key=lambda entry: entry[::-1], reverse=True)
    return [(folder / name, changed_ns) for name, changed_ns in found]


def _plain_files(folder: Path) -> Iterator[tuple[str, int]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_name(entry.name):
                with contextlib.suppress(OSError):  # it has just been removed
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield entry.name, status.st_mtime_ns


def _read(path: Path) -> str:
    """Its text, '' where it cannot be read, or is no plain file any more."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return file.read(READ_LIMIT).decode("utf-8", "replace").strip("\x00")
