"""What stands in for the hosts that Claude Code greets before its first questions of all.

Without an answer of theirs it ends at once. Its proxy is told by HTTPS_PROXY.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.forges.server import LOOPBACK, make_certificate, speak_tls

HOSTS = ("api.anthropic.com", "platform.claude.com")
"""Whom 2.1.332 asks for `/api/hello` and `/v1/oauth/hello`."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
HELLO = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
END = b"\r\n\r\n"


@contextmanager
def greet(folder: Path) -> Iterator[dict[str, str]]:
    """Answer those hosts' greetings, and nothing else; yield the variables of such a client."""
    certificate = make_certificate(folder, ",".join(f"DNS:{host}" for host in HOSTS))
    with socket.create_server((LOOPBACK, 0)) as server:
        threading.Thread(target=_serve, args=(server, speak_tls(certificate)), daemon=True).start()
        yield {
            "HTTPS_PROXY": f"http://{LOOPBACK}:{server.getsockname()[1]}",
            "NO_PROXY": LOOPBACK,
            "NODE_EXTRA_CA_CERTS": str(certificate),
        }
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, tls: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = server.accept()
            threading.Thread(target=_answer, args=(client, tls), daemon=True).start()


def _answer(client: socket.socket, tls: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError), client:
        client.settimeout(10)
        _read_head(client)
        client.sendall(ESTABLISHED)
        with tls.wrap_socket(client, server_side=True) as inside:
            if b"/hello" in _read_head(inside):
                inside.sendall(HELLO)


def _read_head(client: socket.socket) -> bytes:
    head = b""
    while END not in head and (more := client.recv(4096)):
        head += more
    return head.partition(b"\r\n")[0]
