"""Authorization server for remote clients, behind the SDK's interface. It has one user.

The SDK reads the requests and checks what every server checks, such as PKCE. This module knows the
clients, asks the person, and knows which tokens are valid.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Collection
from typing import TypeVar
from urllib.parse import urlencode

import anyio.to_thread
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.auth_utils import check_resource_allowed
from msgspec import Struct
from pydantic import AnyUrl

from sm.plugins.chat.mcp import registrations
from sm.plugins.chat.mcp.grants import (
    ACCESS_S,
    CODE_S,
    Code,
    Grant,
    Grants,
    GrantToken,
    Issued,
    digest,
)
from sm.plugins.chat.mcp.registrations import RegisteredClient

T = TypeVar("T")

PAGE = "/approve"
REQUEST_S = 900.0
"""Time that a person can take to answer, and to find the secret, in seconds."""
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 in base64url (RFC 7636, 4.2)."""
STATE_LIMIT = 2000


class GrantRequest(Struct, frozen=True):
    """Request of a client, while sm asks the person."""

    client_id: str
    redirect_uri: str
    is_explicit: bool
    challenge: str
    state: str | None
    scopes: tuple[str, ...]
    expires_at: float


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Answers for the server at `origin`, with its tools at `resource`."""

    def __init__(
        self, grants: Grants, origin: str, resource: str, hosts: Collection[str], token: str
    ) -> None:
        """`hosts`: where codes may be sent besides this machine; `token`: always good, or ''."""
        self.grants = grants
        self.origin = origin
        self.resource = resource
        self._hosts = frozenset(hosts)
        self._token = token

    async def get_client(self, client_id: str) -> RegisteredClient | None:
        """Return the client, if the id is ours."""
        return registrations.find(client_id, self.grants.seals(), self._hosts)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Give the client an id."""
        registrations.register(client_info, self.grants.seals(), self._hosts)

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """Return the address of the page that asks the person."""
        self._check(params)
        request = GrantRequest(
            client.client_id,
            str(params.redirect_uri),
            params.redirect_uri_provided_explicitly,
            params.code_challenge,
            params.state,
            tuple(params.scopes or ()),
            time.time() + REQUEST_S,
        )
        return f"{PAGE}?{urlencode({'request': self.grants.seals().close(request)})}"

    def _check(self, params: AuthorizationParams) -> None:
        if not CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge is no SHA-256 in base64url")
        if len(params.state or "") > STATE_LIMIT:
            raise AuthorizeError("invalid_request", f"state is longer than {STATE_LIMIT}")
        if params.resource and not check_resource_allowed(params.resource, self.resource):
            raise AuthorizeError("invalid_target", f"this is the server of {self.resource}")

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return the grant of that code, exchanged or not."""
        grant = self.grants.with_code(authorization_code)
        if grant is None:
            return None  # the SDK itself refuses another client's codes
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(grant.scopes),
            expires_at=grant.code.token.expires_at,
            client_id=grant.client_id,
            code_challenge=grant.code.challenge,
            redirect_uri=AnyUrl(grant.code.redirect_uri),
            redirect_uri_provided_explicitly=grant.code.is_explicit,
            resource=self.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Return the first tokens. A code that comes again ends its grant."""
        issued = await _in_thread(lambda: self.grants.exchange_code(authorization_code.code))
        return _tokens(issued, authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """Return a refresh token of ours, exchanged or not."""
        grant = self.grants.with_refresh(refresh_token)
        if grant is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=grant.client_id,
            scopes=list(grant.scopes),
            resource=self.resource,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return the next tokens. A long exchanged refresh token ends its grant."""
        issued = await _in_thread(lambda: self.grants.exchange_refresh(refresh_token.token))
        return _tokens(issued, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return a token that is valid now, for this server."""
        if self._token and hmac.compare_digest(_bytes(token), _bytes(self._token)):
            return AccessToken(
                token=token, client_id="token file", scopes=[], resource=self.resource
            )
        found = self.grants.with_access(token)
        if found is None:
            return None
        grant, known = found
        return AccessToken(
            token=token,
            client_id=grant.client_id,
            scopes=list(grant.scopes),
            expires_at=int(known.expires_at),
            resource=self.resource,
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Revoke the token's grant, with all its tokens."""
        by_access = self.grants.with_access(token.token)
        grant = by_access[0] if by_access else self.grants.with_refresh(token.token)
        if grant:
            await _in_thread(lambda: self.grants.revoke(grant.id))

    def read_request(self, sealed: str) -> GrantRequest | None:
        """Return the request that `authorize` gave to the page; None if it is too old."""
        request = self.grants.seals().open(sealed, GrantRequest)
        return request if request and time.time() < request.expires_at else None

    async def grant(self, code: str, client: RegisteredClient, request: GrantRequest) -> Grant:
        """Note that the person allows it. The client can now exchange this code for tokens."""
        asked = Code(
            GrantToken(digest(code), time.time() + CODE_S),
            request.challenge,
            request.redirect_uri,
            request.is_explicit,
        )
        host = AnyUrl(request.redirect_uri).host or ""
        name, scopes = client.client_name or "", list(request.scopes)
        return await _in_thread(
            lambda: self.grants.begin(client.client_id, name, host, asked, scopes)
        )


def _tokens(issued: Issued | None, scopes: list[str]) -> OAuthToken:
    if issued is None:
        raise TokenError("invalid_grant", "it was used already, or revoked")
    return OAuthToken(
        access_token=issued.access,
        expires_in=int(ACCESS_S),
        refresh_token=issued.refresh,
        scope=" ".join(scopes) or None,
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


async def _in_thread(act: Callable[[], T]) -> T:
    """Run `act` in a thread, because it waits for a lock and for the disk."""
    return await anyio.to_thread.run_sync(act)
