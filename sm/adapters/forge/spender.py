"""Sender of a forge's requests: a forge with a limit has them counted for who sends them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

SPENDER: ContextVar[str] = ContextVar("spender", default="")
"""Session for which requests are sent now, '' if it is for all of them."""


@contextlib.contextmanager
def spend_for(session: str) -> Iterator[None]:
    """Have the requests within the block count for that session."""
    token = SPENDER.set(session)
    try:
        yield
    finally:
        SPENDER.reset(token)
