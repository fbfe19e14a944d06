"""Asks git about files in any folder; git finds their repository itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from sm.adapters.git_call import make_environment, read_first_line
from sm.adapters.process import Result, ask
from sm.base.errors import SmError

TIMEOUT_S = 10.0
NO_REPOSITORY = "not a git repository"


def is_shown(path: Path) -> bool:
    """Say whether git would show `path`, which need not exist, as an untracked file.

    Raises:
        SmError: git does not tell.

    """
    found = _git(path.parent, "check-ignore", "--quiet", "--no-index", "--", path.name)
    if found.code == 128 and NO_REPOSITORY not in found.stderr:
        raise SmError(f"git does not know of '{path}': {read_first_line(found)}")
    return found.code == 1


def list_tracked(folder: Path, pattern: str) -> frozenset[str]:
    """Return the names of the tracked files in `folder` itself that match.

    Raises:
        SmError: git does not tell.

    """
    found = _git(folder, "ls-files", "-z", "--", f":(glob){pattern}")
    if found.code and NO_REPOSITORY not in found.stderr:
        raise SmError(f"git does not know of '{folder}': {read_first_line(found)}")
    return frozenset(name for name in found.stdout.split("\0") if name)


def list_ignored(folder: Path, patterns: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the files in a work tree that git ignores, of those that match one of the patterns.

    A pattern is a name or a glob (gitglossary(7), pathspec "glob"), or a folder for all in it.
    Without one, a folder that is ignored as a whole stands for its files, with a slash at its end.

    Raises:
        SmError: git does not tell.

    """
    specs = [f":(glob){pattern.rstrip('/')}" for pattern in patterns]
    args = ("--others", "--ignored", "--exclude-standard", "-z")
    found = _git(folder, "ls-files", *args, *([] if specs else ["--directory"]), "--", *specs)
    if found.code:
        raise SmError(f"git does not know of '{folder}': {read_first_line(found)}")
    return tuple(name for name in found.stdout.split("\0") if name)


def select_ignored(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of `names`, which need not exist, that git would ignore in the work tree.

    Raises:
        SmError: git does not tell.

    """
    asked = "".join(f"{name}\0" for name in names).encode("utf-8", "surrogateescape")
    found = _git(folder, "check-ignore", "-z", "--stdin", stdin=asked) if asked else None
    if found is not None and found.code == 128:
        raise SmError(f"git does not know of '{folder}': {read_first_line(found)}")
    return tuple(name for name in found.stdout.split("\0") if name) if found else ()


def hide(folder: Path, place: str, pattern: str) -> None:
    """Keep files of the name `pattern` in `place`, below `folder`, out of what git shows as new.

    It is noted in `info/exclude` of the repository, which all of its worktrees share and none
    tracks (gitignore(5)). Outside of a repository nothing is done.

    Raises:
        SmError: git does not tell, or the file cannot be written.

    """
    found = _git(folder, "rev-parse", "--show-prefix", "--git-path", "info/exclude")
    if found.code:
        return
    prefix, path = found.stdout.split("\n")[:2]
    quoted = GLOB.sub(r"\\\g<0>", prefix + place)
    line = f"/{quoted}/{pattern}"
    file = folder / path
    try:
        known = file.read_text("utf-8", "surrogateescape") if file.exists() else ""
        if line in known.splitlines():
            return
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8", errors="surrogateescape") as end:
            end.write(f"{'' if not known or known.endswith(chr(10)) else chr(10)}{line}\n")
    except OSError as error:
        raise SmError(f"cannot write '{file}': {os.strerror(error.errno or 0)}") from error


GLOB = re.compile(r"[\\*?\[\]]")
"""Characters with a meaning in a pattern of git."""


def _git(folder: Path, *args: str, stdin: bytes | None = None) -> Result:
    env = make_environment(folder, os.environ)
    del env["GIT_CEILING_DIRECTORIES"]  # the question here is about the repository around a folder
    argv = ("git", "-C", str(folder), *args)
    return ask(*argv, env=env, stdin=stdin, timeout_s=TIMEOUT_S, accept=(0, 1, 128))
