"""Two network namespaces with a cable between them, which can be cut.

The test, and what it starts, is at the near end; a machine is at the far end. Nothing of it is in
the network of the machine that the test runs on. The namespaces have no names: each lives as long
as a process in it, and the first of these ends with the test, however that ends.

Cut, the cable is a black hole: no packet comes through, and nobody is told, as where a switch in
between has died. A link that is down would refuse new connections at once. So each end then sends
to a hardware address that nobody has; the other end drops what is not for it (veth(4), arp(7)).
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import wait_for

MISSING = "network namespaces cannot be made here"
NAME = "cable"
NEAR, FAR, BESIDE = "192.0.2.1", "192.0.2.2", "192.0.2.3"
"""Addresses for examples (RFC 5737). `BESIDE` is at the near end, too, like a third machine."""
NEAR_HARDWARE, FAR_HARDWARE, NOBODY = (f"02:00:00:00:00:{end}" for end in ("01", "02", "99"))
OWN = Path("/proc/thread-self/ns/net")


class Cable:
    """Made by `strung`."""

    def __init__(self, near: int, far: int) -> None:
        """String it between the namespaces of two processes."""
        self._near, self._far = near, far
        ends = (
            f"link add {NAME} address {NEAR_HARDWARE} type veth"
            f" peer name {NAME} address {FAR_HARDWARE} netns {far}"
        )
        _ip(near, ends)
        for pid, addresses in ((near, (NEAR, BESIDE)), (far, (FAR,))):
            _ip(pid, "link set lo up")
            for address in addresses:
                _ip(pid, f"address add {address}/24 dev {NAME}")
            _ip(pid, f"link set {NAME} up")
        self.join()

    @property
    def entry(self) -> list[str]:
        """What a command line begins with that is to run at the far end."""
        return _enter(self._far)

    def cut(self) -> None:
        """Have nothing come through in either direction."""
        _send(self._near, FAR, NOBODY)
        self.cut_from(NEAR, BESIDE)

    def cut_from(self, *addresses: str) -> None:
        """Have nothing come through from the far end to these of the near one."""
        for address in addresses:
            _send(self._far, address, NOBODY)

    def join(self) -> None:
        """Have all of it come through."""
        _send(self._near, FAR, FAR_HARDWARE)
        for address in (NEAR, BESIDE):
            _send(self._far, address, NEAR_HARDWARE)


@contextlib.contextmanager
def strung() -> Iterator[Cable]:
    """Have this thread, and what it starts, at the near end of a cable.

    Skips the test where namespaces cannot be made.
    """
    with _namespace() as near, _namespace() as far:
        try:
            cable = Cable(near, far)
        except (FileNotFoundError, subprocess.CalledProcessError):
            pytest.skip(MISSING)
        with _within(near):
            yield cable


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


def _enter(pid: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]


def _send(pid: int, address: str, hardware: str) -> None:
    """Have what a namespace sends to an address go to that hardware."""
    _ip(pid, f"neighbour replace {address} lladdr {hardware} dev {NAME} nud permanent")


def _ip(pid: int, words: str) -> None:
    subprocess.run([*_enter(pid), "ip", *words.split()], check=True, capture_output=True)
