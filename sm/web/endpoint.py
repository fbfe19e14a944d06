"""Endpoints: one method and path, what answers it, and the shapes of its body and its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sm.sessions.machine import Machine
from sm.store.paths import Root

KIB = 1024
B = TypeVar("B")


class Call(Struct, Generic[B], frozen=True):
    """A request: `ident` from the path, `body`, and the JSON of the body, if there is one."""

    machine: Machine
    ident: str
    body: B
    raw: bytes = b""

    @property
    def root(self) -> Root:
        """The root of the sessions' state."""
        return self.machine.root


class Endpoint(Struct, frozen=True):
    """An endpoint. `limit`: bytes of its body; `errors`: the statuses of its refusals.

    A `slow` one works on terminals and forges: few run at a time in each `pool`. A `signed` one
    takes a webhook, whose body is checked by its signature before it is read. `status`: of success.
    One without a body may have a `query`, whose keys all have defaults; it is the call's body then.

    `acts`: whether it changes anything. A token that only reads is refused unless this is False.
    """

    method: str
    path: str
    act: Callable[[Call[Any]], Struct]
    summary: str
    answer: type[Struct]
    body: type[Struct] | None = None
    limit: int = 64 * KIB
    errors: tuple[int, ...] = ()
    slow: bool = False
    pool: Callable[[Call[Any]], str] = lambda call: call.ident
    signed: bool = False
    status: int = 200
    query: type[Struct] | None = None
    acts: bool | None = None
