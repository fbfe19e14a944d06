"""The only writer of state: it writes whole files, refuses files of others, and follows no link.

All users share `/tmp`, so every open checks what it has opened (CWE-59, CWE-377). It refuses a
link, a special file, a second hard link and another owner.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from sm.base.decoder import decode
from sm.base.errors import StateError
from sm.base.nonce import make_nonce
from sm.store.root_check import find_private_fault

T = TypeVar("T")

CLOCK_SLACK_S = 0.02
"""Seconds: the kernel stamps files by a coarse clock, which is a few milliseconds late."""


def backdate(at: float) -> int:
    """Return an mtime (ns) that is older than anything written since `at` (seconds)."""
    return int((at - CLOCK_SLACK_S) * 1e9)


FILE_LIMIT = 16 * 1024 * 1024
"""Bytes of one file, for its writer and its reader. A larger file is a mistake or an attack."""
SNAPSHOT_LIMIT = 64 * 1024 * 1024
"""Bytes of `forge.json`, which has a line for every issue and pull request."""


Stamp = tuple[int, int, int]
"""Inode, time and size of a file; a change of the file changes its stamp."""


def find_stamp(path: Path) -> Stamp:
    """Return the stamp of a file; zeros if there is none.

    The clock of a file system may stand still for some milliseconds, so the time is not enough.
    """
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def find_mtime(path: Path) -> float:
    """Return when a file was last written, in seconds since 1970; 0 if it cannot be looked at."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def list_names(folder: Path) -> list[str]:
    """Return the names in `folder`, sorted; none if there is no such folder.

    Raises:
        StateError: it cannot be read, or is no folder.

    """
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StateError(f"cannot read '{folder}': {os.strerror(error.errno or 0)}") from error


def follow_links(path: Path) -> Path:
    """Return where `path` leads, even if nothing is there. A link to itself stays as it is.

    For such a link `Path.resolve` raises RuntimeError before Python 3.13.
    """
    return Path(os.path.realpath(path))


def ensure_private_dir(path: Path, *, parents: bool = True) -> Path:
    """Create the folder `path` (0700) if it is missing, and refuse one that is not ours.

    Missing parents are created the same way, unless `parents` is False. Returns `path`.

    Raises:
        StateError: it cannot be made, is a link, no directory, another user's, or open to others.

    """
    try:
        for folder in reversed([path, *path.parents]) if parents else [path]:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
    except FileNotFoundError as error:
        raise StateError(f"cannot make '{path}': its directory is gone") from error
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{path}': {reason}: choose another state root") from error
    if fault := find_private_fault(path):
        raise StateError(str(fault))
    return path


def check_regular(path: Path, found: os.stat_result) -> None:
    """Refuse anything but a plain file of this user with exactly one name."""
    if not stat.S_ISREG(found.st_mode):
        raise StateError(f"'{path}' is not a regular file: remove it")
    if found.st_uid != os.geteuid():
        raise StateError(f"'{path}' is not owned by you: remove it")
    if found.st_nlink > 1:
        raise StateError(f"'{path}' has {found.st_nlink} names: remove the other ones")


@contextlib.contextmanager
def open_guarded(path: Path, flags: int, mode: int = 0o600) -> Iterator[int]:
    """Open a file and check it. It follows no link and waits for no FIFO.

    Yields a file descriptor, and closes it afterwards.

    Raises:
        StateError: `path` is no plain file of ours, or a directory above it is gone.
        FileNotFoundError: there is no such file and `flags` do not create one.

    """
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except FileNotFoundError as error:
        if not flags & os.O_CREAT:
            raise
        raise StateError(f"cannot make '{path}': its directory is gone") from error
    except OSError as error:
        raise StateError(f"cannot open '{path}': {os.strerror(error.errno or 0)}") from error
    try:
        check_regular(path, os.fstat(fd))
        yield fd
    finally:
        os.close(fd)


def read_guarded(path: Path, limit: int = FILE_LIMIT) -> bytes | None:
    """Return at most `limit` bytes of `path`; None if there is no such file."""
    try:
        with open_guarded(path, os.O_RDONLY) as fd:
            return _read_up_to(fd, limit)
    except FileNotFoundError:
        return None


