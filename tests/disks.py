"""File systems of a test's own, small enough to be filled."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = 4096
"""Bytes; room is given and taken in pages."""


def mount_small(path: Path, size: str) -> bool:
    """Mount a file system at the folder `path`; False where that is not permitted."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path)]
    if os.geteuid() != 0:
        return False
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def unmount(path: Path) -> None:
    """Take it away again, whoever still uses it."""
    subprocess.run(["umount", "-l", str(path)], check=True)


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """A file system at the folder `path`; skips the test where mounting is not permitted."""
    if not mount_small(path, size):
        pytest.skip("mounting is not permitted here")
    try:
        yield path
    finally:
        unmount(path)


def make_read_only(disk: Path) -> None:
    """Take no more writes, as a damaged disk does."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def fill(disk: Path, *, but_for: int = 0) -> Path:
    """Leave so many pages and not a byte more; returns the file that takes all the room."""
    ballast = disk / "ballast"
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with contextlib.suppress(OSError):
        while os.write(fd, b"\0" * PAGE):
            pass
    os.close(fd)
    os.truncate(ballast, ballast.stat().st_size - but_for * PAGE)
    return ballast
