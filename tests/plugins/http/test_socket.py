"""`sm serve --socket`: who gets in, what it leaves, and what it does not touch."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.base.errors import SmError, UsageError
from sm.store.lock import try_hold_folder
from sm.store.paths import Root
from sm.web import unix_socket
from sm.web.unix_socket import LONGEST, find_peer, listen_at
from tests.helpers import HANG_S

TOKEN = "0123456789abcdef-a-secret"


class Client(http.client.HTTPConnection):
    """Speaks HTTP by a Unix socket, as `curl --unix-socket` does."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=HANG_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HANG_S)
        self.sock.connect(str(self.path))


def ask(path: Path, target: str, **headers: str) -> int:
    with contextlib.closing(Client(path)) as client:
        client.request("GET", target, headers=headers)
        answer = client.getresponse()
        answer.read()
        return answer.status


@contextlib.contextmanager
def serve(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-Im", "sm", "serve", "--socket", str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=path.parent,
    )
    assert process.stdout
    try:
        line = process.stdout.readline()
        assert line == f"listening on {path}\n", process.communicate(timeout=HANG_S)
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=HANG_S)


@pytest.fixture
def path(root: Root, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder / "sm.sock"


@pytest.mark.long_lived
def test_a_server_at_a_socket_answers_its_user_and_removes_it_at_the_end(path: Path) -> None:
    with serve(path) as process:
        assert path.stat().st_mode & 0o777 == 0o600
        assert ask(path, "/sessions") == ask(path, "/") == ask(path, "/health") == 200
        assert ask(path, "/sessions", Host="evil.example") == 403
        assert ask(path, "/sessions", Host="localhost:8420") == 200  # by ssh -L
        assert ask(path, "/sessions", Origin="http://evil.example") == 403
        process.terminate()
        assert process.communicate(timeout=HANG_S) == ("", "")
        assert process.returncode == 0
    assert list(path.parent.iterdir()) == []


@pytest.mark.long_lived
def test_what_a_dead_server_has_left_is_replaced_and_a_living_one_stays(path: Path) -> None:
    with serve(path) as dead:
        dead.kill()
        dead.communicate(timeout=HANG_S)
    assert path.is_socket()
    with serve(path):
        second = subprocess.run(
            [sys.executable, "-Im", "sm", "serve", "--socket", str(path)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        told = f"sm: cannot listen at '{path}': another server answers there\n"
        assert (second.returncode, second.stderr) == (1, told)
        assert ask(path, "/health") == 200


@pytest.mark.long_lived
def test_a_link_for_a_browser_says_how_it_gets_there(path: Path) -> None:
    with serve(path, "--open") as process:
        assert process.stdout
        curl, ssh, link = (process.stdout.readline() for _ in range(3))
        assert curl.endswith(f"curl --unix-socket {path} http://localhost/sessions\n")
        assert f"ssh -N -L 8420:{path} {socket.gethostname()}" in ssh
        assert link.startswith("open http://localhost:8420/page/login?key=")


STRANGER = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.connect("sm.sock")
client.sendall(f"GET /sessions HTTP/1.1\\r\\nHost: localhost\\r\\n{sys.argv[1]}\\r\\n".encode())
print(client.recv(99).split()[1].decode())
"""


@pytest.mark.long_lived
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_whoever_else_gets_to_the_socket_needs_the_token(path: Path, tmp_path: Path) -> None:
    """Somebody has opened it to a group, for example."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with serve(path, "--token-file", str(token)):
        path.chmod(0o666)
        path.parent.chmod(0o755)
        said = [
            subprocess.run(
                [sys.executable, "-Ic", STRANGER, header],
                capture_output=True,
                text=True,
                cwd=path.parent,
                timeout=HANG_S,
                check=True,
            ).stdout
            for header in ("", f"Authorization: Bearer {TOKEN}\r\n")
        ]
        assert said == ["401\n", "200\n"]
        assert ask(path, "/sessions") == 200


@pytest.mark.long_lived
@pytest.mark.parametrize("options", [("--port", "8420"), ("--host", "127.0.0.1")])
def test_a_socket_has_no_port(path: Path, options: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-Im", "sm", "serve", "--socket", str(path), *options],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


# The socket itself


def test_it_is_private_from_its_first_moment_on(path: Path) -> None:
    modes: list[int] = []
    before = os.umask(0)
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            with contextlib.suppress(FileNotFoundError):
                modes.append(path.lstat().st_mode & 0o777)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(200):
            with listen_at(path, 5):
                pass
        assert os.umask(0) == 0
    finally:
        os.umask(before)
        stop.set()
        watcher.join()
    assert set(modes) <= {0o600}


def test_it_knows_who_has_connected(path: Path) -> None:
    with listen_at(path, 5) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        connection, _ = listener.accept()
        with connection:
            assert find_peer(connection) == os.geteuid()


def test_what_is_no_socket_is_never_removed(path: Path) -> None:
    target = path.parent / "target"
    target.write_text("mine")
    for make in (
        lambda: path.write_text("mine"),
        lambda: path.mkdir(),
        lambda: path.symlink_to(target),
        lambda: os.mkfifo(path),
    ):
        make()
        with pytest.raises(UsageError, match="is no socket"), listen_at(path, 5):
            pass
        assert path.lstat()
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert target.read_text() == "mine"


def test_a_path_that_is_too_long_is_told(path: Path) -> None:
    short = path.with_name("s" * (LONGEST - len(str(path.parent)) - 1))
    with listen_at(short, 5), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(short))
    longer = short.with_name(f"{short.name}s")
    with pytest.raises(UsageError, match="108 bytes, 107 are possible"), listen_at(longer, 5):
        pass


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [("none/sm.sock", 0o700, "no such file"), ("sm.sock", 0o777, "others may replace files")],
)
def test_a_folder_that_is_none_or_is_open_to_others_is_refused(
    path: Path, name: str, mode: int, why: str
) -> None:
    path.parent.chmod(mode)
    with pytest.raises(UsageError, match=why), listen_at(path.parent / name, 5):
        pass


def test_a_socket_that_many_wait_at_is_alive(path: Path) -> None:
    with listen_at(path, 0), contextlib.ExitStack() as clients:
        for _ in range(3):
            client = clients.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(str(path))
        with pytest.raises(SmError, match="another server answers"), listen_at(path, 5):
            pass


def test_two_servers_never_look_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both would take the same one for dead, and the second would remove the first one's."""
    free: list[bool] = []
    look, bind = unix_socket._is_answered, unix_socket._bind

    def note() -> None:
        with try_hold_folder(path.parent) as is_free:
            free.append(is_free)

    def is_answered(at: Path) -> bool:
        note()
        return look(at)

    def bind_noted(listener: socket.socket, at: Path) -> None:
        bind(listener, at)
        note()

    monkeypatch.setattr(unix_socket, "_is_answered", is_answered)
    monkeypatch.setattr(unix_socket, "_bind", bind_noted)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listen_at(path, 5):
        assert free == [False, False]
        note()
        assert free[-1]


def test_it_removes_no_socket_of_another_server(path: Path) -> None:
    with listen_at(path, 5):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.is_socket()


@pytest.mark.long_lived
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_removes_it(path: Path, number: signal.Signals) -> None:
    with serve(path) as process:
        process.send_signal(number)
        process.communicate(timeout=HANG_S)
        assert process.returncode == 0
    assert not path.exists()
