"""Network namespaces with cables between them, which can be cut.

The test, and what it starts, is at the near end of each cable; a machine is at the far end. Nothing
of it is in the network of the machine that the test runs on. The namespaces have no names: each
lives as long as a process in it, and the first of these ends with the test, however that ends.

Cut, the cable is a black hole: no packet comes through, and nobody is told, as where a switch in
between has died. A link that is down would refuse new connections at once. So each end then sends
to a hardware address that nobody has; the other end drops what is not for it (veth(4), arp(7)).
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import wait_for

MISSING = "network namespaces cannot be made here"
NEAR, BESIDE = "192.0.2.1", "192.0.2.3"
"""Addresses for examples (RFC 5737). `BESIDE` is at the near end, too, like a third machine."""
NEAR_HARDWARE, FAR_HARDWARE, NOBODY = (f"02:00:00:00:00:{end}" for end in ("01", "02", "99"))
OWN = Path("/proc/thread-self/ns/net")
RETRIES = "/proc/sys/net/ipv4/tcp_rto_max_ms"
QUEUES = ("netem delay 150ms 100ms loss 20%", "tbf rate 160kbit burst 4kb latency 40ms")
"""Slow and lossy, see tc-netem(8) and tc-tbf(8): a kernel may have only the second, by which what
comes too fast is late, and then lost."""


class Cable:
    """Made by `strung`; `far` is the address at its far end."""

    def __init__(self, near: int, far: int, number: int = 0) -> None:
        """String it between the namespaces of two processes; each of the near one has a number."""
        self._near, self._far = near, far
        self._name = f"cable{number}"
        self.far = f"192.0.2.{2 * number + 2}"
        ends = (
            f"link add {self._name} address {NEAR_HARDWARE} type veth"
            f" peer name {self._name} address {FAR_HARDWARE} netns {far}"
        )
        _ip(near, ends)
        for pid, addresses, size in ((near, (NEAR, BESIDE), 32), (far, (self.far,), 24)):
            _ip(pid, "link set lo up")
            for address in addresses:
                _ip(pid, f"address add {address}/{size} dev {self._name}")
            _ip(pid, f"link set {self._name} up")
        _ip(near, f"route add {self.far} dev {self._name} src {NEAR}")
        self.join()

    @property
    def entry(self) -> list[str]:
        """What a command line begins with that is to run at the far end."""
        return enter(self._far)

    def cut(self) -> None:
        """Have nothing come through in either direction."""
        self.deafen()
        self.cut_from(NEAR, BESIDE)

    def deafen(self) -> None:
        """Have nothing come through to the far end; what that one says does."""
        self._send(self._near, self.far, NOBODY)

    def cut_from(self, *addresses: str) -> None:
        """Have nothing come through from the far end to these of the near one."""
        for address in addresses:
            self._send(self._far, address, NOBODY)

    def join(self) -> None:
        """Have all of it come through."""
        self._send(self._near, self.far, FAR_HARDWARE)
        for address in (NEAR, BESIDE):
            self._send(self._far, address, NEAR_HARDWARE)

    def hasten(self) -> None:
        """Have both ends send again each second what was lost, where the kernel can be told so.

        Else the time between grows with each try, up to two minutes: tcp(7).
        """
        for pid in (self._near, self._far):
            order = f"! test -e {RETRIES} || echo 1000 >{RETRIES}"
            subprocess.run([*enter(pid), "sh", "-c", order], check=True)

    def spoil(self) -> str:
        """Make it slow and lossy in both directions, until `mend`; say how, '' if it cannot be."""
        return next((queue for queue in QUEUES if self._shape("replace", queue)), "")

    def mend(self) -> None:
        """Make it as fast and true as before."""
        self._shape("delete")

    def _shape(self, how: str, queue: str = "") -> bool:
        words = f"qdisc {how} dev {self._name} root {queue}".split()
        ends = ([*enter(pid), "tc", *words] for pid in (self._near, self._far))
        try:
            return all(
                not subprocess.run(end, capture_output=True, check=False).returncode for end in ends
            )
        except FileNotFoundError:
            return False

    def _send(self, pid: int, address: str, hardware: str) -> None:
        """Have what a namespace sends to an address go to that hardware."""
        where = f"lladdr {hardware} dev {self._name} nud permanent"
        _ip(pid, f"neighbour replace {address} {where}")


@contextlib.contextmanager
def strung() -> Iterator[Cable]:
    """Have this thread, and what it starts, at the near end of a cable.

    Skips the test where namespaces cannot be made.
    """
    with all_strung(1) as (cable,):
        yield cable


@contextlib.contextmanager
def all_strung(count: int) -> Iterator[list[Cable]]:
    """The same with several cables, to a far end each."""
    with contextlib.ExitStack() as stack:
        near = stack.enter_context(_namespace())
        fars = [stack.enter_context(_namespace()) for _ in range(count)]
        try:
            cables = [Cable(near, far, number) for number, far in enumerate(fars)]
        except (FileNotFoundError, subprocess.CalledProcessError):
            pytest.skip(MISSING)
        with _within(near):
            yield cables


@contextlib.contextmanager
def make_island() -> Iterator[int]:
    """Yield a process in a network of its own, in which there is nothing but loopback."""
    with _namespace() as pid:
        _ip(pid, "link set lo up")
        yield pid


def listen_on(pid: int, port: int) -> socket.socket:
    """Return a socket that listens on loopback in the network of a process; we ourselves stay."""
    with _within(pid):
        return socket.create_server(("127.0.0.1", port), backlog=64)


@contextlib.contextmanager
def _namespace() -> Iterator[int]:
    """Yield a process in a network namespace of its own, which ends when its stdin does."""
    alone = ["unshare", "--net"]
    try:
        subprocess.run([*alone, "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip(MISSING)
    own = OWN.readlink()
    with subprocess.Popen([*alone, "cat"], stdin=subprocess.PIPE) as keeper:
        its = Path(f"/proc/{keeper.pid}/ns/net")
        wait_for(lambda: its.readlink() != own, "a network namespace")
        yield keeper.pid


@contextlib.contextmanager
def _within(pid: int) -> Iterator[None]:
    """Have this thread in the network namespace of a process."""
    with OWN.open("rb") as own:
        with Path(f"/proc/{pid}/ns/net").open("rb") as other:
            _enter_by(other.fileno())
        try:
            yield
        finally:
            _enter_by(own.fileno())


def _enter_by(descriptor: int) -> None:
    """As `os.setns` of Python 3.12 does."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, 0):
        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")


def enter(pid: int) -> list[str]:
    """Return the words before a command that is to run in the network of a process."""
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]


def _ip(pid: int, words: str) -> None:
    subprocess.run([*enter(pid), "ip", *words.split()], check=True, capture_output=True)
