"""A service that waits for heartbeats: it records them, and misbehaves when asked to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Watcher:
    """`status` and `answer` are what it answers, after `pause_s`; `heard` is a line a request."""

    port: int = 0
    status: int = 200
    answer: bytes = b"OK"
    pause_s: float = 0.0
    heard: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address, as healthchecks.io has such."""
        return f"http://127.0.0.1:{self.port}/5bf66975-secret"


@contextmanager
def watch() -> Iterator[Watcher]:
    """A watcher on a port of its own, until the end of the block."""
    watcher, ended = Watcher(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            watcher.heard.append(f"{self.command} {self.path} {body}".rstrip())
            ended.wait(watcher.pause_s)
            with suppress(OSError):
                self.send_response(watcher.status)
                self.end_headers()
                self.wfile.write(watcher.answer)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    watcher.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield watcher
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
