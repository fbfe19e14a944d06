"""A service that people are told by: it records what it hears, and misbehaves when asked to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sm.adapters import process


@dataclass
class Service:
    """`status` is what it answers, after `pause_s`; `heard` what it was sent, and when."""

    port: int = 0
    status: int = 200
    pause_s: float = 0.0
    heard: list[dict[str, Any]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address as apprise has it."""
        return f"json://127.0.0.1:{self.port}"

    @property
    def ntfy_url(self) -> str:
        """Its address as that of an ntfy server."""
        return f"ntfy://127.0.0.1:{self.port}/topic"

    def read(self) -> list[str]:
        """Title and text of each message."""
        return [f"{one['title']}\n{one['message']}" for one in self.heard]


@contextmanager
def serve() -> Iterator[Service]:
    """A service on a port of its own, until the end of the block."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            service.at.append(time.time())
            service.heard.append(json.loads(body))
            if service.pause_s:
                ended.wait(service.pause_s)
            with suppress(OSError):
                self.send_response(service.status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def end_notifiers() -> None:
    """End every notifier that this process has started."""
    for started in process._spawned:
        if "notifier" in str(started.args):
            started.kill()
            started.wait()
