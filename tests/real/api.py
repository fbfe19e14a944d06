"""A Messages API on loopback: its model says what a test wants, and it keeps all that it heard.

The client sends its main requests with tools; titles, summaries and other side requests come
without any, or ask for a summary, and are answered by themselves. Codex is answered as well.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.real import responses
from tests.real.wire import (
    ERROR_TYPES,
    Failure,
    Kind,
    Reply,
    Tool,
    Turn,
    Usage,
    count,
    events,
    kind_of,
    message,
    texts_of,
)

__all__ = ["Api", "Failure", "Kind", "Reply", "Request", "Spent", "Tool", "Turn", "Usage"]

SUMMARY = "<summary>The story so far, in a word.</summary>"


@dataclass(frozen=True)
class Request:
    """A request to the model: what it asked, and when it came (seconds, monotonic)."""

    body: dict[str, Any]
    headers: dict[str, str]
    at_s: float
    kind: Kind

    @property
    def session(self) -> str:
        """The client's own id of the conversation."""
        named = self.headers.get("x-claude-code-session-id")
        return named or self.headers.get("session-id", "")

    @property
    def texts(self) -> list[str]:
        """Every text of the messages, tool results included, in order."""
        return [text for message in self.body["messages"] for text in texts_of(message["content"])]

    @property
    def said(self) -> list[str]:
        """The texts of the user's messages, without tool results."""
        mine = (one["content"] for one in self.body["messages"] if one["role"] == "user")
        return [text for content in mine for text in texts_of(content, results=False)]

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(texts_of(self.body.get("system", "")))

    def appearances(self, text: str) -> int:
        """How often exactly `text` stands in the messages."""
        return sum(one.count(text) for one in self.texts)


@dataclass(frozen=True)
class Spent:
    """What a request has used, as the API counts it; of one that was cut off, `whole` is False."""

    request: str
    kind: Kind
    model: str
    usage: Usage
    whole: bool


Model = Callable[[Request], Turn]


class Api:
    """The service; `with Api() as api:` runs it.

    The next main request gets the first of `turns` (those of its own conversation first), or
    what `model` returns when there is none.
    """

    def __init__(self) -> None:
        """Take a free port; nothing is answered before `up`."""
        self.turns: deque[Turn] = deque()
        self.turns_of: defaultdict[str, deque[Turn]] = defaultdict(deque)
        self.model: Model = lambda _request: Reply()
        self.seen: list[Request] = []
        self.spent: list[Spent] = []
        self.side_tokens, self.searches = 1000, 0
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.port = 0
        self.up()

    @property
    def url(self) -> str:
        """The address for ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Api:
        """Run."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """End every connection."""
        self.down()

    def up(self) -> None:
        """Listen, on the port of before."""
        if self._server is None:
            self._server = _Server(self)
            self.port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and break those there are."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @contextmanager
    def also_on(self, heard: socket.socket) -> Iterator[None]:
        """Answer on this listening socket as well."""
        server = _Server(self, heard)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()

    def break_off(self) -> None:
        """Break the connections there are; new ones are heard."""
        assert self._server
        for connection in list(self._server.open):
            self._server.shutdown_request(connection)

    def forget(self) -> None:
        """Begin as a new one: nothing was asked, and nothing is to be said."""
        with self._lock:
            self.seen.clear()
            self.turns.clear()
            self.turns_of.clear()
            self.model = lambda _request: Reply()

    def say(self, *turns: Turn | str, session: str = "") -> None:
        """Queue what the model does next, in one conversation or in whichever asks first."""
        queue = self.turns_of[session] if session else self.turns
        queue.extend(Reply(turn) if isinstance(turn, str) else turn for turn in turns)

    @property
    def main(self) -> list[Request]:
        """The main requests so far."""
        with self._lock:
            return [request for request in self.seen if request.kind is Kind.MAIN]

    def appearances(self, text: str) -> int:
        """How often exactly `text` stands in the messages of the last main request."""
        main = self.main
        return main[-1].appearances(text) if main else 0

    def take(self, request: Request) -> Turn:
        """Keep the request; returns the answer to it."""
        with self._lock:
            self.seen.append(request)
            if request.kind is Kind.COMPACTION:
                return Reply(SUMMARY, tokens=self.side_tokens)
            if request.kind is Kind.SIDE and "Perform a web search" in "".join(request.said):
                return Reply("Found.", tokens=self.side_tokens, searches=self.searches)
            if request.kind is Kind.SIDE:
                return Reply('{"title": "A test"}', tokens=self.side_tokens)
            for queue in (self.turns_of[request.session], self.turns):
                if queue and request.kind is Kind.MAIN:
                    return queue.popleft()
        return self.model(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, api: Api, heard: socket.socket | None = None) -> None:
        self.api = api
        self.open: set[Any] = set()
        super().__init__(("127.0.0.1", api.port), _Handler, bind_and_activate=not heard)
        if heard:
            self.socket.close()
            self.socket = heard

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.open):
            self.shutdown_request(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes while it is answered is no error of the test's."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Keep a test's output clean."""

    def do_HEAD(self) -> None:
        self._plain(200, b"")

    def do_GET(self) -> None:
        self._plain(200, b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._plain(200, b'{"input_tokens": 1000}')
        elif path.endswith("/v1/messages"):
            body = json.loads(raw)
            kind = kind_of(body)
            self._answer(self._take(body, kind), body, kind)
        elif path.endswith("/v1/responses"):
            body = json.loads(raw)
            kind = responses.kind_of(body)
            turn = self._take(responses.translated(body), kind)
            self._answer(turn, body, kind, is_codex=True)
        else:
            self._plain(200, b"{}")

    def _take(self, body: dict[str, Any], kind: Kind) -> Turn:
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.server.api.take(Request(body, headers, time.monotonic(), kind))

    def _answer(
        self, turn: Turn, body: dict[str, Any], kind: Kind, *, is_codex: bool = False
    ) -> None:
        request = f"req_{time.monotonic_ns():x}"
        headers = {"request-id": request, **turn.headers}
        if isinstance(turn, Failure):
            error_type = ERROR_TYPES.get(turn.status, "api_error")
            error = {"type": "error", "error": {"type": error_type, "message": turn.message}}
            self._plain(turn.status, json.dumps(error).encode(), headers)
            return
        is_whole = False
        try:
            if is_codex:
                self._stream(responses.events(turn), headers)
            elif body.get("stream"):
                self._stream(events(turn, body["model"]), headers)
            else:
                self._plain(200, json.dumps(message(turn, body["model"])).encode(), headers)
            is_whole = True
        finally:
            spent = Spent(headers["request-id"], kind, body["model"], count(turn), is_whole)
            self.server.api.spent.append(spent)

    def _plain(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: Iterator[dict[str, Any]], headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", **headers}.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")
