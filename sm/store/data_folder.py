"""The user's data folder, for state that outlives a restart of the machine, which empties /tmp."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from sm.base.errors import StateError
from sm.store.files import follow_links

FOLDER = Path(".local/share/sm")
"""Folder below the user's home."""


def locate(kind: str, state: Path) -> Path:
    """Return the path for `kind` of data about a folder of state, without a suffix.

    The name is a digest of that folder's path; links that lead to it do not change the name.

    Raises:
        StateError: the user has no home.

    """
    digest = hashlib.sha256(os.fsencode(follow_links(state))).hexdigest()
    try:
        return Path.home() / FOLDER / kind / digest
    except RuntimeError as error:
        raise StateError("you have no home directory: set HOME") from error
