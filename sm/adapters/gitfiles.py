"""What git says of files, wherever they are: in which repository, if any, it finds out itself."""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.gitcall import environment, first_line
from sm.adapters.process import Result, ask
from sm.errors import SmError

TIMEOUT_S = 10.0
NO_REPOSITORY = "not a git repository"


def is_shown(path: Path) -> bool:
    """Whether git would show `path`, which need not exist, as an untracked file.

    Raises:
        SmError: git does not tell.

    """
    found = _git(path.parent, "check-ignore", "--quiet", "--no-index", "--", path.name)
    if found.code == 128 and NO_REPOSITORY not in found.stderr:
        raise SmError(f"git does not know of '{path}': {first_line(found)}")
    return found.code == 1


def tracked(folder: Path, pattern: str) -> frozenset[str]:
    """The names of the files in `folder` itself that match, and that git tracks.

    Raises:
        SmError: git does not tell.

    """
    found = _git(folder, "ls-files", "-z", "--", f":(glob){pattern}")
    if found.code and NO_REPOSITORY not in found.stderr:
        raise SmError(f"git does not know of '{folder}': {first_line(found)}")
    return frozenset(name for name in found.stdout.split("\0") if name)


def _git(folder: Path, *args: str) -> Result:
    env = environment(folder, os.environ)
    del env["GIT_CEILING_DIRECTORIES"]  # here the repository around a folder is what is asked for
    argv = ("git", "-C", str(folder), *args)
    return ask(*argv, env=env, timeout_s=TIMEOUT_S, accept=(0, 1, 128))
