"""Finds the shell half of the program: beside the package in a clone, inside it in a wheel."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).resolve().parent


def find_shell_root() -> Path:
    """Return the directory that has the folders `bin` and `lib`."""
    installed = PACKAGE / "shell"
    return installed if installed.is_dir() else PACKAGE.parent


def spell_command(name: str, cwd: Path) -> str:
    """Return our command as a person in `cwd` calls it: by its name, if PATH leads to it.

    In a clone that is linked nowhere it is a path to its `bin`.
    """
    import shutil  # which a pass does without

    path = find_shell_root() / "bin" / name
    found = shutil.which(name)
    if (PACKAGE / "shell").is_dir() or (found and os.path.realpath(found) == str(path.resolve())):
        return name
    return shlex.quote(str(path.relative_to(cwd) if path.is_relative_to(cwd) else path))


def _exec(name: str) -> NoReturn:
    script = find_shell_root() / "bin" / name
    env = os.environ | {"SM_PYTHON": sys.executable}
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and bash would inherit that
    os.execvpe("bash", ["bash", str(script), *sys.argv[1:]], env)  # noqa: S606, S607 - that is its job


def dev_poll() -> NoReturn:
    """Become `bin/dev-poll`, run by this interpreter."""
    _exec("dev-poll")


def agent_session() -> NoReturn:
    """Become `bin/agent-session`, run by this interpreter."""
    _exec("agent-session")
