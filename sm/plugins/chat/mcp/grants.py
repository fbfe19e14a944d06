"""Keeps the grants of remote clients in a private file beside the database, without any token.

A grant begins with a code. Its client exchanges the code for an access token and a refresh token,
and each refresh token for two new ones. The file has only their hashes. If a code or an old refresh
token comes a second time, a thief may have sent it, so the grant ends (RFC 6749, 4.1.2; RFC 9700,
4.14.2).
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, structs

from sm.base.errors import UsageError
from sm.plugins.chat.mcp.seals import KEY_BYTES, Seals
from sm.store import files, lock, sqlite_file

CODE_S = 120.0
ACCESS_S = 3600.0
REFRESH_S = 90 * 24 * 3600.0
MOST_OLDER = 8
"""Tokens of a kind besides the newest, because a client may run in several places."""
GRACE_S = 60.0
"""Time that an exchanged refresh token is accepted once more, in seconds: the answer may be lost,
or the client has asked twice at once."""


class GrantToken(Struct, frozen=True):
    """A client's token, by its hash; times are seconds since 1970."""

    digest: str
    expires_at: float

    def is_good(self, at: float) -> bool:
        """Say whether it has not expired."""
        return at < self.expires_at


class Code(Struct, frozen=True):
    """The code that begins a grant, and what its client must send to get tokens for it."""

    token: GrantToken
    challenge: str
    redirect_uri: str
    is_explicit: bool
    is_used: bool = False


class Grant(Struct, frozen=True):
    """A client's permission to use the tools, until it is revoked or long unused."""

    id: str
    client_id: str
    name: str
    """The client's own name."""
    host: str
    """The host to which the person's browser brought the code."""
    granted_at: float
    used_at: float
    code: Code
    scopes: tuple[str, ...] = ()
    access: tuple[GrantToken, ...] = ()
    refresh: tuple[GrantToken, ...] = ()

    def is_alive(self, at: float) -> bool:
        """Say whether its client can still use it."""
        return any(each.is_good(at) for each in self.refresh or (self.code.token,))

    def shown(self) -> ShownGrant:
        """Return what a person sees of it."""
        return ShownGrant(self.id, self.name, self.host, self.granted_at, self.used_at)

    def takes(self, digest: str, at: float) -> bool:
        """Say whether this is a refresh token of the grant that may be exchanged."""
        return any(each.digest == digest and each.is_good(at) for each in self.refresh)

    def replace(self, digest: str, at: float) -> Grant:
        """Return the grant after the exchange of that refresh token."""

        def aged(each: GrantToken) -> GrantToken:
            return GrantToken(digest, min(each.expires_at, at + GRACE_S))

        tokens = (aged(each) if each.digest == digest else each for each in self.refresh)
        return structs.replace(self, refresh=tuple(tokens))

    def issue(self, access: str, refresh: str, at: float) -> Grant:
        """Return the grant with the hashes of two new tokens; older good tokens stay."""
        return structs.replace(
            self,
            used_at=at,
            access=(*_newest(self.access, at), GrantToken(access, at + ACCESS_S)),
            refresh=(*_newest(self.refresh, at), GrantToken(refresh, at + REFRESH_S)),
        )


def _newest(tokens: tuple[GrantToken, ...], at: float) -> tuple[GrantToken, ...]:
    return tuple(each for each in tokens if each.is_good(at))[-MOST_OLDER:]


class ShownGrant(Struct, frozen=True):
    """A grant as a person sees it; times are seconds since 1970."""

    id: str
    name: str
    host: str
    granted_at: float
    used_at: float


class Refresh(Struct, frozen=True):
    """The content of a refresh token. We recognise our own one even long after its exchange."""

    grant: str
    nonce: str


class Issued(Struct, frozen=True):
    """Tokens as the client gets them, only this once."""

    access: str
    refresh: str


class GrantBook(Struct, frozen=True):
    """Everything in the file: `key`, in hexadecimal, signs what clients keep for us."""

    key: str
    grants: tuple[Grant, ...] = ()


def digest(word: str) -> str:
    """Return the hash that sm keeps of a token, and by which it finds the token."""
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()


