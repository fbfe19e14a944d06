"""Does what a form asks for, in a thread, and answers with what came of it."""

from __future__ import annotations

from functools import partial

from anyio import fail_after
from starlette.requests import Request
from starlette.responses import Response

from sm.base.foreign import read_number
from sm.plugins.page.access import RefusedError, Visitor, check_acts
from sm.plugins.page.acting import Wish, carry_out
from sm.plugins.page.answering import Page, Way, is_fragment, read_form, show
from sm.plugins.page.paths import BELOW
from sm.views.offers import Act

ACT_S = 60.0
"""After so long a person is told that it goes on without an answer."""


async def act(page: Page, request: Request, visitor: Visitor) -> Response:
    """Do what a form asks for, and say what came of it."""
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    wish = _read_wish(fields)
    try:
        with fail_after(ACT_S):
            worker = await page.pools.enter(wish.session or f"{wish.project}#{wish.number}")
            said = await worker.run(partial(carry_out, page.looks, wish))
    except TimeoutError:
        why = f"not done after {ACT_S:g} s: it may still be carried out"
        raise RefusedError(503, why) from None
    finally:
        page.looks.spoil()
    template = "outcome.html" if is_fragment(request) else "problem.html"
    answer = show(template, visitor, why=said, done=True)
    answer.headers["HX-Trigger"] = "sm-acted"
    return answer


def _read_wish(fields: dict[str, str]) -> Wish:
    try:
        asked = Act(fields.get("act", ""))
    except ValueError as error:
        raise RefusedError(400, "that cannot be done here") from error
    return Wish(
        act=asked,
        session=fields.get("session", ""),
        project=fields.get("project", ""),
        number=read_number(fields.get("number", "")) or 0,
        head=fields.get("head", ""),
        limit=fields.get("limit", "")[:200],
        known=fields.get("known"),
        text=fields.get("text", "").replace("\r\n", "\n"),
    )


ROUTES = (Way(f"{BELOW}act", act, ("POST",), acts=True),)
