"""Does what a form asks for, in a thread, and answers with what came of it."""

from __future__ import annotations

from functools import partial

from anyio import fail_after
from starlette.requests import Request
from starlette.responses import Response

from sm.acts.execution import ACTS, carry_out
from sm.base.act import Act, ActKind
from sm.base.issue_id import read_issue
from sm.plugins.page.access import DeniedError, Visitor, check_acts
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, is_fragment, read_form, show
from sm.sessions.caller import Caller

ACT_S = 60.0
"""Time after which a person is told that it goes on without an answer, in seconds."""


async def act(page: Page, request: Request, visitor: Visitor) -> Response:
    """Do what a form asks for, and say what came of it."""
    fields = await read_form(request)
    check_acts(request, visitor, fields.get("csrf", ""))
    wish, text = _read_act(fields), fields.get("text", "").replace("\r\n", "\n")
    carry = partial(carry_out, page.finder, wish, text, Caller())
    try:
        with fail_after(ACT_S):
            worker = await page.pools.enter(wish.session or f"{wish.project}#{wish.number}")
            said = await worker.run(carry)
    except TimeoutError:
        why = f"not done after {ACT_S:g} s: it may still be carried out"
        raise DeniedError(503, why) from None
    finally:
        page.looks.spoil()
    template = "outcome.html" if is_fragment(request) else "problem.html"
    answer = show(template, visitor, why="\n".join(said), done=True)
    answer.headers["HX-Trigger"] = "sm-acted"
    return answer


def _read_act(fields: dict[str, str]) -> Act:
    try:
        kind = ActKind(fields.get("act", ""))
    except ValueError as error:
        raise DeniedError(400, "that cannot be done here") from error
    if kind not in ACTS:
        raise DeniedError(400, "that cannot be done here")
    return Act(
        kind,
        project=fields.get("project", ""),
        number=read_issue(fields.get("number", "")) or 0,
        session=fields.get("session", ""),
        head=fields.get("head", ""),
        limit=fields.get("limit", "")[:200],
        known=fields.get("known"),
    )


ROUTES = (PageRoute(f"{BELOW}act", act, ("POST",), acts=True),)
