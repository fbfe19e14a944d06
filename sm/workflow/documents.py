"""The handoff documents of a session: their folder, and what an agent has written there.

No link is followed, and nothing but documents that we have asked for is ever removed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sm.adapters import gitfiles
from sm.config.schema import HandoffCycle
from sm.errors import SmError, StateError
from sm.handoffdoc import is_asked_for, is_name, missing
from sm.rotation import Document
from sm.session.registry import IssueSession, Session
from sm.store.files import create_exclusive, read_foreign

READ_LIMIT = 1024 * 1024
"""Bytes of a document in which its sections are looked for."""
PATTERN = "handoff-*.md"
OURS = f"/{PATTERN}\n/.gitignore\n"
SHORTEST = "handoff-.md"
ADVICE = "change handoff_cycle.folder in the configuration"


def folder(session: Session, cycle: HandoffCycle) -> Path:
    """Where the session's documents are: an absolute path without links, which may not exist.

    It is below the working directory, unless the configuration names an absolute one. Where
    several sessions may share that, each has a folder of its own in it.

    Raises:
        StateError: it would be outside of the working directory, that is gone, or its path is none.

    """
    named = Path(cycle.folder)
    if named.is_absolute():
        return _real(named) / session.name
    base = _real(session.cwd)
    if not os.path.isdir(base):  # noqa: PTH112 - the one of Path raises what it does not expect
        raise StateError(f"the working directory '{base}' is gone")
    if ".." in named.parts:
        raise StateError(f"'{named}' is not below '{base}': {ADVICE}")
    wanted = base / named
    return wanted if isinstance(session, IssueSession) else wanted / session.name


def _real(path: Path) -> Path:
    """Without links.

    Raises:
        StateError: it cannot be named to an agent, or be looked up.

    """
    try:
        real = os.path.realpath(path)
        real.encode()
    except (OSError, ValueError) as error:
        raise StateError(f"cannot use the path {str(path)!a}: {ADVICE}") from error
    return Path(real)


def check(folder: Path) -> None:
    """Refuse a folder that a link is on the way to.

    Raises:
        StateError: there is one.

    """
    if _real(folder) != folder:
        raise StateError(f"there is a link on the way to '{folder}': remove it, or {ADVICE}")


def prepare(folder: Path) -> None:
    """Make the folder where it is missing, and keep our documents out of git.

    Raises:
        StateError: it cannot be made, or a link is on the way to it.

    """
    check(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{folder}': {reason}: {ADVICE}") from error
    if is_empty:
        create_exclusive(folder / ".gitignore", "*\n")
    else:
        _hide_documents(folder)


def _hide_documents(folder: Path) -> None:
    """Others use the folder as well: of what is theirs nothing may be hidden from them."""
    with contextlib.suppress(SmError):  # a handoff has to do without a git that does not work
        if gitfiles.is_shown(folder / SHORTEST):
            create_exclusive(folder / ".gitignore", OURS)


def stamps(folder: Path) -> tuple[str, ...]:
    """What tells each document that is there now from itself once it is written again.

    Raises:
        StateError: what is there cannot be known, so that an old one would pass for a new one.

    """
    try:
        return tuple(one.stamp for one in _documents(folder))
    except OSError as error:
        raise StateError(f"cannot read '{folder}': {os.strerror(error.errno or 0)}") from error


def written(folder: Path, before: Collection[str], sections: Sequence[str]) -> Document | None:
    """The newest document that is not as one of `before` (by their stamps); None without one.

    No clock has a say in it, as that of a file server may be wrong. Links, special files, and what
    is empty or cannot be read are no documents.
    """
    with contextlib.suppress(OSError, StateError):
        for one in sorted(_new_ones(folder, before), reverse=True):
            if text := _read(folder / one.name).strip():
                return Document(
                    path=str(folder / one.name),
                    stamp=one.stamp,
                    written_at=one.changed_ns / 1e9,
                    missing=missing(text, sections),
                )
    return None


def _new_ones(folder: Path, before: Collection[str]) -> Iterator[_Found]:
    known = frozenset(before)
    return (one for one in _documents(folder) if one.stamp not in known)


def prune(folder: Path, keep: int, never: Path) -> None:
    """Remove all but the newest `keep` documents that have the name which we ask for.

    `never` stays, whatever its age, and so does what git tracks.
    """
    with contextlib.suppress(OSError, SmError):
        ours = [one for one in _documents(folder) if is_asked_for(one.name)]
        if len(ours) <= keep:
            return
        spared = gitfiles.tracked(folder, PATTERN) | {never.name}
        for one in sorted(ours, reverse=True)[keep:]:
            if one.name not in spared:
                (folder / one.name).unlink(missing_ok=True)


class _Found(NamedTuple):
    """A document; in order of age."""

    changed_ns: int
    name: str
    size: int

    @property
    def stamp(self) -> str:
        # Without its inode: some file systems that are served give another one each time.
        return f"{self.name}:{self.changed_ns}:{self.size}"


def _documents(folder: Path) -> Iterator[_Found]:
    """Every plain file with a document's name.

    Raises:
        OSError: the folder cannot be read.
        StateError: there is a link on the way to it.

    """
    check(folder)
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if is_name(entry.name) and (found := _plain_file(entry)):
                yield found


def _plain_file(entry: os.DirEntry[str]) -> _Found | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it has just been removed
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _Found(status.st_mtime_ns, entry.name, status.st_size)


def _read(path: Path) -> str:
    """Its text, '' where it cannot be read, or is no plain file any more."""
    try:
        return read_foreign(path, READ_LIMIT).decode("utf-8", "replace").strip("\x00")
    except OSError:
        return ""
