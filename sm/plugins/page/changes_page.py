"""Changes on the page: what a pull request or a branch changes, and its files one by one."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sm.adapters.process import Beginning
from sm.base.foreign import read_number
from sm.plugins.page.access import Visitor
from sm.plugins.page.changes.shown import BYTES, show_hunks
from sm.plugins.page.paths import BELOW
from sm.plugins.page.renderer import render
from sm.plugins.page.route import Page, PageRoute
from sm.views.change import ChangedFile
from sm.views.place import Bounds, Place

FILES = 300
"""Files that git's own overview names."""
GIT_S = 10.0
"""Time that git may take for the patch, and for the overview, in seconds."""


def read_change(place: Place, head: str | None = None) -> Beginning:
    """Read what a session's branch changes, also what is not pushed yet.

    With `head`, only what its pull request lacks, which is at that commit.

    Raises:
        SmError: git cannot tell.

    """
    return place.read_change(head, Bounds(BYTES, FILES, GIT_S)).patch


def describe_change(page: Page, found: Beginning, lacks: str) -> dict[str, Any]:
    """Return what `change.html` shows: the change, and the lines of the files that are open.

    `lacks` names what has nothing of it.
    """
    change = page.changes.show(found)
    bodies = {
        one.index: _draw(page, page.changes.find(change.id, one.index))
        for one in change.files
        if one.opens
    }
    return {"change": change, "bodies": bodies, "lacks": lacks}


def _draw(page: Page, file: ChangedFile | None) -> Markup:
    """Make HTML of the lines of a file; None is one that is kept no more."""
    hunks, left_out = show_hunks(file, page.highlighter) if file else ([], "")
    made = render("file.html", hunks=hunks, left_out=left_out, file=file)
    return Markup(made)  # noqa: S704 - the template escapes what is put into it


async def show_file(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with the lines of one file of a change that was shown."""
    ident, index = request.path_params["ident"], read_number(request.path_params["index"])

    def make() -> Response:
        return HTMLResponse(_draw(page, page.changes.find(ident, -1 if index is None else index)))

    return await page.read(make)


ROUTES = (PageRoute(f"{BELOW}change/{{ident}}/{{index}}", show_file, acts=False),)
