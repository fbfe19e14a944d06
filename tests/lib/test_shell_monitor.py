from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.store.lock import is_held
from sm.store.paths import Root, SessionDir
from tests.helpers import HANG_S, remove_tree, wait_for
from tests.shell import BIN, FOR_MONITORS, lines, stand_in, stand_in_server, strict

FAR = 4_000_000_000
REACTOR = """
trap 'echo >>"$FOLDER/ends"' EXIT
echo "$*" >>"$FOLDER/calls"
for fd in 8 9; do [[ ! -e /dev/fd/$fd ]] || echo "fd $fd is open" >>"$FOLDER/calls"; done
[[ ! -e $FOLDER/fail ]] || { echo 'no luck' >&2; exit 1; }
while [[ -e $FOLDER/hold ]]; do sleep 0.05; done
touch "$FOLDER/session/seen"
[[ ! -e $FOLDER/timeless ]] || { rm -f "$FOLDER/session/next"; exit 0; }
echo 4000000000 >"$FOLDER/session/next"
"""


def start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that it has started and that are there."""
    return [
        int(pid)
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]


class Monitor:
    """A real monitor with a stand-in for the reactor that notes its calls."""

    def __init__(self, folder: Path, root: Root) -> None:
        self.dir: SessionDir = root.session("dev-ha_rb-42")
        self.dir.path.mkdir(parents=True, mode=0o700)
        self.folder = folder
        (folder / "session").symlink_to(self.dir.path)
        self.watched = folder / "a file"
        self.watched.touch()
        self.dir.watch.write_text(f"{self.watched}\n{folder}/absent\n")
        self.later(self.dir.seen)
        self.dir.next.write_text(f"{FAR}\n")
        self.core = stand_in_server(folder / "core", REACTOR)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.calls_before = 0

    def later(self, path: Path) -> None:
        """Touch `path` in a later tick of the clock than the watched file."""

        def touched() -> bool:
            path.touch()
            return path.stat().st_mtime_ns > self.watched.stat().st_mtime_ns

        wait_for(touched, "the clock to go on")

    def start(self, umask: int = -1, settings: str = "", **more: str) -> subprocess.Popen[bytes]:
        """`settings`: other values for its constants; `more` is in its environment."""
        argv = [str(BIN / "agent-session"), "monitor", "ha.rb", "42"]
        if settings:
            script = strict(f'{settings}\nagent_session_monitor "$1"', FOR_MONITORS)
            argv = ["bash", "-c", script, "monitor", str(self.dir.path)]
        process = subprocess.Popen(
            argv,
            env=os.environ | {"SM_PYTHON": str(self.core), "FOLDER": str(self.folder)} | more,
            umask=umask,
        )
        self.processes.append(process)
        wait_for(lambda: self.dir.wake.is_fifo() or process.poll() is not None, "the FIFO")
        return process

    def begin(self) -> subprocess.Popen[bytes]:
        """Start it, and let it have the call with which it begins, which counts for nothing."""
        process = self.start()
        wait_for(lambda: lines(self.folder / "ends"), "its first call")
        self.calls_before = 1
        return process

    @property
    def calls(self) -> list[str]:
        return lines(self.folder / "calls")[self.calls_before :]

    def wait_for_calls(self, count: int) -> None:
        wait_for(lambda: len(self.calls) >= count, f"{count} calls")
        assert self.calls == ["-Im sm react-server dev-ha_rb-42"] * count

    def wait_for_looks(self) -> None:
        """Wait until the monitor has looked at everything at least once more."""
        process = self.processes[-1]
        stat = Path(f"/proc/{process.pid}/status")

        def sleeps() -> int:
            return int(re.findall(r"\nvoluntary_ctxt_switches:\s+(\d+)", stat.read_text())[0])

        before = sleeps()
        wait_for(lambda: sleeps() >= before + 2, "two looks")

    def kill_server(self) -> None:
        """Kill the server, and wait for its end."""
        (server,) = lines(self.dir.path.parents[2] / "server")
        os.kill(int(server), signal.SIGKILL)
        wait_for(lambda: procfs.find(int(server)) is None, "the end of the server")

    def _open_wake(self) -> int:
        try:
            return os.open(self.dir.wake, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return 0

    def wake(self) -> None:
        fd = wait_for(self._open_wake, "somebody to listen")
        os.write(fd, b"\n")
        os.close(fd)


@pytest.fixture
def monitor(tmp_path: Path, root: Root) -> Iterator[Monitor]:
    found = Monitor(tmp_path, root)
    yield found
    for process in found.processes:
        process.kill()
        process.wait()


def test_quiet_session_needs_no_reactor_and_a_changed_file_one(monitor: Monitor) -> None:
    monitor.begin()
    monitor.wait_for_looks()
    assert not monitor.calls
    monitor.watched.write_text("x")
    monitor.wait_for_calls(1)
    monitor.wait_for_looks()
    assert len(monitor.calls) == 1


def test_a_terminal_that_shows_something_new_calls_the_reactor_while_that_decides(
    monitor: Monitor,
) -> None:
    monitor.begin()
    log = monitor.folder / "a log"
    monitor.later(log)
    monitor.wait_for_looks()
    assert not monitor.calls
    monitor.later(monitor.dir.seen)
    monitor.dir.screen.write_text(f"{log}\n")
    monitor.wait_for_looks()
    assert not monitor.calls
    monitor.later(log)
    monitor.wait_for_calls(1)


@pytest.mark.sweep
def test_a_terminal_that_never_comes_to_rest_is_looked_at_less_often(monitor: Monitor) -> None:
    monitor.begin()
    log = monitor.folder / "a log"
    monitor.dir.screen.write_text(f"{log}\n")
    ahead = time.time() + 3600
    log.touch()
    os.utime(log, (ahead, ahead))
    began = time.time()
    wait_for(lambda: time.time() > began + 12, "twelve looks")
    assert 5 <= len(monitor.calls) <= 8


@pytest.mark.parametrize("umask", [0, 0o022])
def test_its_files_are_private_whatever_the_umask_and_its_reactor_has_that(
    monitor: Monitor, umask: int
) -> None:
    project = monitor.folder / "project"
    project.mkdir()
    turn = project / "turn"
    noted = f"umask >'{monitor.folder}/umask'\nstat -c %a '{turn}' >'{project}/mode'"
    stand_in_server(monitor.core, f"{noted}\n{REACTOR}")
    monitor.dir.shared.write_text(f"{project}\n{monitor.watched}\n")
    (project / "due").write_text("0\n")
    monitor.start(umask=umask)
    monitor.wait_for_calls(1)
    made = (monitor.dir.monitor_lock, monitor.dir.monitor_log, monitor.dir.wake)
    assert [path.stat().st_mode & 0o777 for path in made] == [0o600] * 3
    assert (project / "mode").read_text() == "600\n"
    assert int((monitor.folder / "umask").read_text(), 8) == umask


def test_file_that_appears_or_vanishes_calls_the_reactor(monitor: Monitor) -> None:
    monitor.begin()
    monitor.wait_for_looks()
    absent = monitor.folder / "absent"
    new = monitor.folder / "new"
    new.touch()
    os.utime(new, (1, 1))
    new.rename(absent)
    monitor.wait_for_calls(1)
    absent.unlink()
    monitor.wait_for_calls(2)


@pytest.mark.parametrize("age_s", [1, 1000])
def test_phase_file_replaced_by_an_older_one_calls_the_reactor(
    monitor: Monitor, age_s: float
) -> None:
    read_at = monitor.watched.stat().st_mtime - 100
    os.utime(monitor.watched, (read_at, read_at))
    monitor.dir.phase_seen.touch()
    os.utime(monitor.dir.phase_seen, (read_at, read_at))
    monitor.begin()
    monitor.wait_for_looks()
    assert not monitor.calls
    prepared = monitor.folder / "prepared"
    prepared.touch()
    os.utime(prepared, (time.time() - age_s, time.time() - age_s))
    os.utime(monitor.dir.seen)
    prepared.rename(monitor.watched)
    wait_for(lambda: monitor.calls, "a call")


def test_change_in_the_very_tick_of_the_stamp_is_not_missed(monitor: Monitor) -> None:
    monitor.begin()
    seen = monitor.dir.seen.stat().st_mtime_ns
    os.utime(monitor.watched, ns=(seen, seen))
    monitor.wait_for_calls(1)


def test_a_monitor_calls_the_reactor_as_it_begins(monitor: Monitor) -> None:
    """What was poked before it listened has reached nobody, whatever `next` and `seen` say."""
    monitor.start()
    monitor.wait_for_calls(1)
    monitor.wait_for_looks()
    assert len(monitor.calls) == 1


def test_poke_wakes_it_at_once_and_many_pokes_are_one(monitor: Monitor) -> None:
    process = monitor.begin()
    monitor.wait_for_looks()
    process.send_signal(signal.SIGSTOP)  # or on a busy machine it is awake between them
    for _ in range(50):
        monitor.wake()
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: monitor.calls, "a call")
    monitor.wait_for_looks()
    assert len(monitor.calls) <= 2


def test_a_poke_in_the_moment_in_which_the_monitor_would_look_anyway_is_not_lost(
    monitor: Monitor,
) -> None:
    process = monitor.begin()
    monitor.wait_for_looks()
    process.send_signal(signal.SIGSTOP)  # as on a machine that is busy
    monitor.wake()
    since = time.monotonic()
    wait_for(lambda: time.monotonic() > since + 1.2, "its second to be over")
    process.send_signal(signal.SIGCONT)
    monitor.wait_for_calls(1)


def test_reactor_is_called_when_its_time_has_come(monitor: Monitor) -> None:
    monitor.begin()
    monitor.dir.next.write_text(f"{int(time.time()) - 1}\n")
    monitor.wait_for_calls(1)


@pytest.mark.parametrize("content", ["", "soon\n", "9" * 40, "1e3\n"])
def test_time_that_is_none_calls_the_reactor_not_over_and_over(
    monitor: Monitor, content: str
) -> None:
    (monitor.folder / "timeless").touch()
    monitor.begin()
    monitor.dir.next.write_text(content)
    monitor.wait_for_looks()
    assert not monitor.calls
    monitor.wake()
    monitor.wait_for_calls(1)


def test_death_of_the_agent_calls_the_reactor_once(monitor: Monitor) -> None:
    program = monitor.folder / "a) R 1 (b"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as agent:
        (monitor.dir.path / "agent.pid").write_text(f"{agent.pid} {start_ticks(agent.pid)}\n")
        monitor.begin()
        monitor.wait_for_looks()
        assert not monitor.calls
        agent.kill()
    monitor.wait_for_calls(1)
    monitor.wait_for_looks()
    assert len(monitor.calls) == 1


def test_another_process_with_its_number_is_not_the_agent(monitor: Monitor) -> None:
    monitor.begin()
    (monitor.dir.path / "agent.pid").write_text(f"{os.getpid()} 1\n")
    monitor.wait_for_calls(1)


def test_a_dead_agent_whose_number_is_not_free_is_noticed(monitor: Monitor) -> None:
    """/proc still has its number: its parent has not noticed its end, or another process got it."""
    with subprocess.Popen(["sleep", "60"]) as agent:
        (monitor.dir.path / "agent.pid").write_text(f"{agent.pid} {start_ticks(agent.pid)}\n")
        monitor.start(settings="_VERIFY_S=1")
        wait_for(lambda: lines(monitor.folder / "ends"), "its first call")
        monitor.wait_for_looks()
        monitor.calls_before = 1
        assert not monitor.calls
        agent.kill()
        monitor.wait_for_calls(1)
        assert Path(f"/proc/{agent.pid}").exists()


def test_failing_reactor_is_tried_again_with_pauses(monitor: Monitor) -> None:
    (monitor.folder / "fail").touch()
    monitor.start()
    log = monitor.dir.monitor_log
    wait_for(lambda: sum("trying again" in line for line in lines(log)) == 2, "two failures")
    assert [line for line in lines(log) if line] == [
        "no luck",
        "monitor: the reactor failed (1), trying again in 1 s",
        "no luck",
        "monitor: the reactor failed (1), trying again in 2 s",
    ]
    (monitor.folder / "fail").unlink()
    monitor.wait_for_calls(3)
    monitor.wait_for_looks()
    assert len(monitor.calls) == 3


def test_second_monitor_leaves_at_once_and_a_killed_one_is_replaced(monitor: Monitor) -> None:
    first = monitor.start()
    assert monitor.start().wait(HANG_S) == 0
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not is_held(monitor.dir.monitor_lock)
    monitor.processes.append(monitor.start())
    wait_for(lambda: is_held(monitor.dir.monitor_lock), "the lock")


def test_who_only_asks_for_a_monitor_keeps_none_from_beginning(monitor: Monitor) -> None:
    os.mkfifo(monitor.dir.wake)
    with monitor.dir.monitor_lock.open("w") as asks:
        fcntl.flock(asks, fcntl.LOCK_SH)
        process = monitor.start()
        deadline = time.monotonic() + 1
        wait_for(lambda: time.monotonic() > deadline or process.poll() is not None, "its try")
    monitor.wait_for_calls(1)


def test_it_ends_when_the_directory_is_gone(monitor: Monitor) -> None:
    process = monitor.begin()
    remove_tree(monitor.dir.path)
    assert process.wait(HANG_S) == 0


@pytest.mark.parametrize("name", ["watch", "next", "agent.pid", "shared", "due", "turn"])
def test_a_fifo_in_the_place_of_a_file_does_not_keep_it(monitor: Monitor, name: str) -> None:
    project = monitor.folder / "project"
    project.mkdir()
    monitor.dir.shared.write_text(f"{project}\n{monitor.watched}\n")
    (project / "due").write_text(f"{FAR}\n")
    (project / "forge.json").touch()
    process = monitor.begin()
    (monitor.folder / "timeless").touch()  # the reactor removes what stands there for `next`
    place = (project if name in {"due", "turn"} else monitor.dir.path) / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    if name == "turn":
        (project / "due").write_text("0\n")
    monitor.wait_for_looks()
    remove_tree(monitor.dir.path)
    assert process.wait(HANG_S) == 0


@pytest.mark.parametrize("left", ["", "{project}\n"])
def test_a_file_that_was_cut_off_does_not_end_it(monitor: Monitor, left: str) -> None:
    (monitor.folder / "due").write_text(f"{FAR}\n")
    process = monitor.begin()
    for path in (monitor.dir.watch, monitor.dir.next, monitor.dir.path / "agent.pid"):
        path.write_text("")
    monitor.dir.shared.write_text(left.format(project=monitor.folder))
    monitor.wait_for_looks()
    assert process.poll() is None


@pytest.mark.parametrize("name", ["monitor.lock", "monitor.log"])
def test_it_does_not_begin_beside_a_fifo_in_the_place_of_its_own_files(
    monitor: Monitor, name: str
) -> None:
    os.mkfifo(monitor.dir.path / name)
    assert monitor.start().wait(HANG_S) == 1


def test_it_ends_when_the_directory_was_made_anew(monitor: Monitor) -> None:
    process = monitor.begin()
    monitor.dir.path.rename(monitor.folder / "old")
    monitor.dir.path.mkdir(mode=0o700)
    monitor.dir.monitor_lock.touch()
    assert process.wait(HANG_S) == 0


def test_there_is_nothing_to_watch_without_a_directory(monitor: Monitor) -> None:
    shutil.rmtree(monitor.dir.path)
    assert monitor.start().wait(HANG_S) == 0
    assert not monitor.dir.path.exists()


def test_idle_monitor_starts_no_process(monitor: Monitor) -> None:
    (monitor.dir.path / "agent.pid").write_text(f"{os.getpid()} {start_ticks(os.getpid())}\n")
    process = monitor.begin()
    monitor.wait_for_looks()
    reaped = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[8]
    monitor.wait_for_looks()
    after = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[8]
    # Field 11, cminflt: page faults of children that were waited for; no child is without any.
    assert reaped == after
    assert not children(process)


def test_server_of_passes_that_has_ended_is_started_again(monitor: Monitor) -> None:
    monitor.begin()
    for count in (1, 2, 3):
        monitor.wait_for_looks()  # the pass is over
        monitor.kill_server()
        monitor.wake()
        monitor.wait_for_calls(count)
    assert not lines(monitor.dir.monitor_log)


def test_server_that_is_killed_in_the_middle_of_a_pass_is_started_again(monitor: Monitor) -> None:
    (monitor.folder / "hold").touch()
    monitor.start()
    wait_for(lambda: lines(monitor.folder / "calls"), "the call")
    monitor.kill_server()
    (monitor.folder / "hold").unlink()
    wait_for(lambda: len(lines(monitor.folder / "calls")) == 2, "another call")
    assert lines(monitor.dir.monitor_log) == [
        "monitor: the reactor failed (1), trying again in 1 s",
    ]


def test_server_that_does_not_begin_is_tried_again_with_pauses(monitor: Monitor) -> None:
    stand_in(monitor.core, 'echo "$SM_STATE_ROOT: broken" >&2; exit 3')
    monitor.start()
    log = monitor.dir.monitor_log
    wait_for(lambda: sum("trying again" in line for line in lines(log)) == 2, "two failures")
    assert set(lines(log)) >= {
        f"{monitor.dir.path.parents[2]}: broken",
        "monitor: the reactor failed (1), trying again in 2 s",
    }


def test_no_server_is_needed_where_there_can_be_no_fifo(monitor: Monitor) -> None:
    (monitor.dir.path.parents[1] / "passes").write_text("in the way")
    stand_in(monitor.core, REACTOR)
    monitor.start()
    wait_for(lambda: lines(monitor.folder / "ends"), "the call")
    assert lines(monitor.folder / "calls") == ["-Im sm react dev-ha_rb-42"]


def test_fifo_of_requests_that_is_made_anew_is_found(monitor: Monitor) -> None:
    monitor.begin()
    monitor.wait_for_looks()
    (monitor.dir.path.parents[1] / "passes").unlink()
    monitor.kill_server()
    monitor.wake()
    monitor.wait_for_calls(1)


def test_its_environment_is_on_no_disk(monitor: Monitor) -> None:
    monitor.core = stand_in_server(
        monitor.folder / "core", f'echo "$TOKEN" >"$FOLDER/token"\n{REACTOR}'
    )
    monitor.start(TOKEN="secret of a person")
    monitor.wait_for_calls(1)
    assert lines(monitor.folder / "token") == ["secret of a person"]
    (server,) = lines(monitor.dir.path.parents[2] / "server")
    assert b"secret" not in Path(f"/proc/{server}/environ").read_bytes()
    files = [path for path in monitor.dir.path.parents[1].rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"secret" in path.read_bytes()]


def test_last_monitor_that_is_killed_leaves_no_server(monitor: Monitor) -> None:
    process = monitor.begin()
    (server,) = lines(monitor.dir.path.parents[2] / "server")
    process.kill()
    process.wait()
    wait_for(lambda: procfs.find(int(server)) is None, "the server's end")


def test_lock_survives_no_reactor(monitor: Monitor) -> None:
    """A reactor that outlives its monitor does not keep the next one out."""
    stand_in_server(
        monitor.core,
        'echo "$BASHPID" >"$FOLDER/pid.new"; mv "$FOLDER/pid.new" "$FOLDER/pid"; exec sleep 60',
    )
    process = monitor.start()
    pid = int(wait_for(lambda: "".join(lines(monitor.folder / "pid")), "the reactor"))
    process.kill()
    process.wait()
    try:
        with monitor.dir.monitor_lock.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(pid, signal.SIGKILL)
