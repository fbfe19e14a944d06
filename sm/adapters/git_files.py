"""Asks git about files in any folder; git finds their repository itself."""

from __future__ import annotations

import os
from pathlib import Path

from sm.adapters.git_call import make_environment, read_first_line
from sm.adapters.process import Result, ask
from sm.errors import SmError

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


def _git(folder: Path, *args: str) -> Result:
    env = make_environment(folder, os.environ)
    del env["GIT_CEILING_DIRECTORIES"]  # the question here is about the repository around a folder
    argv = ("git", "-C", str(folder), *args)
    return ask(*argv, env=env, timeout_s=TIMEOUT_S, accept=(0, 1, 128))
