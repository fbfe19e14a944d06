"""A git server over HTTP on loopback: git's own `http-backend`, behind a name and a token."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class GitSite:
    """Repositories by their paths, such as `/harbor/harb.git`; each wants `token` as password."""

    repositories: dict[str, Path]
    token: str
    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The path and the password of each request, '' for none."""


class Handler(BaseHTTPRequestHandler):
    site: GitSite

    def _serve(self) -> None:
        split = urlsplit(self.path)
        password = _password(self.headers.get("authorization", ""))
        self.site.asked.append((split.path, password))
        name = next((one for one in self.site.repositories if split.path.startswith(one)), None)
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if name is None or password != self.site.token:
            self.send_response_only(404 if name is None else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        bare = self.site.repositories[name]
        env = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"],
            "GIT_PROJECT_ROOT": str(bare),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": unquote(split.path.removeprefix(name)),
            "QUERY_STRING": split.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            "REMOTE_USER": "ada",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response_only(int(headers.pop("Status", "200").split()[0]))
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _password(header: str) -> str:
    if not header.startswith("Basic "):
        return ""
    return base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")[2]


@contextlib.contextmanager
def serving_git(repositories: dict[str, Path], token: str) -> Iterator[GitSite]:
    """Serve until the end of the block."""
    site = GitSite(repositories, token)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"site": site}))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
