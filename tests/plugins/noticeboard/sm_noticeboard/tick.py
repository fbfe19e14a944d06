"""What the board shows of dev-poll."""

from __future__ import annotations

from sm_noticeboard.notices import pin
from sm_noticeboard.settings import Noticeboard

from sm.config.shapes import read_section
from sm.issues.ticks import Listener, Tick
from sm.store.paths import Root


def is_wanted(tick: Tick) -> bool:
    """Whether there is a board, and anything to pin to it."""
    return read_section(tick.config, Noticeboard).board is not None and tick.failed


def pin_troubles(_root: Root, tick: Tick) -> None:
    """Pin what went wrong; the same is pinned once."""
    settings = read_section(tick.config, Noticeboard)
    if settings.board:
        for trouble in tick.troubles:
            pin(settings.board, trouble, f"dev-poll: {trouble}\n", settings.keep)


LISTENER = Listener(hear=pin_troubles, wants=is_wanted)
