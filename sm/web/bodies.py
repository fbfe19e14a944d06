"""Reads the body of a request: JSON of a limited size, in a limited time, with a known shape."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from starlette.requests import Request

from sm.base import decoder
from sm.base.foreign import read_number
from sm.store.bounded import UnboundedError, check_json
from sm.web.answers import HttpError

T = TypeVar("T")

BODY_S = 10.0
"""Time that a body may take to arrive, in seconds."""


class Room:
    """Memory for bodies that anyone may send: a number of bytes that all of them share."""

    def __init__(self, size: int) -> None:
        """Begin with all of it free."""
        self._free = size

    @contextlib.contextmanager
    def share(self) -> Iterator[Share]:
        """Yield a share that grows with a body; it is given back at the end."""
        share = Share(self)
        try:
            yield share
        finally:
            self._free += share.size

    def take(self, size: int) -> None:
        """Take that number of bytes.

        Raises:
            HttpError: there are not so many (503).

        """
        if size > self._free:
            raise HttpError(503, "too much is being sent at the same time: try again")
        self._free -= size


class Share:
    """The part of a room that one body has."""

    def __init__(self, room: Room) -> None:
        """Begin with nothing taken."""
        self._room, self.size = room, 0

    def take(self, size: int) -> None:
        """Take that number of bytes more; HttpError if there is no room."""
        self._room.take(size)
        self.size += size


async def read(request: Request, limit: int, share: Share | None = None) -> bytes:
    """Read the whole body, within `share` if there is one.

    Raises:
        HttpError: its type is not JSON (415), it is above `limit` bytes (413), there is no room for
            it (503), or it does not arrive in time (408).

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(415, "the body has to be JSON: send 'Content-Type: application/json'")
    length = request.headers.get("content-length", "")
    if length and ((size := read_number(length)) is None or size > limit):
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_S):
            return await _collect(request, limit, share)
    except TimeoutError as error:
        raise HttpError(408, f"the body did not arrive in {BODY_S:g} s") from error


async def _collect(request: Request, limit: int, share: Share | None) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if share:
            share.take(len(part))
    return b"".join(parts)


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"the body is above {limit:,} bytes")


def decode(body: bytes, shape: type[T]) -> T:
    """Return the value of that shape.

    Raises:
        HttpError: it is no JSON (400), or has another shape (422).

    """
    try:
        return decoder.decode(check_json(body), shape)
    except msgspec.ValidationError as error:
        raise HttpError(422, f"the body is not as it has to be: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, UnboundedError) as error:
        raise HttpError(400, f"the body is no JSON: {error}") from error


def convert(query: Mapping[str, str], shape: type[T]) -> T:
    """Return the query of an address, after its `?`, as a value of that shape.

    Raises:
        HttpError: it has another shape (422).

    """
    try:
        return decoder.convert(dict(query), shape, strict=False)
    except msgspec.ValidationError as error:
        raise HttpError(422, f"the query is not as it has to be: {error}") from error
