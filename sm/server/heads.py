"""The head of a request: what has to hold before any name or path in it is believed.

The parser beneath reads what the grammar allows. Two readers of one request must not understand
different things by it, so what can be read in two ways is refused here (CWE-444).
"""

from __future__ import annotations

import h11

HEAD_LIMIT = 16 * 1024
"""Bytes, from the method to the empty line."""
SINGLE = (b"authorization", b"content-type", b"origin")
"""What the answer depends on; of 'Host' and 'Content-Length' the parser beneath sees to it."""
TOO_LARGE = f"the head is above {HEAD_LIMIT:,} bytes"


class HeadError(h11.RemoteProtocolError):
    """A head that is refused, and why; with the status for the answer."""


class Parser(h11.Connection):
    """HTTP/1.1 as the server's end hears it, with heads that hold to these rules."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        super().__init__(h11.SERVER, HEAD_LIMIT)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What comes next.

        Raises:
            h11.RemoteProtocolError: it cannot be understood; with the status for the answer.

        """
        if self.their_state is not h11.IDLE:
            return super().next_event()
        # The limit beneath is for a head that is still incomplete: one that comes in a single
        # piece would pass it.
        before = len(self.trailing_data[0])
        event = super().next_event()
        if isinstance(event, h11.Request):
            check(event, before - len(self.trailing_data[0]))
        return event


def refusal(error: BaseException | None) -> tuple[int, str]:
    """Status and reason for what the parser stopped at."""
    status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
    if isinstance(error, HeadError):
        return status, str(error)
    return status, TOO_LARGE if status == 431 else "this is no HTTP that is understood here"


def check(head: h11.Request, size: int) -> None:
    """Refuse a head of `size` bytes that says too much, or can be read in two ways.

    Raises:
        HeadError: that is so.

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
