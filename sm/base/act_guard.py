"""Guard before each act that others can see; none by default.

A later attempt may at any time overtake a session that another installation has placed. So
whatever sends something (a request to a forge, a push, a message, a file that people read) calls
`before_act` at the last moment, and the part that knows whose attempt it is has set `guard_acts`
around it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from sm.base.errors import SmError


class OvertakenError(SmError):
    """Another attempt has the issue: nothing more is done that others can see."""


Check = Callable[[], None]
"""Check of the guard: returns if the act may be done, and raises an error otherwise."""

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
    """Announce an act that others can see, right before it is done.

    Raises:
        OvertakenError: it must not be done.
        TemporaryError: nobody can say now whether it may be done.

    """
    if check := GUARD.get():
        check()
