from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from sm.base.errors import StateError
from sm.store import files
from tests.disks import make_read_only, small_disk
from tests.helpers import wait_for

CONTEXT = multiprocessing.get_context("spawn")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give away or mount")
NOBODY = 65534


class Fact(msgspec.Struct, frozen=True):
    """Something kept as JSON."""

    name: str
    path: Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A name in a private directory."""
    return files.ensure_private_dir(tmp_path / "private") / "fact"


@pytest.fixture
def no_umask() -> Iterator[None]:
    """A process that hides nothing by itself."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KB."""
    folder = tmp_path / "small"
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def make_link(path: Path) -> None:
    path.with_name("target").write_text("theirs")
    path.symlink_to("target")


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def make_second_name(path: Path) -> None:
    path.write_text("ours")
    path.with_name("other").hardlink_to(path)


def make_foreign(path: Path) -> None:
    path.write_text("theirs")
    os.chown(path, NOBODY, NOBODY)


UNTRUSTED = [
    make_link,
    make_dangling_link,
    make_second_name,
    Path.mkdir,
    os.mkfifo,
    pytest.param(make_foreign, marks=AS_ROOT),
]


@pytest.mark.parametrize("make", UNTRUSTED)
def test_what_is_no_plain_file_of_ours_is_refused(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    with pytest.raises(StateError, match=str(path)):
        files.read_guarded(path)
    with pytest.raises(StateError, match=str(path)):
        files.append_line(path, b"more")


def test_a_link_is_not_written_through(path: Path) -> None:
    make_link(path)
    assert not files.create_exclusive(path, "ours")
    files.write_atomic(path, "ours")
    assert path.with_name("target").read_text() == "theirs"
    assert not path.is_symlink()
    assert path.read_text() == "ours"


def test_a_missing_file_is_none_and_stays_missing(path: Path) -> None:
    assert files.read_guarded(path) is None
    assert files.read_json(path, Fact) is None
    assert not path.exists()


@pytest.mark.usefixtures("no_umask")
def test_what_is_written_is_read_and_for_us_alone(path: Path) -> None:
    for content in ("ä", b"\x00\xff", ""):
        files.write_atomic(path, content, durable=True)
        expected = content.encode() if isinstance(content, str) else content
        assert files.read_guarded(path) == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["fact"]


def test_no_more_is_read_than_asked_for(path: Path) -> None:
    files.write_atomic(path, b"x" * 5000)
    assert files.read_guarded(path, limit=100) == b"x" * 100


def test_created_once(path: Path) -> None:
    assert files.create_exclusive(path, "first")
    assert not files.create_exclusive(path, "second")
    assert path.read_text() == "first"


@pytest.mark.usefixtures("no_umask")
def test_a_directory_is_private_with_its_parents(tmp_path: Path) -> None:
    made = files.ensure_private_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    assert files.ensure_private_dir(made) == made


def open_to_others(path: Path) -> None:
    path.mkdir()
    path.chmod(0o750)


def foreign_directory(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.touch, "is not a directory"),
        (lambda path: path.symlink_to("/"), "is not a directory"),
        (open_to_others, "run chmod 700"),
        pytest.param(foreign_directory, "not owned by you", marks=AS_ROOT),
    ],
)
def test_a_directory_that_others_may_enter_is_refused(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(tmp_path / "private")
    with pytest.raises(StateError, match=why):
        files.ensure_private_dir(tmp_path / "private")


def test_a_full_disk_leaves_the_old_file_and_no_other(full_disk: Path) -> None:
    path = full_disk / "fact"
    files.write_atomic(path, "old")
    with pytest.raises(StateError, match=os.strerror(errno.ENOSPC)):
        files.write_atomic(path, b"x" * 200_000)
    with pytest.raises(StateError, match=os.strerror(errno.ENOSPC)):
        files.create_exclusive(full_disk / "other", b"x" * 200_000)
    assert path.read_text() == "old"
    assert [p.name for p in full_disk.iterdir()] == ["fact"]


def test_a_line_that_a_full_disk_cut_does_not_spoil_the_next(full_disk: Path) -> None:
    path = full_disk / "lines"
    files.append_line(path, b"first")
    with pytest.raises(StateError, match=os.strerror(errno.ENOSPC)):
        files.append_line(path, b"x" * 200_000)
    os.truncate(path, 1000)
    files.append_line(path, b"last")
    lines = path.read_bytes().splitlines()
    assert (lines[0], lines[-1]) == (b"first", b"last")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from sm.base.errors import StateError
from sm.store import files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    files.write_atomic(Path(sys.argv[1]), b"x" * 5000)
except StateError as error:
    print(error.message)
"""


def test_a_file_that_may_not_grow_leaves_the_old_one(path: Path) -> None:
    files.write_atomic(path, "old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write '{path}': {os.strerror(errno.EFBIG)}\n"
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["fact"]


def replace_over_and_over(path: str, letter: str) -> None:
    for _ in range(200):
        files.write_atomic(Path(path), letter * 10_000)
        files.append_line(Path(path + ".lines"), letter.encode() * 3000)


def test_two_writers_never_mix(path: Path) -> None:
    files.write_atomic(path, "a" * 10_000)
    writers = [
        CONTEXT.Process(target=replace_over_and_over, args=(str(path), letter)) for letter in "ab"
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert files.read_guarded(path) in (b"a" * 10_000, b"b" * 10_000)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    lines = Path(f"{path}.lines").read_bytes().splitlines()
    assert sorted(lines) == [b"a" * 3000] * 200 + [b"b" * 3000] * 200


def test_values_are_kept_as_json(path: Path) -> None:
    files.write_json(path, Fact("a", Path("/x")), durable=True)
    assert files.read_json(path, Fact) == Fact("a", Path("/x"))


ENDLESS = b'{"more": ' + b"[" * 100_000


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'{"name": 1}', b"[]", ENDLESS],
    ids=["empty", "half", "no text", "another type", "a list", "endless"],
)
def test_damaged_json_is_named_and_no_traceback(path: Path, content: bytes) -> None:
    files.write_atomic(path, content)
    with pytest.raises(StateError, match=f"'{path}' is damaged"):
        files.read_json(path, Fact)


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot write"):
        files.write_atomic(tmp_path / "gone" / "fact", "x")


def test_read_only_disk_is_a_state_error_and_no_crash(path: Path) -> None:
    with small_disk(path.parent, "64k"):
        make_read_only(path.parent)
        for write in (files.write_atomic, files.create_exclusive):
            with pytest.raises(StateError, match="Read-only file system"):
                write(path, "text")


def test_file_begun_anew_is_not_renamed_by_who_meant_the_one_before(path: Path) -> None:
    """Else the second of two writers put the new journal in the place of the long one."""
    path.write_text("long")
    with ThreadPoolExecutor() as pool:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            second = pool.submit(files.rename_longer, path, path.with_name("old"), than=3)
            wait_for(lambda: _is_awaited(path), "the second writer")
            path.rename(path.with_name("old"))
            path.write_text("new")
        second.result()
    files.rename_longer(path, path.with_name("old"), than=3)
    assert (path.with_name("old").read_text(), path.read_text()) == ("long", "new")


def _is_awaited(path: Path) -> bool:
    """Whether a process waits for the lock of this file (proc_locks(5))."""
    waiting = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
    return any(line.split()[6].endswith(f":{path.stat().st_ino}") for line in waiting)
