"""Sites that plugins offer by `sm serve` beside endpoints: applications with pages, streams, files.

The guard before them refuses what no good client sends, and all other origins and names. A site
with logins of its own decides who may read and who may act; for any other the guard does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.base import plugin
from sm.sessions.machine import Machine
from sm.web.rights import Declared, Keys, Right, ServerTokens, Tokenless


class Entrance(Struct, frozen=True):
    """Ways into the server: the `token` of its clients, '' for none; `loopback`: from this machine.

    `key` is what the person who has started the server was given for one browser, '' for nothing;
    with `key_reads` that browser only reads. `readers` are tokens that only read, `trust` says who
    needs none, and `public` is the origin under which a proxy offers the server to others. `look`
    returns the tokens that count now, if they can change.
    """

    token: str = ""
    loopback: bool = True
    key: str = ""
    key_reads: bool = False
    readers: tuple[str, ...] = ()
    trust: Tokenless = Tokenless.ANYONE
    public: str = ""
    look: Callable[[], ServerTokens] | None = None

    @property
    def keys(self) -> Keys:
        """Tokens and trust that let a client in."""
        return Keys(self.token, self.readers, self.trust, self.look)

    def is_brought(self, authorization: str) -> bool:
        """Say whether this header brings the token that acts; False if there is none."""
        return self.keys.find_brought(authorization) is Right.ACT

    def find_right(self, scope: Scope) -> Right:
        """Return the right of whoever sends this, by a token in it, or as the server is open."""
        return self.keys.find_right(scope)


class Site(Struct, frozen=True):
    """The application of a plugin: what it answers, and what makes it when it is first asked.

    A path that ends with `/` stands for all below it, and `/` for itself alone. `door` is what the
    link of `sm serve --open` has before its key, '' if the site has no use for one. `sockets`: it
    takes WebSockets, too, below the paths that end with `/`.

    A site with logins of its own (`logs_in`) decides itself who may ask. Any other site
    admits those whom the server would admit; a token that only reads counts there if the site does
    not act (`acts`).
    """

    paths: tuple[str, ...]
    make: Callable[[Machine, Entrance], ASGIApp]
    door: str = ""
    logs_in: bool = False
    acts: bool | None = None
    sockets: bool = False


def load_sites() -> list[Site]:
    """Load the sites of all plugins."""
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
    machine: Machine, sites: Iterable[Site], entrance: Entrance, *, all_decide: bool
) -> Iterator[Declared]:
    """Return the routes of these sites for Starlette: for requests, and for WebSockets.

    `all_decide`: sites without logins, too, decide themselves who may ask.
    """
    for site in sites:
        app = _Lazy(partial(site.make, machine, entrance))
        acts = False if site.logs_in else site.acts
        decides = site.logs_in or all_decide
        for path in site.paths:
            place = f"{path}{{rest:path}}" if is_folder(path) else path
            yield Declared(Route(place, app), acts, decides)
            if site.sockets and is_folder(path):
                yield Declared(WebSocketRoute(place, app), acts, decides)


def is_folder(path: str) -> bool:
    """Say whether a path stands for all below it."""
    return path != "/" and path.endswith("/")
