"""Rights of a client: nothing, read, or act; by the token that it brings, or by who it is.

Each route says itself whether it acts. So a token that only reads can be given to a dashboard: a
route that acts refuses it, also one that is asked with GET.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from sm.base.errors import UsageError
from sm.base.output import warn
from sm.store.files import Stamp, find_stamp
from sm.web.address import read_readers, read_secret

PEER = "sm.peer"
"""Key of a scope for the user id at the other end of a Unix socket."""
ONLY_READS = "this token only reads: what acts needs the token of --token-file"
YOUNG_NS = 1_000_000_000
"""Age below which a file with tokens is read each time, in nanoseconds."""
T = TypeVar("T")


class Right(IntEnum):
    """Right of a client. Each includes those before it."""

    NOTHING = 0
    READ = 1
    ACT = 2


class Tokenless(Enum):
    """Clients that need no token."""

    ANYONE = "anyone who reaches the server"
    OWNER = "the user whose server it is, at the other end of a Unix socket, and root"
    NOBODY = "nobody"


class ServerTokens(NamedTuple):
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
    trust: Tokenless = Tokenless.ANYONE
    look: Callable[[], ServerTokens] | None = None

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
        if self.trust is Tokenless.ANYONE:
            return Right.ACT
        if self.trust is Tokenless.OWNER and scope.get(PEER) in (os.geteuid(), 0):
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


class TokenFiles:
    """The files of `--token-file` and `--read-token-file`, as they are now, not at the start.

    A line that is removed lets nobody in any more, from the next request on. A file that is gone,
    or cannot be used, has no token until it is right again.
    """

    def __init__(self, token: str, file: Path | None, readers_file: Path | None) -> None:
        """Read nothing yet; `token` is the one that acts if there is no file for it."""
        self._token, self._file, self._readers_file = token, file, readers_file
        self._tokens, self._stamps = ServerTokens(), list[Stamp]()
        self._told, self._said = set[str](), set[str]()

    def read(self) -> ServerTokens:
        """Return the tokens of the files, which are read again only when one has changed."""
        files = (one for one in (self._file, self._readers_file) if one)
        if (stamps := [find_stamp(one) for one in files]) != self._stamps or not stamps:
            # What is written again within a tick of the file system's clock has the same time.
            young = time.time_ns() - YOUNG_NS
            self._stamps = [] if any(at > young for _, at, _ in stamps) else stamps
            self._said = set()
            self._tokens = self._read()
            self._told = self._said
        return self._tokens

    def _read(self) -> ServerTokens:
        try:
            token = read_secret(self._file) if self._file else self._token
        except UsageError as error:
            token = self._tell(error, "")
        try:
            return ServerTokens(token, read_readers(self._readers_file, token))
        except UsageError as error:
            return ServerTokens(token, self._tell(error, ()))

    def _tell(self, error: UsageError, nothing: T) -> T:
        """Say what is wrong once, as long as it is so."""
        if error.message not in self._told:
            warn(f"{error.message}; until then no token in it lets anybody in")
        self._said.add(error.message)
        return nothing
