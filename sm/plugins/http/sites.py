"""What plugins offer by `sm serve` beside endpoints: an application with pages, streams, files.

The guard before them has refused what no good client sends, and all other origins and names. Who
may read and who may act below its own paths, a site decides itself.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.base import plugin
from sm.sessions.machine import Machine


class Entrance(Struct, frozen=True):
    """How the server is reached: the `token` of its clients, '' for none; `loopback`: from here.

    `key` is what the person who has started the server was given for one browser, '' for nothing.
    """

    token: str = ""
    loopback: bool = True
    key: str = ""

    def is_brought(self, authorization: str) -> bool:
        """Whether this header brings the token; False if there is none."""
        kind, _, token = authorization.partition(" ")
        right = hmac.compare_digest(token.strip().encode(), self.token.encode())
        return right and self.token != "" and kind.lower() == "bearer"


class Site(Struct, frozen=True):
    """The application of a plugin: what it answers, and what makes it when it is first asked.

    A path that ends with `/` stands for all below it, and `/` for itself alone. `door` is what the
    link of `sm serve --open` has before its key, '' if the site has no use for one. `sockets`: it
    takes WebSockets, too, below the paths that end with `/`.
    """

    paths: tuple[str, ...]
    make: Callable[[Machine, Entrance], ASGIApp]
    door: str = ""
    sockets: bool = False


def load_sites() -> list[Site]:
    """The sites of all plugins."""
    return [site for _, site in plugin.load_parts("sites")]


class _Lazy:
    """Makes an application at its first request: the server starts without it."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make, self._app = make, None

    _app: ASGIApp | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer."""
        if self._app is None:
            self._app = self._make()
        await self._app(scope, receive, send)


def make_site_routes(
    machine: Machine, sites: Iterable[Site], entrance: Entrance
) -> Iterator[BaseRoute]:
    """Return the routes of these sites for Starlette: for requests, and for WebSockets."""
    for site in sites:
        app = _Lazy(partial(site.make, machine, entrance))
        for path in site.paths:
            yield Route(f"{path}{{rest:path}}" if is_folder(path) else path, app)
            if site.sockets and is_folder(path):
                yield WebSocketRoute(f"{path}{{rest:path}}", app)


def is_folder(path: str) -> bool:
    """Whether a path stands for all below it."""
    return path != "/" and path.endswith("/")


def is_below(path: str, paths: Iterable[str]) -> bool:
    """Whether one of `paths` stands for `path`."""
    return any(path.startswith(one) if is_folder(one) else path == one for one in paths)
