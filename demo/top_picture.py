"""`sm top` as a person has it in the demo, who is about to answer a question: as SVG."""

from __future__ import annotations

import asyncio
import re

from stage import Stage

from sm.base.need import NeedKind
from sm.plugins.top.app import Top
from sm.plugins.top.feed import Feed
from sm.plugins.top.lines import UNICODE
from sm.views.projects import ProjectsReader

SIZE = 108, 20
END_S = 20.0
ADDRESS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A font elsewhere, which everybody who looks at the picture would ask for."""


def draw_top(stage: Stage) -> str:
    """The screen with the question open, as it is now; '' if it was answered meanwhile."""
    svg = asyncio.run(_draw(stage))
    return ADDRESS.sub("", svg).replace("<svg ", '<svg xml:space="preserve" ', 1)


async def _draw(stage: Stage) -> str:
    project = stage.project
    feed = Feed(project.machine, ProjectsReader(project.machine, [project]))
    top = Top(feed, UNICODE)
    async with asyncio.timeout(END_S), top.run_test(size=SIZE) as pilot:
        while not top.listing.shown:
            await pilot.pause(0.05)
        for _ in top.listing.shown:  # a question rather than a review
            entry = top.listing.current
            if entry and entry.need and entry.need.kind is NeedKind.QUESTION:
                break
            await pilot.press("j")
        else:
            return ""
        await pilot.press("space")
        while top.near is None:
            await pilot.pause(0.05)
        await pilot.pause(0.2)
        return top.export_screenshot(title="sm top", simplify=True)
