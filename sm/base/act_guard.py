"""What stands before each act that others can see: most often nothing.

A session that was placed by another installation may be overtaken by a later attempt at any time.
So whatever sends something (a request to a forge, a push, a message, a file that people read) calls
`before_act` in the last moment, and what knows whose attempt it is has set `guard_acts` around it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from sm.base.errors import SmError


class OvertakenError(SmError):
    """Another attempt has the issue: nothing more is done that others can see."""


Check = Callable[[], None]
"""Returns if the act may be done, and raises an error otherwise."""

GUARD: ContextVar[Check | None] = ContextVar("guard", default=None)


@contextlib.contextmanager
def guard_acts(check: Check | None) -> Iterator[None]:
    """Have `check` called before each act within the block."""
    token = GUARD.set(check)
    try:
        yield
    finally:
        GUARD.reset(token)


def before_act() -> None:
    """Say that in the next moment something is done that others can see.

    Raises:
        OvertakenError: it must not be done.
        TemporaryError: nobody can say now whether it may be done.

    """
    if check := GUARD.get():
        check()
