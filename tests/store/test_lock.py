from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sm.base.errors import StateError, TemporaryError
from sm.store import lock
from tests.helpers import wait_for

HOLDER = """
import sys, time
from pathlib import Path
from sm.store import lock
with lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the lock is."""
    return tmp_path / "lock"


def test_one_holds_it_and_the_others_know(path: Path) -> None:
    assert not lock.is_held(path)
    assert not path.exists()
    with lock.hold(path):
        assert lock.is_held(path)
        with lock.try_hold(path) as mine:
            assert not mine
        with (
            pytest.raises(TemporaryError, match="was locked for 1 s"),
            lock.hold(path, timeout_s=1),
        ):
            pass
    assert not lock.is_held(path)
    with lock.try_hold(path) as mine:
        assert mine


def test_an_error_inside_releases_it(path: Path) -> None:
    with pytest.raises(RuntimeError), lock.hold(path):
        raise RuntimeError
    assert not lock.is_held(path)


def test_a_holder_killed_by_sigkill_holds_nothing(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert lock.is_held(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    wait_for(lambda: not lock.is_held(path), "the lock to be released")
    with lock.hold(path, timeout_s=0):
        pass


def test_a_waiter_gets_it_when_it_is_released(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        with lock.hold(path, timeout_s=10):
            pass


def test_a_link_is_no_lock(path: Path) -> None:
    path.symlink_to("target")
    with pytest.raises(StateError), lock.hold(path):
        pass
    assert not path.with_name("target").exists()


def test_who_asks_is_in_nobody_s_way(path: Path) -> None:
    """Asking held the lock for a moment, in which another took that for a living monitor."""
    path.touch(mode=0o600)

    def ask() -> bool:
        return any(lock.is_held(path) for _ in range(2000))

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
    assert not any(one.result() for one in asked)


def test_who_takes_it_is_not_turned_away_by_who_asks(path: Path) -> None:
    path.touch(mode=0o600)
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            lock.is_held(path)

    def take() -> bool:
        with lock.try_hold(path) as mine:
            return mine

    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            pool.submit(ask)
        taken = [take() for _ in range(300)]
        over.set()
    assert all(taken)


def test_who_only_asks_and_stands_still_holds_nobody_up_for_ever(path: Path) -> None:
    with path.open("w") as asks:
        path.chmod(0o600)
        fcntl.flock(asks, fcntl.LOCK_SH)
        assert not lock.is_held(path)
        with lock.try_hold(path) as mine:
            assert not mine
