from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from sm.base.errors import StateError
from sm.base.phase import Phase, PhaseWrite
from sm.issues.look import phase_file
from sm.store.paths import Root


@pytest.fixture
def path(root: Root) -> Path:
    return root.phase("harb", 7)


def read(root: Root) -> tuple[Phase, str, str] | None:
    write = phase_file.read(root, "harb", 7)
    return (write.phase, write.reason, write.id) if write else None


def phase(root: Root) -> Phase | None:
    write = phase_file.read(root, "harb", 7)
    return write.phase if write else None


def read_corrected(root: Root, *, not_before: float, known: str = "") -> PhaseWrite | None:
    return phase_file.read_corrected(
        root, "harb", 42, not_before=not_before, is_known=lambda ident: ident == known
    )


def test_created_empty_and_private(root: Root, path: Path) -> None:
    assert phase_file.create(root, "harb", 7) == path
    assert (path.stat().st_size, path.stat().st_mode & 0o777) == (0, 0o600)
    assert phase(root) == Phase.NONE


def test_created_again_keeps_what_the_agent_wrote(root: Root, path: Path) -> None:
    phase_file.create(root, "harb", 7)
    path.write_text("PHASE:done\n")
    phase_file.create(root, "harb", 7)
    assert path.read_text() == "PHASE:done\n"


def test_agents_shell_writes_it(root: Root, path: Path) -> None:
    subprocess.run(
        ["sh", "-c", 'umask 022; printf "PHASE:failed\\nReason: no\\n" > "$1"', "sh", str(path)],
        check=True,
    )
    assert path.stat().st_mode & 0o777 == 0o644
    write = phase_file.read(root, "harb", 7)
    assert write is not None
    assert (write.phase, write.reason) == (Phase.FAILED, "no")


def test_missing_is_none(root: Root) -> None:
    assert read(root) is None


def test_same_phase_written_twice_is_two_writes(root: Root, path: Path) -> None:
    path.write_text("PHASE:awaiting_ci\n")
    first, again = read(root), read(root)
    before = path.stat().st_mtime_ns
    path.write_text("PHASE:awaiting_ci\n")
    os.utime(path, ns=(before + 1, before + 1))
    assert first == again != read(root)


def test_only_the_start_of_a_huge_file_is_read(root: Root, path: Path) -> None:
    path.write_bytes(b"PHASE:done\n" + b"x" * 10_000_000)
    first = read(root)
    assert first is not None
    assert first[0] == Phase.DONE
    stamp = path.stat().st_mtime_ns
    with path.open("ab") as file:
        file.write(b"more")
    os.utime(path, ns=(stamp, stamp))
    assert read(root) != first


def test_binary_and_crlf_do_no_harm(root: Root, path: Path) -> None:
    path.write_bytes(b"\xff\x00\x01" * 1000)
    assert phase(root) == Phase.UNKNOWN
    path.write_bytes(b"PHASE:awaiting_review\r\n")
    assert phase(root) == Phase.AWAITING_REVIEW


def make_link(path: Path) -> None:
    path.with_name("target").write_text("PHASE:done\n")
    path.symlink_to(path.with_name("target"))


def make_second_name(path: Path) -> None:
    path.write_text("PHASE:done\n")
    path.with_name("other").hardlink_to(path)


def make_writable(path: Path) -> None:
    path.write_text("PHASE:done\n")
    path.chmod(0o602)


@pytest.mark.parametrize(
    "make", [make_link, make_second_name, make_writable, Path.mkdir, os.mkfifo]
)
def test_what_cannot_be_trusted_is_refused_by_name(root: Root, path: Path, make: object) -> None:
    assert callable(make)
    make(path)
    for act in (phase_file.read, phase_file.create):
        with pytest.raises(StateError, match=str(path)):
            act(root, "harb", 7)


def test_what_an_agent_creates_with_umask_002_counts(
    root: Root, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("PHASE:done\n")
    path.chmod(0o664)
    monkeypatch.setattr("sm.store.root_check.is_own_group", lambda gid: gid == path.stat().st_gid)
    write = phase_file.read(root, "harb", 7)
    assert write
    assert write.phase == "PHASE:done"
    monkeypatch.setattr("sm.store.root_check.is_own_group", lambda _: False)
    with pytest.raises(StateError, match="run chmod go-w on it"):
        phase_file.read(root, "harb", 7)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_anothers_file_is_refused(root: Root, path: Path) -> None:
    path.write_text("PHASE:done\n")
    os.chown(path, 65534, 65534)
    with pytest.raises(StateError, match="not owned by you"):
        phase_file.read(root, "harb", 7)


@pytest.mark.parametrize("mtime", [1.0, 4e9])
def test_time_that_cannot_be_true_becomes_the_present_one(root: Root, mtime: float) -> None:
    path = phase_file.create(root, "harb", 42)
    os.utime(path, (mtime, mtime))
    write = read_corrected(root, not_before=time.time() - 100)
    assert write is not None
    assert write == phase_file.read(root, "harb", 42)
    assert abs(write.at - time.time()) < 50


def test_time_within_the_session_is_left_alone(root: Root) -> None:
    path = phase_file.create(root, "harb", 42)
    at = time.time() - 50
    os.utime(path, (at, at))
    before = path.stat().st_mtime_ns
    read_corrected(root, not_before=at - 50)
    assert path.stat().st_mtime_ns == before


def test_clock_set_back_since_the_session_began_makes_no_other_write_of_one(root: Root) -> None:
    """Else each look found a new phase, and asked a person about it."""
    path = phase_file.create(root, "harb", 42)
    at = time.time() - 50
    os.utime(path, (at, at))
    before = path.stat().st_mtime_ns
    read_corrected(root, not_before=time.time() + 3600)
    assert path.stat().st_mtime_ns == before


def test_time_in_the_future_of_a_write_that_was_dealt_with_is_left_alone(root: Root) -> None:
    path = phase_file.create(root, "harb", 42)
    path.write_text("PHASE:escalate\n")
    os.utime(path, (4e9, 4e9))
    write = phase_file.read(root, "harb", 42)
    assert write is not None
    assert read_corrected(root, not_before=0, known=write.id) == write
    assert path.stat().st_mtime == 4e9


def test_time_of_what_is_no_phase_file_is_nobodys_business(root: Root) -> None:
    assert read_corrected(root, not_before=0) is None
    target = root.path / "target"
    target.touch()
    os.utime(target, (4e9, 4e9))
    root.phase("harb", 42).symlink_to(target)
    with pytest.raises(StateError):
        read_corrected(root, not_before=0)
    assert target.stat().st_mtime == 4e9