class Grants:
    """The file in `folder`. Every process sees a change at once."""

    def __init__(self, folder: Path) -> None:
        """Use the file in `folder`, where the database is."""
        self.path = folder / "mcp-grants.json"
        self._lock = folder / "mcp-grants.lock"

    def seals(self) -> Seals:
        """Return the seals that sign what clients keep for us.

        Raises:
            StateError: the file cannot be read, or made.

        """
        book = self._read()
        if book is None:
            with self._changing():
                pass
            book = self._read()
        assert book, "it was just written"
        return Seals(bytes.fromhex(book.key))

    def listed(self) -> tuple[Grant, ...]:
        """Return the grants with tokens, oldest first.

        Raises:
            StateError: the file cannot be read.

        """
        return tuple(each for each in self._alive() if each.refresh)

    def with_access(self, token: str) -> tuple[Grant, GrantToken] | None:
        """Return the grant of an access token that is valid now."""
        wanted, now = digest(token), time.time()
        pairs = ((grant, each) for grant in self._alive() for each in grant.access)
        found = (pair for pair in pairs if pair[1].digest == wanted and pair[1].is_good(now))
        return next(found, None)

    def with_code(self, code: str) -> Grant | None:
        """Return the grant that began with this code, exchanged or not."""
        wanted = digest(code)
        return next((each for each in self._alive() if each.code.token.digest == wanted), None)

    def with_refresh(self, token: str) -> Grant | None:
        """Return the grant of a refresh token of ours, exchanged or not."""
        said = self.seals().open(token, Refresh)
        return next((each for each in self._alive() if said and each.id == said.grant), None)

    def begin(self, client_id: str, name: str, host: str, asked: Code, scopes: list[str]) -> Grant:
        """Note a new grant."""
        now = time.time()
        grant = Grant(
            id=secrets.token_hex(4),
            client_id=client_id,
            name=name,
            host=host,
            granted_at=now,
            used_at=now,
            code=asked,
            scopes=tuple(scopes),
        )
        with self._changing() as grants:
            grants[grant.id] = grant
        return grant

    def exchange_code(self, code: str) -> Issued | None:
        """Return the first tokens for a code. A used code ends its grant and gives None."""
        found = self.with_code(code)
        if found is None:
            return None
        with self._changing() as grants:
            grant = grants.pop(found.id, None)
            if grant is None or grant.code.is_used:
                return None
            used = structs.replace(grant.code, is_used=True)
            return self._issue(grants, structs.replace(grant, code=used))

    def exchange_refresh(self, token: str) -> Issued | None:
        """Return the next tokens for a refresh token. An old one ends its grant: None."""
        found, now = self.with_refresh(token), time.time()
        if found is None:
            return None
        with self._changing() as grants:
            grant = grants.pop(found.id, None)
            if grant is None or not grant.takes(digest(token), now):
                return None
            return self._issue(grants, grant.replace(digest(token), now))

    def revoke(self, *ids: str) -> tuple[Grant, ...]:
        """Revoke these grants at once; return those that existed."""
        with self._changing() as grants:
            return tuple(grants.pop(each) for each in ids if each in grants)

    def _issue(self, grants: dict[str, Grant], grant: Grant) -> Issued:
        """Make new tokens for a grant, and keep it."""
        claim = Refresh(grant.id, secrets.token_urlsafe(24))
        issued = Issued(secrets.token_urlsafe(32), self.seals().close(claim))
        now = time.time()
        grants[grant.id] = grant.issue(digest(issued.access), digest(issued.refresh), now)
        return issued

    def _alive(self) -> tuple[Grant, ...]:
        book, now = self._read(), time.time()
        return tuple(each for each in book.grants if each.is_alive(now)) if book else ()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Grant]]:
        """Yield the live grants by id, to be changed; write them afterwards."""
        sqlite_file.make_folder(self.path.parent)
        with lock.hold(self._lock):
            book = self._read() or GrantBook(secrets.token_hex(KEY_BYTES))
            grants = {each.id: each for each in book.grants if each.is_alive(time.time())}
            yield grants
            files.write_json(self.path, GrantBook(book.key, tuple(grants.values())), durable=True)

    def _read(self) -> GrantBook | None:
        return files.read_json(self.path, GrantBook)


def find(grants: tuple[Grant, ...], ident: str) -> Grant:
    """Return the grant that a person means.

    Raises:
        UsageError: there is none.

    """
    for each in grants:
        if each.id == ident:
            return each
    known = ", ".join(each.id for each in grants) or "none"
    raise UsageError(f"no grant '{ident}': 'sm mcp grants' lists them, there is {known}")
