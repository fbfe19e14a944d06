"""Who may read the page, and who may act there.

Whoever the server lets in without a token may read. Who acts brings the token, or is a browser that
has logged in: then the request has to come from a form of ours, by three signs that no other page
can give: the origin, the browser's own word for it, and what only our form carries.
"""

from __future__ import annotations

import hmac

from msgspec import Struct
from starlette.requests import HTTPConnection

from sm.plugins.http.sites import Entrance
from sm.plugins.page.logins import LASTS_S, Logins, make_pledge

COOKIE = "sm-page"


class RefusedError(Exception):
    """The request may not do that; `status` and why."""

    def __init__(self, status: int, why: str) -> None:
        """Keep both."""
        super().__init__(why)
        self.status, self.why = status, why


class Visitor(Struct, frozen=True):
    """Who asks. `browser` is the secret of one that has logged in, '' for none."""

    may_read: bool
    may_act: bool
    browser: str = ""

    @property
    def pledge(self) -> str:
        """What forms for it carry; '' if it has not logged in."""
        return make_pledge(self.browser) if self.browser else ""


def identify(request: HTTPConnection, entrance: Entrance, logins: Logins) -> Visitor:
    """Say who asks."""
    browser = request.cookies.get(COOKIE, "")
    if browser and entrance.loopback and logins.knows(browser):
        return Visitor(may_read=True, may_act=True, browser=browser)
    if entrance.is_brought(request.headers.get("authorization", "")):
        return Visitor(may_read=True, may_act=True)
    return Visitor(may_read=not entrance.token, may_act=False)


def check_reads(visitor: Visitor) -> None:
    """Refuse who may not read.

    Raises:
        RefusedError: it is nobody that is known.

    """
    if not visitor.may_read:
        raise RefusedError(401, "log in: open the link of sm serve --open, or give the token")


def check_may_act(visitor: Visitor) -> None:
    """Refuse who may not act at all, before anything of theirs is read.

    Raises:
        RefusedError: it may not.

    """
    if not visitor.may_act:
        raise RefusedError(401, "to act here, log in: open the link of sm serve --open")


def check_acts(request: HTTPConnection, visitor: Visitor, pledge: str) -> None:
    """Refuse who may not act, and what does not come from a form of ours.

    Raises:
        RefusedError: it may not.

    """
    check_may_act(visitor)
    if not visitor.browser:
        return  # no page can send a token
    check_origin(request)
    if not hmac.compare_digest(pledge.encode(), visitor.pledge.encode()):
        raise RefusedError(403, "the form is of another login: load the page again")


def check_origin(request: HTTPConnection) -> None:
    """Refuse what another page has sent, also one on another port of this machine.

    Raises:
        RefusedError: it is not from a page of ours.

    """
    scheme = {"ws": "http", "wss": "https"}.get(request.url.scheme, request.url.scheme)
    ours = f"{scheme}://{request.headers.get('host', '')}"
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if origin != ours or site != "same-origin":
        raise RefusedError(403, "this did not come from the page of sm")


def spell_cookie(browser: str) -> str:
    """Return the header that gives the browser its secret, or takes it back for ''."""
    lasts = int(LASTS_S) if browser else 0
    return f"{COOKIE}={browser}; Max-Age={lasts}; Path=/; HttpOnly; SameSite=Strict"
