"""Transport of a request: certificates, one deadline for all of it, a bound for an answer's head.

The library's own limits are for each read alone: a server that sends a byte a second, or answers
"100 Continue" without end, keeps them all. So each read and write of an exchange gets no more time
than is left of it. Imported late: it needs the library.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore2
import httpx2
from httpcore2 import NetworkBackend, NetworkStream

from sm.base import at_hand
from sm.base.act_guard import before_act
from sm.base.clock import Deadline

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables that name others than those of the machine; the first one is preferred."""


def load_certificates() -> ssl.SSLContext:
    """Return what connections are checked by. To read it takes longer than most requests."""
    named = [os.environ.get(name, "") for name in CERTIFICATES]
    at_hand.note(f"{__name__}:{read_certificates.__name__}", *named)
    return _load(*named)


def read_certificates(*named: str) -> tuple[str, ...]:
    """Read the certificates that `load_certificates` is to find; return the files and folders.

    `named` are the values of the variables. The environment must be ours to change: this is a
    server of passes.
    """
    for name, value in zip(CERTIFICATES, named, strict=True):
        os.environ.pop(name, None)  # OpenSSL takes an empty one for a name
        if value:
            os.environ[name] = value
    _load(*named)
    paths = ssl.get_default_verify_paths()
    return tuple(filter(None, named)) or (paths.openssl_cafile, paths.openssl_capath)


@cache
def _load(_file: str, _folder: str) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


HEAD_LIMIT = 1024 * 1024
"""Bytes that may come before the body, together with "100 Continue" and its like."""


class Exchange:
    """A request and its answer, which must be over within `seconds`."""

    def __init__(self, seconds: float, *, changes: bool = False) -> None:
        """Begin now; `changes` says that the request changes something."""
        self.changes = changes
        self.seconds = seconds
        self.deadline = Deadline(seconds)
        self.head_left: int | None = HEAD_LIMIT
        """None once the head has come."""

    def limit(self, timeout: float | None) -> float:
        """Return the seconds that the next step may take.

        Raises:
            ReadTimeout: no time is left.

        """
        left = self.deadline.left_s
        if not left:
            raise httpcore2.ReadTimeout(f"not all of it came within {self.seconds:g} s")
        return left if timeout is None else min(timeout, left)

    def count(self, data: bytes) -> None:
        """Note what has come of the head.

        Raises:
            RemoteProtocolError: it is too long.

        """
        if self.head_left is None:
            return
        self.head_left -= len(data)
        if self.head_left < 0:
            raise httpcore2.RemoteProtocolError(f"its head is longer than {HEAD_LIMIT:,} bytes")


CURRENT: ContextVar[Exchange] = ContextVar("exchange")


@contextlib.contextmanager
def exchange(seconds: float, *, changes: bool = False) -> Iterator[Exchange]:
    """Have what is sent and received within the block be one exchange."""
    token = CURRENT.set(Exchange(seconds, changes=changes))
    try:
        yield CURRENT.get()
    finally:
        CURRENT.reset(token)


class _Stream(NetworkStream):
    def __init__(self, inner: NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        current = CURRENT.get()
        try:
            found = self._inner.read(max_bytes, current.limit(timeout))
        except httpcore2.ReadTimeout:
            current.limit(timeout)  # which says so if it was the deadline
            raise
        current.count(found)
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        current = CURRENT.get()
        if current.changes:
            before_act()
        self._inner.write(buffer, current.limit(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> NetworkStream:
        limit = CURRENT.get().limit(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(NetworkBackend):
    def __init__(self, inner: NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        limit = CURRENT.get().limit(timeout)
        return _Stream(self._inner.connect_tcp(host, port, limit, local_address, socket_options))

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        limit = CURRENT.get().limit(timeout)
        return _Stream(self._inner.connect_unix_socket(path, limit, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


def guard(http: httpx2.Client) -> httpx2.Client:
    """`http`, whose requests must be sent within an `exchange`, directly or by a proxy.

    The library takes a backend for its pools, and its client does not hand one on: in httpx2 2.16
    `HTTPTransport` has no parameter for it. What is documented instead does not reach far enough:
    a `timeout` is for each read, and the extension `trace` is not told of single reads.
    """
    for transport in (http._transport, *http._mounts.values()):
        if isinstance(transport, httpx2.HTTPTransport):
            pool = transport._pool
            pool._network_backend = _Backend(pool._network_backend)
    return http
