"""Ports for programs that cannot take a free one themselves, or must say theirs beforehand."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that the kernel gives to connections, and to who asks for any: ip(7)."""
FIRST, LEAST = 10000, 1000
"""Where we begin, and how many we choose from, even where a machine leaves none to us."""
APART = 101
"""Between those that two processes begin with."""

_asked = itertools.count()


def find_free_port(address: str = "127.0.0.1") -> int:
    """Return a port that is free, and that the kernel does not give to a connection meanwhile."""
    count = max(int(GIVEN.read_text().split()[0]) - FIRST, LEAST)
    start = os.getpid() * APART + next(_asked)
    for port in (FIRST + (start + step) % count for step in range(count)):
        with contextlib.suppress(OSError), socket.create_server((address, port)):
            return port
    raise AssertionError(f"no free port from {FIRST} on")
