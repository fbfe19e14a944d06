"""The section `noticeboard` of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from sm.config.section import Positive, Section


class Noticeboard(Section, frozen=True):
    """Where notices are pinned, and how many."""

    board: Annotated[
        Path | None, Meta(description="a folder for notices; empty: nothing is pinned")
    ] = None
    keep: Annotated[Positive, Meta(description="how many notices stay, the newest ones")] = 20
    answers: Annotated[bool, Meta(description="true: people may pin answers to questions")] = False
