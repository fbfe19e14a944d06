"""Rights of a client: nothing, read, or act; by the token that it brings, or by who it is.

Each route says itself whether it acts. So a token that only reads can be given to a dashboard: a
route that acts refuses it, also one that is asked with GET.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import NamedTuple

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

PEER = "sm.peer"
"""Key of a scope for the user id at the other end of a Unix socket."""
ONLY_READS = "this token only reads: what acts needs the token of --token-file"


class Right(IntEnum):
    """Right of a client. Each includes those before it."""

    NOTHING = 0
    READ = 1
    ACT = 2


class Trust(Enum):
    """Clients that need no token."""

    ANYONE = "anyone who reaches the server"
    OWNER = "the user whose server it is, at the other end of a Unix socket, and root"
    NOBODY = "nobody"


class Tokens(NamedTuple):
    """The token of those who act, '' for none, and tokens of those who only read."""

    token: str = ""
    readers: tuple[str, ...] = ()


class Keys(Struct, frozen=True):
    """Keys of a server: the `token` of those who act, '' for none, and tokens that only read.

    These tokens are of the start; `look` returns those that count now, if they can change. `trust`
    says who needs none.
    """

    token: str = ""
    readers: tuple[str, ...] = ()
    trust: Trust = Trust.ANYONE
    look: Callable[[], Tokens] | None = None

    def find_brought(self, authorization: str) -> Right:
        """Return the right that the token in this header gives."""
        kind, _, brought = authorization.partition(" ")
        if kind.lower() != "bearer":
            return Right.NOTHING
        return self.find_secret(brought.strip())

    def find_secret(self, secret: str) -> Right:
        """Return the right of this token. It is compared with each, so time tells nothing."""
        token, readers = self.look() if self.look else (self.token, self.readers)
        known = [(token, Right.ACT), *((one, Right.READ) for one in readers)]
        given = secret.encode("utf-8", "surrogatepass")
        fits = [
            right
            for token, right in known
            if hmac.compare_digest(given, token.encode()) and token != ""
        ]
        return max(fits, default=Right.NOTHING)

    def find_trusted(self, scope: Scope) -> Right:
        """Return the right of whoever sends this without a token."""
        if self.trust is Trust.ANYONE:
            return Right.ACT
        if self.trust is Trust.OWNER and scope.get(PEER) in (os.geteuid(), 0):
            return Right.ACT
        return Right.NOTHING

    def find_right(self, scope: Scope) -> Right:
        """Return the right of whoever sends this, by the token in it or by who it is."""
        brought = self.find_brought(Headers(scope=scope).get("authorization", ""))
        return brought or self.find_trusted(scope)


class Declared(Struct, frozen=True):
    """A route, and whether it `acts`. None: not declared, so it counts as one that does.

    `decides`: what is behind it decides itself who may ask.
    """

    route: BaseRoute
    acts: bool | None
    decides: bool = False


NOTHING = Declared(BaseRoute(), acts=False)
"""Declaration for a request that no route answers."""


def find_answering(routes: Iterable[Declared], scope: Scope) -> Declared:
    """Return the declaration of the route that answers a request."""
    matching = (one for one in routes if one.route.matches(scope)[0] is Match.FULL)
    return next(matching, NOTHING)
