"""Guesses what a new worktree needs beside what git has: ignored files, and installed packages."""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from sm.adapters.git_files import list_ignored
from sm.base.errors import SmError

LOCKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("package-lock.json", "npm-shrinkwrap.json"), "npm ci"),
    (("pnpm-lock.yaml",), "pnpm install --frozen-lockfile"),
    (("bun.lock", "bun.lockb"), "bun install --frozen-lockfile"),
    (("uv.lock",), "uv sync"),
    (("poetry.lock",), "poetry install"),
    (("Gemfile.lock",), "bundle install"),
    (("composer.lock",), "composer install"),
)
"""Lock files, and the command that installs just what they name."""
YARN = ("yarn install --frozen-lockfile", "yarn install --immutable")
"""Commands for yarn of version 1, and of later ones, which have a `.yarnrc.yml`."""
SHOWN = 20


def guess_setup(repo: Path) -> str:
    """Return a command that installs what the lock files name, with the programs that are here."""
    found = [line for names, line in LOCKS if any((repo / name).is_file() for name in names)]
    if (repo / "yarn.lock").is_file() and not any(
        line.startswith(("npm", "pnpm")) for line in found
    ):
        found.append(YARN[(repo / ".yarnrc.yml").exists()])
    return " && ".join(line for line in found if shutil.which(line.split()[0]))


def find_ignored(repo: Path) -> tuple[str, ...]:
    """Return files such as `.env` that git ignores and a program may need."""
    try:
        names = list_ignored(repo)
    except SmError:  # a clone that calls itself bare has none; sm doctor says so
        return ()
    return tuple(name for name in names if _is_environment(name))[:SHOWN]


def _is_environment(name: str) -> bool:
    file = PurePosixPath(name).name
    return not name.endswith("/") and (file == ".env" or file.startswith((".env.", ".envrc")))
