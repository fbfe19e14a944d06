"""Desk of a pull request: what it changes, and what can be done to it, of one commit.

Both come in one piece, from one look at the forge, so no form is ever of another commit than the
changes above it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sm.acts.offer import Offer, list_answers, offer_merge
from sm.adapters.process import Beginning
from sm.base.act import ActKind
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.issues.review import read_change, tell_news
from sm.plugins.page.access import Visitor
from sm.plugins.page.changes.shown import BYTES
from sm.plugins.page.changes_page import describe_change
from sm.plugins.page.errors import GoneError
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, show
from sm.sessions.project import Project
from sm.views.board import Board
from sm.views.open_need import OpenNeed
from sm.views.session_row import OVER, SessionRow

DECIDED = (NeedKind.REVIEW, NeedKind.MERGE)
"""Needs that a person decides by what a pull request changes."""


UNKNOWN_NEWS = "New commits"


class Desk(Struct, frozen=True):
    """The changes of a pull request at the commit `head`, and what can be done to it there.

    `seen` is the commit that `dev-poll` or a session has seen last.
    """

    session: str
    head: str
    seen: str
    offers: tuple[Offer, ...]
    found: Beginning


def read_desk(project: Project, board: Board, row: SessionRow) -> Desk:
    """Read what the pull request of the session changes now.

    Raises:
        SmError: the forge cannot tell.

    """
    change = read_change(project, row.pull, limit=BYTES + 1)
    found = Beginning(change.patch[:BYTES], is_whole=len(change.patch) <= BYTES)
    needs = (one for one in board.needs if one.session == row.id and one.kind in DECIDED)
    offers = tuple(_list_offers(next(needs, None), row, change.head))
    return Desk(row.id, change.head, row.head, offers, found)


def _list_offers(need: OpenNeed | None, row: SessionRow, head: str) -> Iterator[Offer]:
    """List answers to the need, of the commit `head`; and the merge of what is not merged."""
    is_known = head == row.head
    if need and not is_known:  # what is missing there is not known yet
        need = structs.replace(need, merges=False)
    found = list_answers(need, structs.replace(row, head=head)) if need else ()
    yield from found
    if row.state not in OVER and not any(offer.act.kind is ActKind.MERGE for offer in found):
        yield offer_merge(row.project, row.pull, head)


async def show_desk(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the desk, or with why there is none in its place."""
    ident = request.path_params["ident"]

    def make() -> Response:
        board, _ = page.looks.read()
        row = _find_offered(board, ident)
        desk = read_desk(page.looks.find_project(row.project), board, row)
        return show(
            "desk.html", visitor, desk=desk, **describe_change(page, desk.found, "its base")
        )

    try:
        return await page.ask(make)
    except SmError as error:
        has_desk = "hx-target" in request.headers
        answer = show(
            "desk_problem.html", visitor, ident=ident, why=error.message, has_desk=has_desk
        )
        if has_desk:  # its forms have to stay, as somebody may have written there
            answer.headers["HX-Retarget"] = f'[id="desk-{ident}"] .body'
            answer.headers["HX-Reswap"] = "innerHTML"
        return answer


async def show_news(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with what the pull request has got since the commit that a page shows."""
    ident, shown = request.path_params["ident"], request.query_params.get("head", "")

    def make() -> str:
        row = _find_offered(page.looks.read()[0], ident)
        return tell_news(page.looks.find_project(row.project).forge.pulls, row.pull, shown)

    try:
        return PlainTextResponse(await page.ask(make))
    except SmError:  # it is not known how many
        return PlainTextResponse(UNKNOWN_NEWS)


def _find_offered(board: Board, ident: str) -> SessionRow:
    row = board.find(ident)
    if row is None or not row.pull:
        raise GoneError("there is no such pull request any more")
    return row


ROUTES = (
    PageRoute(f"{BELOW}session/{{ident}}/desk", show_desk, acts=False),
    PageRoute(f"{BELOW}session/{{ident}}/news", show_news, acts=False),
)
