"""Checks the head of a request before sm trusts a name or a path in it.

The parser beneath reads what the grammar allows. Two readers must not understand one request
differently, so an ambiguous head is refused here (CWE-444).
"""

from __future__ import annotations

import h11

HEAD_LIMIT = 16 * 1024
"""Bytes, from the method to the empty line."""
SINGLE = (b"authorization", b"content-type", b"origin")
"""The answer depends on these. The parser beneath checks 'Host' and 'Content-Length'."""
TOO_LARGE = f"the head is above {HEAD_LIMIT:,} bytes"


class HeadError(h11.RemoteProtocolError):
    """A refused head, the reason, and the status for the answer."""


class Parser(h11.Connection):
    """HTTP/1.1 from the server's side, with these rules for heads."""

    def __init__(self) -> None:
        """Begin without any data."""
        super().__init__(h11.SERVER, HEAD_LIMIT)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: the data is invalid; the error has the status for the answer.

        """
        if self.their_state is not h11.IDLE:
            return super().next_event()
        # The limit beneath applies to incomplete heads. A head that comes in a single piece would
        # pass it.
        before = len(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            check(event, before - len(self.trailing_data[0]))
        return event


def explain_refusal(error: BaseException | None) -> tuple[int, str]:
    """Return status and reason for the error of the parser."""
    status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
    if isinstance(error, HeadError):
        return status, str(error)
    return status, TOO_LARGE if status == 431 else "this is no HTTP that is understood here"


def check(head: h11.Request, size: int) -> None:
    """Refuse a head of `size` bytes that is too large or ambiguous.

    Raises:
        HeadError: it is one of these.

    """
    names = [name for name, _ in head.headers]
    if size > HEAD_LIMIT:
        raise HeadError(TOO_LARGE, 431)
    if head.http_version[:1] != b"1":
        raise HeadError("only HTTP/1.1 is spoken here", 505)
    if head.target[:1] != b"/":
        raise HeadError("this is no proxy: ask for a path, which begins with '/'")
    if b"content-length" in names and b"transfer-encoding" in names:
        raise HeadError("'Content-Length' and 'Transfer-Encoding' exclude each other")
    for name in SINGLE:
        if names.count(name) > 1:
            raise HeadError(f"'{name.decode().title()}' may be there only once")
