"""The board: a folder with a file for each notice."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from sm.store.files import ensure_private_dir, write_atomic


def pin(board: Path, ident: str, text: str, keep: int) -> bool:
    """Pin a notice, and take the oldest down; False if one with that `ident` hangs there."""
    if is_pinned(board, ident):
        return False
    name = _name(ident)
    write_atomic(ensure_private_dir(board) / f"{time.time_ns()}-{name}.md", text)
    for old in list_notices(board)[:-keep]:
        old.unlink(missing_ok=True)
    return True


def is_pinned(board: Path, ident: str) -> bool:
    """Say whether a notice with that `ident` hangs there."""
    return any(board.glob(f"*-{_name(ident)}.md"))


def _name(ident: str) -> str:
    return hashlib.sha256(ident.encode()).hexdigest()[:16]


def list_notices(board: Path) -> list[Path]:
    """Return the notices, the oldest first."""
    return sorted(board.glob("*.md"))
