"""How a browser is let in, makes a link for another one, and leaves."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sm.plugins.page.access import (
    RefusedError,
    Visitor,
    check_acts,
    check_may_act,
    check_origin,
    spell_cookie,
)
from sm.plugins.page.answering import Page, Way, read_form, show
from sm.plugins.page.site import BELOW, LOGIN, ROOT


async def show_login(_page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a form: that a link is looked at, by a preview for instance, uses up nothing."""
    return show("login.html", visitor, key=request.query_params.get("key", "")[:200], why="")


async def log_in(page: Page, request: Request, visitor: Visitor) -> Response:
    """Let a browser in that brings the key of a link, or the token."""
    fields = await read_form(request)
    check_origin(request)
    if not page.entrance.loopback:
        raise RefusedError(403, "from another machine a browser may only read: come by ssh -L")
    browser = page.logins.log_in(fields.get("key", "").strip())
    if not browser:
        why = "That link was used already, or is too old. Call sm serve --open for a new one."
        return show("login.html", visitor, 403, key="", why=why)
    return RedirectResponse(ROOT, 303, {"Set-Cookie": spell_cookie(browser)})


async def log_out(page: Page, request: Request, visitor: Visitor) -> Response:
    """Forget the browser."""
    check_may_act(visitor)
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    page.logins.log_out(visitor.browser)
    return RedirectResponse(ROOT, 303, {"Set-Cookie": spell_cookie("")})


async def invite(page: Page, request: Request, visitor: Visitor) -> Response:
    """Make a link for one more browser."""
    check_may_act(visitor)
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    link = f"{request.url.scheme}://{request.headers['host']}{LOGIN}?key={page.logins.make_key()}"
    return show("invite.html", visitor, link=link)


ROUTES = (
    Way(LOGIN, show_login, readers=False),
    Way(LOGIN, log_in, ("POST",), readers=False),
    Way(f"{BELOW}logout", log_out, ("POST",)),
    Way(f"{BELOW}invite", invite, ("POST",)),
)
