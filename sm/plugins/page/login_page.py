"""Pages that let a browser in, make a link for another one, log out, and list all browsers."""

from __future__ import annotations

import re
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sm.plugins.page.access import (
    DeniedError,
    Visitor,
    check_acts,
    check_form,
    check_origin,
    find_origin,
    spell_cookie,
)
from sm.plugins.page.logins import name_browser
from sm.plugins.page.paths import BELOW, LOGIN, ROOT
from sm.plugins.page.route import Page, PageRoute, read_form, show
from sm.web.rights import Right

OURS = re.compile(rf"(?:{ROOT}(?:[?#].*)?|{BELOW}.*)")
"""Pattern of our paths: the overview, or what is below it. So no second slash makes it the address
of another host."""
READABLE = re.compile(r"[!-\[\]-~]{1,500}")
"""ASCII, without a blank and a backslash: browsers drop the one, and take the other for a slash.

https://url.spec.whatwg.org/#concept-basic-url-parser
"""


def find_way_back(asked: str) -> str:
    """Return the path that was asked for, with what stands behind `#`, or `/` if it is not ours."""
    if not READABLE.fullmatch(asked) or not OURS.fullmatch(asked):
        return ROOT
    return ROOT if asked.startswith(LOGIN) else asked


PROGRAMS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari", "Safari"),
)
"""Programs in the order in which they count: most browsers also name later ones, for
compatibility."""
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "a Mac"),
    ("Linux", "Linux"),
)


def call_browser(told: str) -> str:
    """Return a name such as `Safari on iPhone` for a `User-Agent`, or that if it is unknown."""
    program = next((name for word, name in PROGRAMS if word in told), "")
    system = next((name for word, name in SYSTEMS if word in told), "")
    return f"{program} on {system}" if program and system else told


LOGIN_LIMIT = 4096
"""Bytes of the form that anybody may send, also from elsewhere through a proxy."""


async def show_login(_page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a form, so that a mere look at a link, as by a preview, does not use it up."""
    key = request.query_params.get("key", "")[:200]
    to = find_way_back(request.query_params.get("to", ""))
    return show("login.html", visitor, key=key, to=to, why="")


async def log_in(page: Page, request: Request, visitor: Visitor) -> Response:
    """Let a browser in that brings the key of a link, or a token."""
    check_origin(request, find_origin(request, page.entrance.public))
    fields = await read_form(request, LOGIN_LIMIT)
    to = find_way_back(fields.get("to", ""))
    if not page.entrance.loopback:
        raise DeniedError(403, "from another machine a browser may only read: come by ssh -L")
    called = call_browser(request.headers.get("user-agent", ""))
    secret, logins = fields.get("key", "").strip(), page.logins
    # Who tries out what is wrong takes no thread, and waits for no lock.
    known = logins.knows(secret)
    browser = await page.note(partial(logins.log_in, secret, called)) if known else ""
    if not browser:
        why = "That link was used already, or is too old. Call sm serve --open for a new one."
        return show("login.html", visitor, 403, key="", to=to, why=why)
    if visitor.browser:
        await page.note(partial(logins.log_out, visitor.browser))  # its cookie is replaced
    return _redirect(page, to, browser)


async def log_out(page: Page, request: Request, visitor: Visitor) -> Response:
    """Forget the browser that asks."""
    fields = await read_form(request)
    check_form(request, visitor, fields.get("csrf", ""))
    if visitor.browser:
        await page.note(partial(page.logins.log_out, visitor.browser))
    return _redirect(page, ROOT, "")


async def invite(page: Page, request: Request, visitor: Visitor) -> Response:
    """Make a link for one more browser."""
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("csrf", ""))
    only_reads = fields.get("only", "") == "read"
    key = page.logins.make_key(Right.READ if only_reads else Right.ACT)
    link = f"{find_origin(request, page.entrance.public)}{LOGIN}?key={key}"
    return show("invite.html", visitor, link=link, only_reads=only_reads)


async def show_browsers(page: Page, _request: Request, visitor: Visitor) -> Response:
    """Answer with the browsers that are logged in."""
    own = name_browser(visitor.browser)
    known, wrong = page.logins.list_known(), page.logins.wrong
    return show("browsers.html", visitor, known=known, own=own, reads=Right.READ, wrong=wrong)


async def forget(page: Page, request: Request, visitor: Visitor) -> Response:
    """Log one of these browsers out, or all."""
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("csrf", ""))
    if (name := fields.get("name", "")) == ALL:
        await page.note(page.logins.forget_all)
    else:
        await page.note(partial(page.logins.forget, name))
    if name in (ALL, name_browser(visitor.browser)):
        return _redirect(page, ROOT, "")
    return RedirectResponse(BROWSERS, 303)


def _redirect(page: Page, path: str, browser: str) -> Response:
    """Lead on, and give the browser its secret, or take it back for ''."""
    return RedirectResponse(path, 303, {"Set-Cookie": spell_cookie(browser, page.entrance.public)})


BROWSERS = f"{BELOW}browsers"
ALL = "all"
ROUTES = (
    PageRoute(LOGIN, show_login, readers=False, acts=False),
    PageRoute(LOGIN, log_in, ("POST",), readers=False, acts=False),
    PageRoute(f"{BELOW}logout", log_out, ("POST",), acts=False),
    PageRoute(f"{BELOW}invite", invite, ("POST",), acts=True),
    PageRoute(BROWSERS, show_browsers, acts=True),
    PageRoute(BROWSERS, forget, ("POST",), acts=True),
)
