"""Secret that a person types on the consent page to prove that this machine is theirs."""

from __future__ import annotations

import secrets
from pathlib import Path

from sm.store import files, sqlite_file
from sm.web.address import read_secret

LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
"""Letters that do not look alike, because a person may have to type them on a phone."""
GROUPS, GROUP = 5, 5
"""Groups, and letters of each: together 125 bits."""


def locate(folder: Path) -> Path:
    """Return the path of the secret; `folder` is the database's."""
    return folder / "mcp-secret"


def read(path: Path) -> str:
    """Return the secret; make one if there is none.

    Raises:
        StateError: it cannot be made.
        UsageError: the file is open to others, or has no usable secret.

    """
    sqlite_file.make_folder(path.parent)
    if not path.exists():
        files.create_exclusive(path, f"{_new()}\n")
    return read_secret(path)


def renew(path: Path) -> str:
    """Replace the secret by a new one, and return that.

    Raises:
        StateError: it cannot be written.

    """
    sqlite_file.make_folder(path.parent)
    files.write_atomic(path, f"{_new()}\n", durable=True)
    return read_secret(path)


def _new() -> str:
    groups = ("".join(secrets.choice(LETTERS) for _ in range(GROUP)) for _ in range(GROUPS))
    return "-".join(groups)
