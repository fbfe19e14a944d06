"""The brake: all sessions, or those of a project, rest and go on. Every page has it in its head."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.acts.offer import offer_brake
from sm.messages.suspension import name_project
from sm.plugins.page.access import Visitor
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, is_fragment, show
from sm.sessions import pause
from sm.sessions.pause import EVERYTHING


async def show_brake(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with what rests, and with what each can be told."""

    def make() -> Response:
        pauses = pause.read(page.looks.machine.root)
        every = pauses.find_exactly(EVERYTHING)
        parts = [("", "all", every)]
        if every is None:
            for project in page.looks.list_projects():
                found = pauses.find_exactly(name_project(project.name))
                parts.append((project.name, project.name, found))
        return show(
            "brake_parts.html" if is_fragment(request) else "brake.html",
            visitor,
            parts=[
                (called, known, offer_brake(name, paused=known is not None))
                for name, called, known in parts
            ],
        )

    return await page.read(make)


ROUTES = (PageRoute(f"{BELOW}brake", show_brake, acts=False),)
