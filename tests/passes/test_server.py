"""The server of passes: loaded once for all monitors, and forked for each pass."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sm
from sm.adapters import procfs
from sm.passes import modules
from sm.passes.fork import ELSEWHERE, describe_limits
from sm.passes.tally import PassEnd, read_sums
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for

PROBE = """
import json, os, sys, time
from pathlib import Path

if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
from sm.__main__ import run
from sm.cli import passes
from sm.passes import server

server.REST_S = float(os.environ.get("REST_S", server.REST_S))

def react(_invocation, words):
    folder = Path(os.environ["FOLDER"])
    told = {"session": words[0], "env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
    told["umask"] = os.umask(0o77)
    told["open"] = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                    if os.path.lexists(f"/proc/self/fd/{fd}")]
    told["old"] = "colorsys" not in sys.modules
    told["parent"] = os.getppid()
    import colorsys
    if "CERTIFICATES" in os.environ:
        from sm.plugins.forges.web import transport
        transport.load_certificates()
    (folder / words[0]).write_text(json.dumps(told))
    while (folder / f"{words[0]}.hold").exists():
        time.sleep(0.01)
    if code := os.environ.get("CODE"):
        print("it fails", file=sys.stderr)
        sys.exit(int(code))

passes.react = react
sys.exit(run(["react-server"]))
"""
"""The server, whose passes note in `FOLDER` what they have. `SESSION.hold` keeps them there."""

START = 'exec 9<>"$1.lock"; flock -n 9 || exit 9; exec 0<>"$1"; shift; exec "$@"'


class Monitor:
    """What a monitor has to do with the server, step by step."""

    def __init__(self, root: Root, name: str, folder: Path, **more: str) -> None:
        """It is there; `more` is in its environment."""
        self.name, self.folder, self.root = name, folder, root
        self.python, self.cwd, self.limits = "python", str(folder), describe_limits()
        self.env = {"FOLDER": str(folder), "LC_ALL": "C.UTF-8"} | more
        self.dir = root.session(name)
        self.dir.path.mkdir(parents=True)
        for fifo in (self.dir.pass_answer, self.dir.pass_caller):
            os.mkfifo(fifo, 0o600)
        self.count = 0
        self.answer = os.fdopen(os.open(os.devnull, os.O_RDONLY))
        both = os.open(root.passes, os.O_RDWR)
        self.passes = os.open(root.passes, os.O_WRONLY)
        os.close(both)
        self.open = [self.passes]

    @property
    def ident(self) -> str:
        return f"{self.name}.{self.count}"

    def ask(self) -> None:
        """Ask for a pass."""
        self.count += 1
        self.hold = os.open(self.dir.pass_answer, os.O_RDWR)
        self.answer.close()
        self.answer = os.fdopen(os.open(self.dir.pass_answer, os.O_RDONLY))
        self.open += [self.hold]
        wait_for(self._is_asked, "a server that reads")

    def _is_asked(self) -> bool:
        try:
            return bool(os.write(self.passes, f"{self.name} {self.ident}\n".encode()))
        except BrokenPipeError:
            return False

    def tell(self) -> None:
        """Wait until the request is taken up, and tell what the pass is to have."""
        assert self.answer.readline() == f"{self.ident}\n"
        os.close(self.hold)
        self.open.remove(self.hold)
        env = [f"{name}={value}" for name, value in self.env.items()]
        told = [self.ident, "0027", self.cwd, self.python, self.limits, *env, self.ident]
        to = os.open(self.dir.pass_caller, os.O_WRONLY)
        os.write(to, b"".join(os.fsencode(each) + b"\0" for each in told))
        os.close(to)

    def hear(self) -> str:
        """The exit code; '' when the server has gone."""
        with self.answer:
            line = self.answer.readline()
        assert not line or line.startswith(f"{self.ident} ")
        return line.removeprefix(f"{self.ident} ").strip()

    def take(self) -> dict[str, Any]:
        """A whole pass; returns what it noted."""
        self.ask()
        self.tell()
        assert self.hear() == "0"
        return self.noted()

    def begin(self) -> dict[str, Any]:
        """A pass that waits; returns what it noted until then."""
        (self.folder / self.name).unlink(missing_ok=True)
        (self.folder / f"{self.name}.hold").touch()
        self.ask()
        self.tell()
        return wait_for(self.noted, "the pass to begin")

    def release(self) -> None:
        (self.folder / f"{self.name}.hold").unlink()

    def noted(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / self.name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return found

    def end(self) -> None:
        self.answer.close()
        for fd in self.open:
            os.close(fd)
        self.open = []


class House:
    """A state root with its monitors, and the servers that were started."""

    def __init__(self, root: Root, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.root.private.mkdir(mode=0o700)
        self.root.sessions.mkdir(mode=0o700)
        os.mkfifo(root.passes, 0o600)
        self.script = folder / "probe.py"
        self.script.write_text(PROBE)
        self.servers: list[subprocess.Popen[str]] = []
        self.monitors: list[Monitor] = []

    def monitor(self, name: str, **more: str) -> Monitor:
        made = Monitor(self.root, name, self.folder, **more)
        self.monitors.append(made)
        return made

    def start(self, *argv: str | Path, **env: str) -> subprocess.Popen[str]:
        """A server, as a monitor starts it."""
        own = {"SM_STATE_ROOT": str(self.root.path), "SM_PYTHON": "python", "LC_ALL": "C.UTF-8"}
        how = [sys.executable, "-I", str(self.script), *map(str, argv)]
        server = subprocess.Popen(
            ["bash", "-c", START, "start", str(self.root.passes), *how],
            env={"PATH": os.environ["PATH"]} | own | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.servers.append(server)
        return server


@pytest.fixture
def house(root: Root, tmp_path: Path) -> Iterator[House]:
    made = House(root, tmp_path)
    yield made
    for hold in tmp_path.glob("*.hold"):
        hold.unlink()
    for monitor in made.monitors:
        monitor.end()
    for server in made.servers:
        server.kill()
        server.communicate()


def test_a_pass_has_what_a_child_of_its_monitor_would_have(house: House) -> None:
    ann, bob = house.monitor("ann", TOKEN="of ann", TZ="UTC"), house.monitor("bob", OTHER="b\nb")
    server = house.start(SECRET="of the server")
    ann.cwd = str(house.root.path)
    first, second = ann.begin(), bob.take()
    for noted, monitor in ((first, ann), (second, bob)):
        assert noted["env"] == monitor.env
        assert (noted["cwd"], noted["umask"]) == (monitor.cwd, 0o027)
        assert noted["parent"] == server.pid
    assert (house.root.session("bob").path / "monitor.log").stat().st_mode & 0o777 == 0o600
    log = str(house.root.session("bob").monitor_log)
    (tell,) = set(second["open"]) - {"/dev/null", log}  # and the directory that it looked into
    assert tell.startswith("pipe:")
    ann.release()
    assert ann.hear() == "0"


def test_what_a_pass_says_is_in_the_log_of_its_session_and_its_code_its_monitors(
    house: House,
) -> None:
    ann, bob = house.monitor("ann", CODE="2"), house.monitor("bob")
    house.start()
    for _ in range(2):
        ann.ask()
        ann.tell()
        assert ann.hear() == "2"
    bob.take()
    assert ann.dir.monitor_log.read_text() == "it fails\n" * 2
    assert not bob.dir.monitor_log.read_text()


def test_passes_do_not_wait_for_one_another(house: House) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    house.start()
    ann.begin()
    for _ in range(3):
        bob.take()
    ann.release()
    assert ann.hear() == "0"


def test_many_passes_at_once_are_made_by_and_by(house: House) -> None:
    house.script.write_text(PROBE.replace("passes.react =", "server.AT_ONCE = 2\npasses.react ="))
    monitors = [house.monitor(f"s-{number}") for number in range(8)]
    for monitor in monitors:
        (house.folder / f"{monitor.name}.hold").touch()
    house.start()
    for monitor in monitors:
        monitor.ask()
    for monitor in monitors:  # those that wait for something keep nobody waiting
        monitor.tell()
    for monitor in monitors:
        monitor.release()
        assert monitor.hear() == "0"


def test_a_request_that_is_repeated_is_one_pass(house: House) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    house.start()
    ann.ask()
    line = f"{ann.name} {ann.ident}\n".encode()
    os.write(ann.passes, line + b"\n\n" + line)
    ann.tell()
    assert ann.hear() == "0"
    (house.folder / "ann").unlink()
    os.write(ann.passes, line + b"../x 1\nno-such 1\nx\n\xff \xff\n")
    bob.take()
    assert not ann.noted()


def test_a_pass_that_is_killed_ends_alone(house: House) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    house.start()
    bob.begin()
    os.kill(ann.begin()["pid"], signal.SIGKILL)
    assert ann.hear() == "137"
    bob.release()
    assert bob.hear() == "0"
    ann.release()
    ann.take()


def test_passes_are_counted_by_their_end_also_by_the_next_server(house: House) -> None:
    for number in (1, 2):
        ann, bob = house.monitor(f"ann-{number}", CODE="2"), house.monitor(f"bob-{number}")
        server = house.start()
        bob.take()
        ann.ask()
        ann.tell()
        assert ann.hear() == "2"
        ann.end()
        bob.end()
        assert server.wait(HANG_S) == 0  # at once, before the sums are due to be written
        sums = read_sums(house.root.passes_made)
        assert sums
        assert sums.ended == {PassEnd.DONE: number, PassEnd.FAILED: number}
        assert sum(sums.took) == 2 * number
        assert 0 < sums.took_s < HANG_S


def test_server_that_is_killed_leaves_passes_to_the_next(house: House) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    first = house.start()
    begun = ann.begin()
    first.kill()
    assert not ann.hear()
    second = house.start()  # the pass that goes on holds neither its lock nor its FIFOs
    assert bob.take()["parent"] == second.pid
    assert procfs.find(begun["pid"])
    ann.release()
    assert ann.take()["parent"] == second.pid


def test_monitor_that_is_killed_at_any_moment_takes_nobody_with_it(house: House) -> None:
    ann, bob, cid = house.monitor("ann"), house.monitor("bob"), house.monitor("cid")
    server = house.start()
    ann.ask()
    ann.end()  # before it is answered, perhaps
    bob.ask()
    assert bob.answer.readline() == f"{bob.ident}\n"
    to = os.open(bob.dir.pass_caller, os.O_WRONLY)
    os.write(to, f"{bob.ident}\0000027\0".encode())
    os.close(to)
    os.close(bob.hold)
    bob.open.remove(bob.hold)
    assert bob.hear() == "1"
    assert not bob.noted()
    begun = cid.begin()
    cid.answer.close()
    assert bob.take()["parent"] == server.pid
    cid.release()
    wait_for(lambda: procfs.find(begun["pid"]) is None, "the end of the pass")
    assert bob.take()["parent"] == server.pid


def test_only_one_server_has_a_state_root(house: House) -> None:
    ann = house.monitor("ann")
    first = house.start()
    ann.take()
    assert house.start().wait(HANG_S) == 9
    assert ann.take()["parent"] == first.pid


def test_it_ends_once_it_has_rested(house: House) -> None:
    ann = house.monitor("ann")
    server = house.start(REST_S="0.5")
    ann.begin()
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(1.0)
    ann.release()
    assert ann.hear() == "0"
    assert server.wait(HANG_S) == 0
    house.start()
    ann.take()


def test_it_ends_with_the_last_monitor(house: House) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    server = house.start()
    bob.take()
    bob.end()
    ann.take()
    ann.end()
    assert server.wait(HANG_S) == 0


def test_it_ends_when_its_state_is_gone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.script.write_text(PROBE.replace("passes.react =", "server.LOOK_S = 0.1\npasses.react ="))
    ann = house.monitor("ann")
    server = house.start()
    ann.take()
    shutil.rmtree(house.root.private)
    assert server.wait(HANG_S) == 0


Differs = Callable[[Monitor], None]


@pytest.mark.parametrize(
    "differ",
    [
        lambda monitor: setattr(monitor, "python", "/another/python"),
        lambda monitor: setattr(monitor, "limits", "NoNewPrivs:\t1"),
        lambda monitor: monitor.env.update(LC_ALL="ISO-8859"),
    ],
)
def test_what_no_fork_can_have_is_left_to_the_monitor(house: House, differ: Differs) -> None:
    ann, bob = house.monitor("ann"), house.monitor("bob")
    house.start()
    differ(ann)
    if "ISO" in ann.env["LC_ALL"]:
        pytest.skip("no such locale is installed")
    ann.ask()
    ann.tell()
    assert ann.hear() == str(ELSEWHERE)
    assert not ann.noted()
    bob.take()


@pytest.mark.parametrize("given", [{}, {"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}])
def test_locale_is_told_to_programs_as_python_does_at_its_start(
    house: House, given: dict[str, str]
) -> None:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    argv = [sys.executable, "-Ic", code]
    begun = subprocess.run(argv, env={"FOLDER": str(house.folder)} | given, capture_output=True)
    ann = house.monitor("ann")
    ann.env = {"FOLDER": str(house.folder)} | given
    house.start()
    assert ann.take()["env"] == json.loads(begun.stdout)


def test_what_a_pass_had_to_load_the_next_one_has_at_hand(house: House) -> None:
    ann, bob = house.monitor("ann", CERTIFICATES="yes"), house.monitor("bob")
    server = house.start()
    assert ann.take()["old"]
    assert not bob.take()["old"]
    assert "/_ssl." in Path(f"/proc/{server.pid}/maps").read_text()


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_update_is_noticed_before_the_next_pass(
    house: House, tmp_path: Path, is_busy: bool
) -> None:
    package = Path(sm.__file__).parent
    copy = tmp_path / "copy" / "sm"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    ann, bob = house.monitor("ann"), house.monitor("bob")
    server = house.start(copy.parent)
    begun = ann.begin()
    if not is_busy:
        ann.release()
        assert ann.hear() == "0"
    with (copy / "issues" / "rules" / "matrix.py").open("a") as module:
        module.write("\nimport os\nos.environ['NEW'] = 'code'\nos.write(1, b'new code\\n')\n")
    second = bob.take()
    assert (second["parent"] == server.pid) is not is_busy
    if is_busy:  # answered by the server that made it
        ann.release()
        assert ann.hear() == "0"
        assert server.wait(HANG_S) == 0
    assert begun["parent"] == server.pid
    assert bob.take()["parent"] == second["parent"]
    for monitor in house.monitors:
        monitor.end()
    assert server.communicate(timeout=HANG_S)[0] == "new code\n"


def test_a_file_that_was_read_beside_the_code_is_watched_as_well(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("one")
    before = modules.stamp_loaded([str(file)])
    file.write_text("another")
    assert modules.stamp_loaded([str(file)]) != before


def test_it_is_started_by_monitors_alone(root: Root) -> None:
    argv = [sys.executable, "-Im", "sm", "react-server"]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "a monitor starts" in done.stderr
