"""Serves over streamable HTTP to any number of clients that know the address and the token."""

from __future__ import annotations

import socket
import traceback
from pathlib import Path
from typing import Any

from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import ProviderTokenVerifier
from mcp.server.auth.routes import REVOCATION_PATH, cors_middleware
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.lowlevel import Server
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.base.errors import SmError
from sm.base.output import say_text, warn
from sm.plugins.chat.mcp import registrations, secret
from sm.plugins.chat.mcp.consent import Consent
from sm.plugins.chat.mcp.grants import Grants
from sm.plugins.chat.mcp.provider import Provider
from sm.web.answers import Answer, answer_failure
from sm.web.guard import Guard, GuardRules
from sm.web.server import run as run_server

REVOCATION_LIMIT = 32 * 1024
REVOCATION_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class Revocation:
    """Answers `/revoke` (RFC 7009) in place of the SDK: revokes what a client gives back.

    The handler of mcp 2.3.0 (mcp/server/auth/handlers/revoke.py) demands the field `client_secret`
    of every client. A public client has none (RFC 7009, 2.1), and one that authenticates by header
    does not put it into the form. It also refuses hints that it does not know, which are to be
    ignored (2.1, `token_type_hint`).
    """

    def __init__(self, provider: Provider) -> None:
        """Revoke only tokens of `provider`."""
        self._provider = provider
        self._authenticator = ClientAuthenticator(provider)

    def route(self) -> Route:
        """Return the route, which goes before that of the SDK."""
        app = RequestBodyLimitMiddleware(cors_middleware(self._answer, ["POST"]), REVOCATION_LIMIT)
        return Route(REVOCATION_PATH, app, methods=["POST"])

    async def _answer(self, http: Request) -> Response:
        try:
            client = await self._authenticator.authenticate_request(http)
        except AuthenticationError as error:
            return _refuse(401, "invalid_client", error.message)
        token = (await http.form()).get("token")
        if not isinstance(token, str) or not token:
            return _refuse(400, "invalid_request", "the token is missing")
        for known in (
            await self._provider.load_access_token(token),
            await self._provider.load_refresh_token(client, token),
        ):
            if known and known.client_id == client.client_id:
                await self._provider.revoke_token(known)
        # Also for a token that is not known (RFC 7009, 2.2).
        return Response(headers=REVOCATION_HEADERS)


def _refuse(status: int, error: str, words: str) -> Response:
    return JSONResponse({"error": error, "error_description": words}, status, REVOCATION_HEADERS)


PATH = "/mcp"
BODY_LIMIT = 8 * 1024 * 1024
"""Bytes of a body: enough for an entry of the largest size, with all its escapes."""


class OnlyPost:
    """Refuses to open a stream at our path, because we would never send anything on it.

    A client may try, and goes on without one if it is refused: MCP, streamable HTTP, "Listening for
    Messages from the Server".
    """

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have `app` answer."""
        app = self.app
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] != "POST":
            app = answer_failure(405, "only POST is answered here", {"Allow": "POST"})
        await app(scope, receive, send)


class RemoteAccess(Struct, frozen=True):
    """Access of remote clients: the grants are in `folder`, codes may go to `hosts`."""

    folder: Path
    hosts: tuple[str, ...]


def make_remote(folder: Path, hosts: tuple[str, ...]) -> RemoteAccess:
    """Allow the hosts of Claude, and these hosts."""
    return RemoteAccess(folder, (*registrations.HOSTS, *(each.lower() for each in hosts)))


def serve(
    server: Server[Any],
    listener: socket.socket,
    rules: GuardRules,
    remote: RemoteAccess | None = None,
) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C; with `remote` clients may ask for tokens.

    Each call stands alone, and nothing stays in memory. So a client does not notice a restart.
    """
    provider = None
    if remote:
        grants, resource = Grants(remote.folder), rules.public + PATH
        provider = Provider(grants, rules.public, resource, remote.hosts, rules.token)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY_LIMIT,
        # The guard has already decided who may ask, for all our servers.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        **(_authorization(remote, provider) if remote and provider else {}),
    )
    if provider:
        app.router.routes.insert(0, Revocation(provider).route())
    app.add_exception_handler(Exception, _failed)
    app.add_middleware(OnlyPost)
    app.add_middleware(Guard, rules)
    run_server(app, listener, lifespan=True)


def _authorization(remote: RemoteAccess, provider: Provider) -> dict[str, Any]:
    """Return what the SDK's application needs for OAuth 2.1, by the MCP specification."""
    return {
        # Texts, because a URL object would add a slash at the end, and issuers are compared as
        # texts (RFC 9207, 2.4).
        "auth": AuthSettings.model_validate(
            {
                "issuer_url": provider.origin,
                "resource_server_url": provider.resource,
                "client_registration_options": ClientRegistrationOptions(enabled=True),
                "revocation_options": RevocationOptions(enabled=True),
                "validate_token_resource": True,
            }
        ),
        "auth_server_provider": provider,
        "token_verifier": ProviderTokenVerifier(provider),
        "custom_starlette_routes": Consent(provider, secret.locate(remote.folder)).routes(),
    }


async def _failed(_request: Request, error: Exception) -> Answer:
    if isinstance(error, SmError):
        warn(error.message)
    else:
        say_text("".join(traceback.format_exception(error)), err=True, nl=False)
    return answer_failure(500, "this did not work: what 'sm mcp' printed has the details")
