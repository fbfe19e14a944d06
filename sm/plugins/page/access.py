"""Access to the page: who may read, and who may act there.

Whoever the server lets in without a token may read. Who acts brings the token, or is a browser that
has logged in: then the request has to come from a form of ours, by three signs that no other page
can give: the origin, the browser's own word for it, and the CSRF token that only our form carries.
"""

from __future__ import annotations

import hmac

from msgspec import Struct
from starlette.requests import HTTPConnection

from sm.plugins.page.logins import Logins, make_csrf_token
from sm.web.rights import Right
from sm.web.sites import Entrance

COOKIE = "sm-page"


class DeniedError(Exception):
    """A request that is refused, with a `status` and the reason."""

    def __init__(self, status: int, why: str) -> None:
        """Keep status and reason."""
        super().__init__(why)
        self.status, self.why = status, why


class Visitor(Struct, frozen=True):
    """A client that asks. `browser` is the secret of one that has logged in, '' for none.

    `only_reads`: by a login or a token that is good for no more. `origin` is where our forms are.
    `arrives`: by a link of another site, with which a browser sends no cookie of ours.
    """

    may_read: bool
    may_act: bool
    browser: str = ""
    only_reads: bool = False
    origin: str = ""
    arrives: bool = False

    @property
    def csrf(self) -> str:
        """CSRF token that its forms carry; '' if it has not logged in."""
        return make_csrf_token(self.browser) if self.browser else ""


def identify(request: HTTPConnection, entrance: Entrance, logins: Logins) -> Visitor:
    """Identify who asks."""
    browser = request.cookies.get(name_cookie(entrance.public), "")
    login = logins.find_right(browser) if entrance.loopback else Right.NOTHING
    brought = entrance.keys.find_brought(request.headers.get("authorization", ""))
    if login and login >= brought:
        origin = find_origin(request, entrance.public)
        acts = login is Right.ACT
        return Visitor(True, acts, browser, only_reads=not acts, origin=origin)
    if brought:
        acts = brought is Right.ACT
        return Visitor(True, acts, only_reads=not acts)
    may_read = bool(entrance.keys.find_trusted(request.scope))
    arrives = not browser and request.headers.get("sec-fetch-site", "") == "cross-site"
    return Visitor(may_read, may_act=False, arrives=arrives)


def find_origin(request: HTTPConnection, public: str) -> str:
    """Return the origin at which a browser has our pages: only the proxy's if it is public.

    What a request says of a proxy (`X-Forwarded-…`) is not looked at: anybody can write that.
    """
    scheme = {"ws": "http", "wss": "https"}.get(request.url.scheme, request.url.scheme)
    return public or f"{scheme}://{request.headers.get('host', '')}"


def check_reads(visitor: Visitor) -> None:
    """Refuse who may not read.

    Raises:
        RefusedError: the visitor is unknown.

    """
    if not visitor.may_read:
        raise DeniedError(401, "log in: open the link of sm serve --open, or give the token")


def check_may_act(visitor: Visitor) -> None:
    """Refuse who may not act at all, before anything of theirs is read.

    Raises:
        RefusedError: the visitor may not act.

    """
    if visitor.may_act:
        return
    if visitor.only_reads:
        raise DeniedError(403, "this login only reads: to act, open another link")
    raise DeniedError(401, "to act here, log in: open the link of sm serve --open")


def check_acts(request: HTTPConnection, visitor: Visitor, csrf: str) -> None:
    """Refuse who may not act, and what does not come from a form of ours.

    Raises:
        RefusedError: the visitor or the request is one of these.

    """
    check_may_act(visitor)
    check_form(request, visitor, csrf)


def check_form(request: HTTPConnection, visitor: Visitor, csrf: str) -> None:
    """Refuse what a browser has sent from another page than ours.

    Raises:
        RefusedError: another page has sent it.

    """
    if not visitor.browser:
        return  # no page can send a token
    check_origin(request, visitor.origin)
    if not hmac.compare_digest(csrf.encode(), visitor.csrf.encode()):
        raise DeniedError(403, "the form is of another login: load the page again")


def check_origin(request: HTTPConnection, ours: str = "") -> None:
    """Refuse what another page has sent, also one on another port of this machine.

    Raises:
        RefusedError: another page has sent it.

    """
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if origin != (ours or find_origin(request, "")) or site != "same-origin":
        raise DeniedError(403, "this did not come from the page of sm")


COOKIE_S = 400 * 24 * 3600
"""Lifetime of the cookie, in seconds, the longest that browsers take: the login ends earlier."""


def name_cookie(public: str) -> str:
    """Return the cookie's name. Its prefix lets only a page of that very name, over TLS, set it."""
    return f"__Host-{COOKIE}" if public else COOKIE


def spell_cookie(browser: str, public: str = "") -> str:
    """Return the header that gives the browser its secret, or takes it back for ''."""
    lasts = COOKIE_S if browser else 0
    secure = "; Secure" if public else ""
    named = f"{name_cookie(public)}={browser}"
    return f"{named}; Max-Age={lasts}; Path=/; HttpOnly; SameSite=Strict{secure}"
