"""Permits of a person: configurations that lie in a work tree, each with its allowed contents.

A configuration names commands. One in a work tree may come from a commit that anybody wrote: git
writes it with the user as its owner. So it counts only if the user has named it, or has allowed
exactly what is in it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.base.decoder import decode
from sm.base.errors import UsageError
from sm.store.files import ensure_private_dir, follow_links, read_guarded, write_atomic

MARKS = (".git", ".hg", ".jj", ".svn")
"""Names at the top of a work tree, of a file or a folder, whoever put it there."""
FOLDER = Path(".local/share/sm/allowed")
"""Folder below the user's home: a restart must not take back what a person has decided."""
KEPT = 20
"""Number of contents of one file, for the branches that a person works on."""


class Permit(Struct, frozen=True):
    """A file, and the SHA-256 of each content that is allowed, the last one at the end."""

    path: str
    contents: tuple[str, ...] = ()


def is_in_work_tree(path: Path, env: Mapping[str, str], cwd: Path) -> bool:
    """Say whether a commit may have put the file there, or the target of a link to it.

    Nothing marks a work tree whose repository is elsewhere, but git's variables may name it.
    """
    folders = {follow_links(path.parent), follow_links(path).parent}
    named = _find_named(env, cwd)
    return any(
        above == named or any(os.path.lexists(above / mark) for mark in MARKS)
        for folder in folders
        for above in (folder, *folder.parents)
    )


def _find_named(env: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the work tree of git(1), ENVIRONMENT VARIABLES: by default the present folder."""
    if tree := env.get("GIT_WORK_TREE"):
        return follow_links(cwd / tree)
    return follow_links(cwd) if env.get("GIT_DIR") else None


def allow(path: Path, content: bytes) -> None:
    """Have the file count for as long as it has this content.

    Raises:
        StateError: this cannot be written down.

    """
    digest = _digest(content)
    for one in _identify(path):
        others = [known for known in _read(one).contents if known != digest]
        permit = Permit(str(one), (*others[1 - KEPT :], digest))
        ensure_private_dir(_place(one).parent, parents=True)
        write_atomic(_place(one), msgspec.json.encode(permit), durable=True)


def is_allowed(path: Path, content: bytes) -> bool:
    """Say whether a person has allowed the file with this content."""
    return _digest(content) in _list_contents(path)


def find_check(path: Path, shown: str) -> Callable[[bytes], None] | None:
    """Return a check that refuses content that was not allowed; None if the file never needed one.

    A file that was allowed once is checked wherever it is read again, so that the sessions that
    began with it do not go on with what a later commit has made of it.
    """
    if not _list_contents(path):
        return None

    def check(content: bytes) -> None:
        if not is_allowed(path, content):
            raise UsageError(explain(path, shown))

    return check


def explain(path: Path, shown: str) -> str:
    """Say in one sentence why a file is not used, and what helps."""
    why = (
        "has changed since you allowed it"
        if _list_contents(path)
        else "is not used, as it lies in a work tree, where a commit may have put it"
    )
    remedy = f"sm config allow {shlex.quote(shown)}"
    return f"'{shown}' {why}, and it can run commands: read it, then allow it with '{remedy}'"


def _identify(path: Path) -> tuple[Path, ...]:
    """Return the file's own place, and its name as it was given, if there is a link on the way.

    A link of the file itself stays in both: a commit may turn any of them elsewhere.
    """
    own, given = follow_links(path.parent) / path.name, Path(os.path.abspath(path))  # noqa: PTH100
    return tuple(dict.fromkeys((own, given)))


def _list_contents(path: Path) -> tuple[str, ...]:
    return tuple(content for one in _identify(path) for content in _read(one).contents)


def _read(path: Path) -> Permit:
    with contextlib.suppress(msgspec.MsgspecError, RuntimeError):  # the latter: there is no home
        place = _place(path)
        if place.parent.is_dir():
            permit = decode(read_guarded(place) or b"", Permit)
            return permit if permit.path == str(path) else Permit(str(path))
    return Permit(str(path))


def _place(path: Path) -> Path:
    return Path.home() / FOLDER / f"{_digest(os.fsencode(path))}.json"


def _digest(content: bytes) -> str:
    import hashlib  # two milliseconds that only those pay who have allowed something

    return hashlib.sha256(content).hexdigest()
