"""Copies a file of one folder to the same place in another; follows no link, overwrites nothing.

What is in either folder may be the work of a branch: a link in the way leads out of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from sm.base.errors import SmError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyError(SmError):
    """The file was not copied; nothing was changed."""


def copy_into(source: Path, target: Path, name: str) -> bool:
    """Copy the file `name` of the folder `source` into `target`; False if something is there.

    The copy has the mode of the file, and never a wider one. A symbolic link is copied as one if it
    stays within the folder.

    Raises:
        CopyError: it is no plain file, a link leads out of the folder, or a link is in the way.

    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise CopyError("its name leads out of the folder")
    try:
        with _opened(source, parts[:-1]) as here, _opened(target, parts[:-1], make=True) as there:
            return _copy(here, there, parts)
    except OSError as error:
        raise CopyError((os.strerror(error.errno or 0)).lower()) from error


@contextlib.contextmanager
def _opened(folder: Path, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open the folder below, step by step: with a link on the way, this fails."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
            below = os.open(part, FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _copy(here: int, there: int, parts: tuple[str, ...]) -> bool:
    name = parts[-1]
    if _exists(name, there):
        return False
    found = os.stat(name, dir_fd=here, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        leads = os.readlink(name, dir_fd=here)
        if leads.startswith("/") or not _stays(parts[:-1], leads):
            raise CopyError("it is a link that leads out of the clone")
        os.symlink(leads, name, dir_fd=there)
        return True
    if not stat.S_ISREG(found.st_mode):
        raise CopyError("it is no file")
    part = f".{name}.sm-part"  # a copy that a kill cuts short is never seen under the name itself
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part, dir_fd=there)
    with _file(name, FILE, here) as read, _file(part, NEW, there) as written:
        shutil.copyfileobj(read, written)
        os.fchmod(written.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
    try:
        os.link(part, name, src_dir_fd=there, dst_dir_fd=there, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        os.unlink(part, dir_fd=there)
    return True


def _file(name: str, flags: int, folder: int) -> IO[bytes]:
    return os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "rb" if flags == FILE else "wb")


def _exists(name: str, there: int) -> bool:
    try:
        os.stat(name, dir_fd=there, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _stays(folder: tuple[str, ...], leads: str) -> bool:
    depth = len(folder)
    for part in leads.split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return False
    return True