def read_harmless(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """Read as `read_guarded` does, but return b'' for a link, a FIFO or another's file.

    Use it for files that must never hold a session up, such as those of its hooks.
    """
    try:
        return read_guarded(path, limit) or b""
    except StateError:
        return b""


def read_foreign(path: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of a plain file of any user; b'' for anything else.

    Raises:
        OSError: it cannot be opened, or is a link.

    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""


def _read_up_to(fd: int, limit: int) -> bytes:
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(fd, min(limit, 1 << 20))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def check_size(path: Path, size: int, limit: int) -> None:
    """Refuse a content that is too large for the readers of `path`; sizes in bytes.

    Raises:
        StateError: it is too large.

    """
    if size > limit:
        raise StateError(
            f"cannot write '{path}': it would have {size:,} bytes, {limit:,} are allowed"
        )


def write_atomic(
    path: Path,
    content: bytes | str,
    *,
    durable: bool = False,
    mtime_ns: int | None = None,
    limit: int = FILE_LIMIT,
    at_last: Callable[[], object] = lambda: None,
) -> None:
    """Replace `path` (0600): a reader finds the old content or the new one, never half.

    With `durable` the content survives a power cut. `mtime_ns` (since the epoch) sets the file's
    time; by default it is now. `limit` is the reader's limit in bytes. On a full disk the old file
    stays; also if `at_last`, which is called right before the replacement, raises an error.

    Raises:
        StateError: the file could not be written, or is too large; `path` is unchanged.

    """
    data = content.encode() if isinstance(content, str) else content
    check_size(path, len(data), limit)
    temporary = path.with_name(f".{path.name}.{make_nonce(6)}")
    try:
        _create(temporary, data, durable=durable)
        if mtime_ns is not None:
            os.utime(temporary, ns=(mtime_ns, mtime_ns))
        at_last()
        temporary.replace(path)
        if durable:
            sync_dir(path.parent)
    except OSError as error:
        raise StateError(f"cannot write '{path}': {os.strerror(error.errno or 0)}") from error
    finally:
        _clear_up(temporary)


def create_exclusive(path: Path, content: bytes | str = b"") -> bool:
    """Create `path` (0600) with `content`; False if the name is taken already."""
    data = content.encode() if isinstance(content, str) else content
    try:
        _create(path, data, durable=False)
    except FileExistsError:
        return False
    except OSError as error:
        raise StateError(f"cannot create '{path}': {os.strerror(error.errno or 0)}") from error
    return True


def _create(path: Path, data: bytes, *, durable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    try:
        _write_all(fd, data)
        if durable:
            os.fsync(fd)
    except OSError:
        _clear_up(path)
        raise
    finally:
        os.close(fd)


def _clear_up(path: Path) -> None:
    """Remove what was begun. On a read-only file system that fails even if nothing is there."""
    with contextlib.suppress(OSError):
        path.unlink()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append_line(path: Path, line: bytes, *, limit: int | None = None) -> None:
    """Append one line, so that lines of several processes never mix.

    An unfinished line, left by a full disk or a power cut, stays a line of its own. `limit` is the
    limit in bytes of a reader that reads the whole file; None means no limit.

    Raises:
        StateError: the file is not ours, or too large, or could not be written.

    """
    with open_guarded(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as fd:
        # While another process writes, the file grows page by page, and we would see half a line.
        fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        unfinished = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        whole = b"\n" * unfinished + line.rstrip(b"\n") + b"\n"
        if limit is not None:
            check_size(path, size + len(whole), limit)
        try:
            written = os.write(fd, whole)
        except OSError as error:
            raise StateError(f"cannot write '{path}': {os.strerror(error.errno or 0)}") from error
    if written < len(whole):
        raise StateError(f"cannot write '{path}': {os.strerror(errno.ENOSPC)}")


def rename_longer(path: Path, target: Path, *, than: int) -> None:
    """Rename the file if it has more bytes than that, once if several processes do so at once.

    Raises:
        StateError: the file is not ours.
        OSError: it cannot be renamed.

    """
    with open_guarded(path, os.O_RDWR) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        found = os.fstat(fd)
        # Another process may have renamed it meanwhile, and begun a new one at its place.
        if found.st_size > than and os.path.samestat(found, path.stat()):
            path.replace(target)


def discard(path: Path) -> None:
    """Remove the file at `path`, if there is one. A directory is only renamed, with its content.

    Raises:
        StateError: it cannot be removed.

    """
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        set_aside(path)
    except OSError as error:
        raise StateError(f"cannot remove '{path}': {os.strerror(error.errno or 0)}") from error


def set_aside(path: Path) -> Path:
    """Rename the file or directory at `path` to a name that sm does not read; return that name.

    Raises:
        OSError: it cannot be renamed.

    """
    return path.replace(path.with_name(f".{path.name}.{make_nonce(6)}"))


def sync_dir(path: Path) -> None:
    """Make a rename or a new name in `path` survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(
    path: Path,
    value: object,
    *,
    durable: bool = False,
    mtime_ns: int | None = None,
    limit: int = FILE_LIMIT,
) -> None:
    """Write `value` as JSON to `path`; otherwise like `write_atomic`."""
    data = msgspec.json.encode(value, enc_hook=_plain) + b"\n"
    write_atomic(path, data, durable=durable, mtime_ns=mtime_ns, limit=limit)


def read_json(path: Path, shape: type[T], *, limit: int = FILE_LIMIT) -> T | None:
    """Return the value in `path`, checked against `shape`; None if there is no such file.

    Raises:
        StateError: the file is not ours, or holds no such value.

    """
    data = read_guarded(path, limit)
    return None if data is None else decode_json(data, shape, path)


def decode_json(data: bytes, shape: type[T], path: Path) -> T:
    """Return the value of `data`, which was read from `path`, checked against `shape`.

    Raises:
        StateError: `data` is no such value.

    """
    try:
        return decode(data, shape, hook=_typed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # msgspec raises no error of its own for bytes that are no text, or for endless nesting.
        raise StateError(f"'{path}' is damaged ({error})") from error


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be kept as JSON")


def _typed(shape: type, value: object) -> object:
    if shape is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{shape.__name__} cannot be read from JSON")
