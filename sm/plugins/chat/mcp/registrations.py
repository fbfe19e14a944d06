"""Clients that register themselves (RFC 7591): their id contains the registration.

The specification lets every client register, and most never come back. So sm keeps nothing of them:
the id is the signed registration, and the client's secret is made from it.
"""

from __future__ import annotations

from collections.abc import Collection

from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import OAuthClientInformationFull
from msgspec import Struct
from pydantic import AnyUrl

from sm.plugins.chat.mcp.seals import Seals

HOSTS = ("claude.ai", "claude.com")
"""Hosts where Claude's own clients, on all devices, receive the codes."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ID_LIMIT = 3000
"""Characters of an id, because it stands in URLs."""


class Registration(Struct, frozen=True):
    """A client's own words, as far as sm keeps them."""

    name: str
    redirect_uris: tuple[str, ...]
    method: str
    grant_types: tuple[str, ...]
    issued_at: int


class RegisteredClient(OAuthClientInformationFull):
    """A client of the SDK."""

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """Accept any scope: there is one permission here, and it has no name.

        Some clients ask for the scopes of other servers. To refuse those would shut the clients
        out.
        """
        return None if requested_scope is None else requested_scope.split()


def register(client: OAuthClientInformationFull, seals: Seals, hosts: Collection[str]) -> None:
    """Give the client its id and its secret.

    Raises:
        RegistrationError: its codes would go to a forbidden place, or it is too long.

    """
    uris = client.redirect_uris or []
    for uri in uris:
        if fault := find_redirect_fault(uri, hosts):
            raise RegistrationError("invalid_redirect_uri", fault)
    registration = Registration(
        client.client_name or "",
        tuple(map(str, uris)),
        client.token_endpoint_auth_method or "none",
        tuple(client.grant_types),
        client.client_id_issued_at or 0,
    )
    client.client_id = seals.close(registration)
    if len(client.client_id) > ID_LIMIT:
        raise RegistrationError("invalid_client_metadata", "names and redirect URIs are too long")
    if client.client_secret is not None:
        client.client_secret = _secret(client.client_id, seals)


def find(client_id: str, seals: Seals, hosts: Collection[str]) -> RegisteredClient | None:
    """Return the client with that id; None if the id is not ours, or no longer allowed."""
    known = seals.open(client_id, Registration)
    if known is None or any(find_redirect_fault(AnyUrl(uri), hosts) for uri in known.redirect_uris):
        return None
    return RegisteredClient(
        client_id=client_id,
        client_secret=None if known.method == "none" else _secret(client_id, seals),
        client_secret_expires_at=0,
        client_name=known.name or None,
        redirect_uris=list(map(AnyUrl, known.redirect_uris)),
        token_endpoint_auth_method=known.method,
        grant_types=list(known.grant_types),
        client_id_issued_at=known.issued_at,
    )


def find_redirect_fault(uri: AnyUrl, hosts: Collection[str]) -> str:
    """Say why no code may go to this address; '' if it may."""
    if uri.username or uri.password or uri.fragment is not None:
        return "a redirect URI has neither a user nor a fragment"
    if uri.scheme == "http" and uri.host in LOOPBACK:
        return ""  # the person's own machine, for native clients (RFC 8252, 7.3)
    if uri.scheme == "https" and uri.port in (None, 443) and uri.host in hosts:
        return ""
    known = ", ".join(sorted(hosts))
    return (
        f"codes are sent to this machine (http://127.0.0.1) and by https to {known} only: the "
        "person who runs this server adds another host by 'sm mcp --http --client-host HOST'"
    )


def _secret(client_id: str, seals: Seals) -> str:
    return seals.derive("client secret", client_id)
