"""An HTTP server on loopback that answers as a function says, and fails where a test wants it."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

LOOPBACK = "127.0.0.1"
CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext"
)


def make_certificate(folder: Path, name: str = "DNS:localhost") -> Path:
    """A certificate that nobody trusts, with its key beside it."""
    made = folder / "certificate.pem"
    argv = [*CERTIFICATE.split(), f"subjectAltName={name}"]
    argv += ["-keyout", str(folder / "key.pem"), "-out", str(made)]
    subprocess.run(argv, check=True, capture_output=True)
    return made


def speak_tls(certificate: Path) -> ssl.SSLContext:
    """What a server with that certificate wraps its sockets by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


@dataclass(frozen=True)
class Asked:
    """A request as the server got it. The names of `headers` are in small letters."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body) if self.body else {}

    @property
    def line(self) -> str:
        """The request in a line."""
        return f"{self.method} {self.path}"


@dataclass
class Reply:
    """What it answers."""

    status: int = 200
    data: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        if self.raw is not None:
            return self.raw
        return b"" if self.data is None else json.dumps(self.data).encode()


@dataclass
class Fault:
    """Something that goes wrong with requests whose line has `part` in it, `times` times.

    Only with those of `method`, if one is named.

    `after`: the request is carried out, and only its answer is lost. `late_s`: the answer comes
    that late. `trickle_s`: so long it waits after each byte. `head_s`: the same of its head.
    `early`: so many times it says before that it has hints (RFC 8297). `cut`: it ends in the midst
    of its body. `garble`: half of its JSON is missing.
    """

    part: str = ""
    method: str = ""
    times: int = 1
    reply: Reply | None = None
    drop: bool = False
    after: bool = False
    cut: bool = False
    garble: bool = False
    late_s: float = 0.0
    trickle_s: float = 0.0
    head_s: float = 0.0
    early: int = 0

    def takes(self, asked: Asked) -> bool:
        """Whether it happens to this request; counts it."""
        is_meant = self.part in asked.line and self.method in ("", asked.method)
        if self.times < 1 or not is_meant:
            return False
        self.times -= 1
        return True


Respond = Callable[[Asked], Reply]


class Site:
    """The server: `asked` has every request, oldest first; `faults` go wrong in their order."""

    def __init__(
        self, respond: Respond, address: str = LOOPBACK, certificate: Path | None = None
    ) -> None:
        self.respond = respond
        self.asked: list[Asked] = []
        self.faults: list[Fault] = []
        self.clock: Callable[[], float] = time.time
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(
            (address, 0), type("Handler", (Handler,), {"site": self})
        )
        self._server.daemon_threads = True
        if certificate:  # each handshake in a thread of its own: a client may be cut off within
            plain, context = self._server.socket, speak_tls(certificate)
            self._server.socket = context.wrap_socket(
                plain, server_side=True, do_handshake_on_connect=False
            )
        place = f"{address}:{self._server.server_port}"
        self.url = f"https://{place}" if certificate else f"http://{place}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def lines(self, since: int = 0) -> list[str]:
        """The requests after the first `since`, each in a line."""
        return [asked.line for asked in self.asked[since:]]

    def answer(self, asked: Asked) -> tuple[Reply, Fault | None]:
        """The reply to one request, and what goes wrong with it."""
        with self._lock:
            self.asked.append(asked)
            fault = next((one for one in self.faults if one.takes(asked)), None)
            if fault and not fault.after and (fault.reply or fault.drop):
                return fault.reply or Reply(), fault
            reply = self.respond(asked)
            return (fault.reply if fault and fault.reply else reply), fault

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Handler(BaseHTTPRequestHandler):
    site: Site

    protocol_version = "HTTP/1.1"
    _headers_buffer: list[bytes]
    wbufsize = -1  # head and body in one packet: the second would wait 40 ms for the first one's

    def _serve(self) -> None:
        split = urlsplit(self.path)
        length = int(self.headers.get("content-length", "0"))
        asked = Asked(
            self.command,
            split.path,
            dict(parse_qsl(split.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
        )
        reply, fault = self.site.answer(asked)
        if fault and fault.drop:
            self._drop()
            return
        if fault and fault.late_s:
            time.sleep(fault.late_s)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._send(reply, fault or Fault())

    def _drop(self) -> None:
        """Close the connection as a dying server does, with a reset."""
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True

    def _send(self, reply: Reply, fault: Fault) -> None:
        body = reply.body[: len(reply.body) // 2] if fault.garble else reply.body
        for _ in range(fault.early):
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n")
        self.send_response_only(reply.status)
        headers = {"Content-Type": "application/json; charset=utf-8"} | reply.headers
        headers.setdefault("Date", formatdate(self.site.clock(), usegmt=True))
        for name, value in headers.items():
            self.send_header(name, value)
        if has_body := reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        if fault.head_s:
            self._trickle_head(fault.head_s)
        self.end_headers()
        if fault.trickle_s:
            self.close_connection = True
            self.wfile.flush()
        for byte in body if has_body and fault.trickle_s else b"":
            self.connection.sendall(bytes([byte]))
            time.sleep(fault.trickle_s)
        if has_body and not fault.trickle_s:
            self.wfile.write(body[: len(body) // 2] if fault.cut else body)
        if fault.cut:
            self._drop()

    def _trickle_head(self, pause_s: float) -> None:
        """Send what there is of the head byte by byte."""
        self.close_connection = True
        head = b"".join(self._headers_buffer)
        self._headers_buffer = []
        for byte in head:
            self.connection.sendall(bytes([byte]))
            time.sleep(pause_s)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing: a failed test shows what was asked."""


@contextlib.contextmanager
def serving(
    respond: Respond, address: str = LOOPBACK, certificate: Path | None = None
) -> Iterator[Site]:
    """Serve until the end of the block."""
    site = Site(respond, address, certificate)
    site.start()
    try:
        yield site
    finally:
        site.stop()
