"""A Unix socket in the place of a port: only its user can open it, from its first moment on."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from sm.base.clock import Deadline
from sm.base.errors import SmError, UsageError
from sm.store.lock import try_hold_folder

LONGEST = 107
"""Bytes of a path: `sun_path` has 108 with the zero at its end (unix(7))."""
LOCKED_S, LOCKED_PAUSE_S = 10.0, 0.05
PEER_CREDENTIALS = struct.Struct("3i")
"""Process, user and group (unix(7), SO_PEERCRED)."""


@contextlib.contextmanager
def listen_at(path: Path, backlog: int) -> Iterator[socket.socket]:
    """Listen at `path`, and yield the socket; the path is removed at the end.

    A socket that a dead server has left there is replaced.

    Raises:
        UsageError: nothing can be there, or something else is.
        SmError: another server answers there.

    """
    _check_place(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        # Whoever looks at a socket that is bound and does not listen yet would take it for dead.
        with _alone_in(path.parent):
            _clear(path)
            _bind(listener, path)
            listener.listen(backlog)
            made = path.lstat()
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):
                if os.path.samestat(path.lstat(), made):  # another server may have replaced it
                    path.unlink()


def find_peer(connection: socket.socket) -> int:
    """Return the user id at the other end, as it was when it connected."""
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
    return int(PEER_CREDENTIALS.unpack(given)[1])


def _check_place(path: Path) -> None:
    if (size := len(os.fsencode(path))) > LONGEST:
        raise UsageError(
            f"'{path}' is too long for a socket: it has {size} bytes, {LONGEST} are possible"
        )
    try:
        found = path.parent.stat()
    except OSError as error:
        raise _cannot(path, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"cannot listen at '{path}': '{path.parent}' is no directory")
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    if others or found.st_uid not in (os.geteuid(), 0):
        raise UsageError(
            f"others may replace files in '{path.parent}': choose a directory of your own"
        )


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other servers from looking at what is there meanwhile."""
    deadline = Deadline(LOCKED_S)
    while True:
        with try_hold_folder(folder) as is_alone:
            if is_alone:
                yield
                return
        if deadline.is_over:
            raise SmError(f"'{folder}' was locked for {LOCKED_S:g} s: try again")
        time.sleep(LOCKED_PAUSE_S)


def _clear(path: Path) -> None:
    """Remove the socket of a server that is gone, and nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot(path, error) from error
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"'{path}' is there and is no socket: choose another path")
    if _is_answered(path):
        raise SmError(f"cannot listen at '{path}': another server answers there")
    try:
        path.unlink()
    except OSError as error:
        raise _cannot(path, error) from error


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:  # so many wait for it
            return True
        except OSError as error:
            raise _cannot(path, error) from error
    return True


def _bind(listener: socket.socket, path: Path) -> None:
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        os.umask(before)


def _cannot(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot listen at '{path}': {os.strerror(error.errno or 0).lower()}")
