"""Ports for programs that cannot take a free one themselves, or must say theirs beforehand."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From which on the kernel gives ports to connections, and to who asks for any."""
FIRST = 10000


def find_free_port(address: str = "127.0.0.1") -> int:
    """Return one that the kernel gives to nobody until it is taken."""
    end = int(GIVEN.read_text().split()[0])
    for port in random.SystemRandom().sample(range(FIRST, end), 100):
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    raise AssertionError(f"no free port from {FIRST} to {end}")
