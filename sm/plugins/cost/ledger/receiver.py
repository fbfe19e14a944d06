"""The receiver of what agents tell of their requests: a small HTTP server on loopback.

Any process of the machine can connect: without the secret nothing is read but the request's head,
and that for a few seconds only, as few are heard at once. It ends when no agent is left that was
told of it.
"""

from __future__ import annotations

import contextlib
import hmac
import re
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from sm.adapters import procfs
from sm.base.clock import Deadline
from sm.base.errors import SmError
from sm.plugins.cost.folder import find_folder
from sm.plugins.cost.ledger import otlp
from sm.plugins.cost.ledger.entries import Ledger, Owner, open_ledger
from sm.plugins.cost.ledger.intake import make_owner
from sm.plugins.cost.ledger.telemetry import ENDPOINT, Address, read_address
from sm.sessions import registry
from sm.store import lock
from sm.store.paths import Root

LOOK_S, GRACE = 20.0, 3
"""How often it is looked for agents, and how often in vain before it ends."""
LARGEST = 4 * 1024 * 1024
"""Bytes of an export; one of 57 kB told of the requests of ten seconds."""
AT_ONCE, PATIENCE_S = 8, 10.0
"""How many are heard at once, and how long one that has not shown the secret."""
LENGTH = re.compile(r"[0-9]{1,10}", re.ASCII)
OK = b"{}"


class Receiver(ThreadingMixIn, TCPServer):
    """The server of one state root; `listener` is bound already."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, root: Root, ledger: Path, address: Address, listener: socket.socket) -> None:
        """Listen where the agents were told."""
        super().__init__(listener.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.root, self.ledger, self.address = root, ledger, address
        self.room = threading.BoundedSemaphore(AT_ONCE)
        self._strangers: dict[Any, Deadline] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hear it in a thread of its own, if there is room."""
        if not self.room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._strangers[request] = Deadline(PATIENCE_S)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Hear it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def _forget(self, request: Any) -> None:
        self._strangers.pop(request, None)
        self.room.release()

    def trust(self, request: Any) -> None:
        """Go on hearing one that has shown the secret."""
        self._strangers.pop(request, None)

    def service_actions(self) -> None:
        """Break off the others in time: a byte now and then would keep their place for ever."""
        for request in [one for one, deadline in [*self._strangers.items()] if deadline.is_over]:
            self._strangers.pop(request, None)
            with contextlib.suppress(OSError):  # it has just ended
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who breaks off, or sends what is no HTTP, is not heard."""

    def enter(self, body: bytes) -> None:
        """Enter the requests of an export."""
        with open_ledger(self.ledger) as ledger:
            for session, entries in otlp.read(body):
                ledger.enter_told(_find_owner(self.root, ledger, session), entries)


def _find_owner(root: Root, ledger: Ledger, name: str) -> Owner:
    """Whose they are, also once the session is gone."""
    with contextlib.suppress(SmError):
        if session := registry.find(root, name):
            return make_owner(session)
    known = ledger.list_files(name)
    return known[-1].owner if known else Owner(session=name, client="claude")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_S
    server: Receiver

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the address has the secret in it."""

    def do_POST(self) -> None:
        """Take an export."""
        right = f"/{self.server.address.secret}/v1/logs"
        if not hmac.compare_digest(self.path.encode(), right.encode()):
            self._answer(404)
            return
        self.server.trust(self.connection)
        size = self.headers.get("content-length", "")
        if not LENGTH.fullmatch(size):
            self._answer(411)
        elif int(size) > LARGEST:
            self._answer(413)
        else:
            try:
                self.server.enter(self.rfile.read(int(size)))
            except ValueError:
                self._answer(400)
            except SmError:
                self._answer(503)  # the client tries again
            else:
                self._answer(200)

    def _answer(self, status: int) -> None:
        self.close_connection = self.close_connection or status != 200
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(OK)))
        self.end_headers()
        self.wfile.write(OK)


def is_needed(address: Address) -> bool:
    """Whether a process runs that was told of it."""
    found = procfs.find_by_variable(ENDPOINT)
    return any(value == address.url for _, value in found)


def run(root: Root, ledger: Path, listener: socket.socket) -> None:
    """Receive for as long as it is needed, unless another one does."""
    with lock.try_hold(find_folder(root) / "telemetry.lock") as is_ours:
        address = read_address(root)
        if not is_ours or address is None:
            return
        with Receiver(root, ledger, address, listener) as receiver:
            threading.Thread(target=receiver.serve_forever, daemon=True).start()
            in_vain = 0
            waiting = threading.Event()
            while in_vain < GRACE:
                waiting.wait(LOOK_S)
                in_vain = 0 if is_needed(address) else in_vain + 1
            receiver.shutdown()


if __name__ == "__main__":
    run(Root(Path(sys.argv[1])), Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
