"""Receiver of what agents tell of their requests: a small HTTP server on loopback.

Any process of the machine can connect: without the secret nothing is read but the request's head,
and that for a few seconds only, as few are heard at once. It ends when no agent is left that was
told of it.

It reads OpenTelemetry logs (`http/json`). Measured with Claude Code 2.1.332: one `api_request` for
each request that was answered, compactions (`query_source` is `compact`) and its own small requests
among them, with the `requestId` of the transcript. An answer that was cut off, and a try that
failed, are in none. Nor are searches of the web: `cost_usd` has their fee, and the transcript their
number.
"""

from __future__ import annotations

import contextlib
import hmac
import re
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

import msgspec
from msgspec import Struct, field

from sm.adapters import procfs
from sm.base.clock import Deadline
from sm.base.decoder import find_decoder
from sm.base.errors import SmError
from sm.base.foreign import read_time
from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, open_ledger
from sm.plugins.cost.ledger.intake import make_owner
from sm.plugins.cost.ledger.records.record import MOST, AgentKind, LedgerEntry, Tokens
from sm.plugins.cost.ledger.telemetry import ENDPOINT, Address, read_address
from sm.plugins.cost.settings import SESSION, find_folder
from sm.sessions import registry
from sm.store import lock
from sm.store.paths import Root

REQUEST = "claude_code.api_request"
MAIN, COMPACT = "repl_main_thread", "compact"
SOURCES = {
    "web_search_tool": AgentKind.SEARCH,
    "web_fetch_apply": AgentKind.FETCH,
    "side_question": AgentKind.ASIDE,
    "away_summary": AgentKind.ASIDE,
    "generate_session_title": AgentKind.TITLE,
}
"""Requests that the client makes by itself, and its record has a trace of."""


class _Value(Struct, frozen=True, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None


class _Attribute(Struct, frozen=True):
    key: str = ""
    value: _Value = _Value()


class _Record(Struct):
    body: _Value = _Value()
    attributes: list[_Attribute] = []


class _Scope(Struct, rename="camel"):
    log_records: list[_Record] = []


class _Resource(Struct, frozen=True):
    attributes: tuple[_Attribute, ...] = ()


class _Logs(Struct, rename="camel"):
    resource: _Resource = _Resource()
    scope_logs: list[_Scope] = []


class _Export(Struct):
    logs: list[_Logs] = field(name="resourceLogs", default_factory=list)


_exports = find_decoder(_Export)


def read(body: bytes) -> Iterator[tuple[str, list[LedgerEntry]]]:
    """The requests that an export tells of, with the name of their session.

    Raises:
        ValueError: it is no export.

    """
    try:
        export = _exports.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError("no OpenTelemetry logs in JSON") from error
    for logs in export.logs:
        session = _collect(logs.resource.attributes).get(SESSION, "")
        records = (one for scope in logs.scope_logs for one in scope.log_records)
        told = (_collect(one.attributes) for one in records if one.body.string_value == REQUEST)
        if entries := [entry for one in told if (entry := _read_request(one))]:
            yield session, entries


def _collect(attributes: Iterable[_Attribute]) -> dict[str, str]:
    found = {}
    for one in attributes:
        values = (one.value.string_value, one.value.int_value, one.value.double_value)
        found[one.key] = next((str(value) for value in values if value is not None), "")
    return found


def _read_request(told: dict[str, str]) -> LedgerEntry | None:
    """A request; None without an id, by which alone it is known."""
    try:
        written = _count(told, "cache_creation_tokens")
        an_hour = _count(told, "cache_creation_1h_tokens")
        tokens = Tokens(
            _count(told, "input_tokens"),
            _count(told, "output_tokens"),
            _count(told, "cache_read_tokens"),
            max(written - an_hour, 0),
            an_hour,
        )
        at = read_time(told.get("event.timestamp", ""))
    except ValueError:
        return None
    if not told.get("request_id"):
        return None
    fast = " [fast]" if told.get("speed") == "fast" else ""
    return LedgerEntry(
        key=told["request_id"],
        at=at,
        context=told.get("session.id", ""),
        agent=_find_agent(told),
        model=told.get("model", "") + fast,
        tokens=tokens,
    )


def _count(told: dict[str, str], name: str) -> int:
    count = int(told.get(name) or 0)
    if not 0 <= count <= MOST:
        raise ValueError(f"{name} is no count of tokens")
    return count


def _find_agent(told: dict[str, str]) -> AgentKind:
    source = told.get("query_source", "")
    if source.startswith(COMPACT):
        return AgentKind.COMPACTION
    if source in SOURCES:
        return SOURCES[source]
    if told.get("agent_id") or source.startswith("agent:"):
        return AgentKind.SUBAGENT
    return AgentKind.MAIN if source.startswith(MAIN) else AgentKind.OTHER


LOOK_S, GRACE = 20.0, 3
"""Seconds between looks for agents, and looks in vain before it ends."""
LARGEST = 4 * 1024 * 1024
"""Bytes of an export; one of 57 kB told of the requests of ten seconds."""
AT_ONCE, PATIENCE_S = 8, 10.0
"""Connections at once, and seconds for one that has not shown the secret."""
LENGTH = re.compile(r"[0-9]{1,10}", re.ASCII)
OK = b"{}"


class TelemetryReceiver(ThreadingMixIn, TCPServer):
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
        """Ignore whoever breaks off, or sends what is no HTTP."""

    def enter(self, body: bytes) -> None:
        """Enter the requests of an export."""
        with open_ledger(self.ledger) as ledger:
            for session, entries in read(body):
                ledger.enter_told(_find_owner(self.root, ledger, session), entries)


def _find_owner(root: Root, ledger: CostLedger, name: str) -> EntryOwner:
    """Find the owner of requests, also once the session is gone."""
    with contextlib.suppress(SmError):
        if session := registry.find(root, name):
            return make_owner(session)
    known = ledger.list_files(name)
    return known[-1].owner if known else EntryOwner(session=name, client="claude")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE_S
    server: TelemetryReceiver

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
        with TelemetryReceiver(root, ledger, address, listener) as receiver:
            threading.Thread(target=receiver.serve_forever, daemon=True).start()
            in_vain = 0
            waiting = threading.Event()
            while in_vain < GRACE:
                waiting.wait(LOOK_S)
                in_vain = 0 if is_needed(address) else in_vain + 1
            receiver.shutdown()


if __name__ == "__main__":
    run(Root(Path(sys.argv[1])), Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
