"""Answers `/revoke` (RFC 7009) in place of the SDK.

The handler of mcp 2.3.0 (mcp/server/auth/handlers/revoke.py) demands the field `client_secret` of
every client. A public client has none (RFC 7009, 2.1), and one that authenticates by header does
not put it into the form. It also refuses hints that it does not know, which are to be ignored (2.1,
`token_type_hint`).
"""

from __future__ import annotations

from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.routes import REVOCATION_PATH, cors_middleware
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sm.plugins.chat.mcp.provider import Provider

BODY_LIMIT = 32 * 1024
HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class Revocation:
    """Revokes what a client gives back."""

    def __init__(self, provider: Provider) -> None:
        """Revoke only tokens of `provider`."""
        self._provider = provider
        self._authenticator = ClientAuthenticator(provider)

    def route(self) -> Route:
        """Return the route, which goes before that of the SDK."""
        app = RequestBodyLimitMiddleware(cors_middleware(self._answer, ["POST"]), BODY_LIMIT)
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
        return Response(headers=HEADERS)  # also for a token that is not known (RFC 7009, 2.2)


def _refuse(status: int, error: str, words: str) -> Response:
    return JSONResponse({"error": error, "error_description": words}, status, HEADERS)
