"""A world for a while: what monitors would do it does itself, and nothing waits for a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import sm.__main__ as main
from sm.base import plugin
from sm.plugins import OURS
from sm.plugins.cost.budget import rules
from sm.plugins.cost.ledger import intake, progress
from sm.plugins.page import board_reader
from sm.sessions import monitors
from sm.store.paths import Root
from tests.faces.world import World
from tests.issues import farm


@contextmanager
def living(folder: Path, root: Root, seed: int) -> Iterator[World]:
    """Make a world from a seed, and end all that it has started."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(monitors, "ensure", lambda _: False))
        stack.enter_context(patch.object(intake, "LATE_S", 0.0))
        stack.enter_context(patch.object(rules, "PRICES_S", 0.0))
        stack.enter_context(patch.object(progress, "SHOWN_S", 0.0))
        stack.enter_context(patch.object(board_reader, "FRESH_S", 0.0))
        (folder / "farm").mkdir()
        stack.enter_context(patch.dict(os.environ, {"SM_TEST_FARM": str(folder / "farm")}))
        found = [*OURS.items(), ("farm", f"{farm.__name__}:PLUGIN")]
        stack.enter_context(patch.object(main, "find_plugins", lambda: found))
        plugin.use(lambda: found)
        stack.callback(plugin.use, OURS.items)
        world, real = World(folder, root, seed), time.time
        stack.enter_context(patch.object(time, "time", lambda: real() + world.clock_s))
        stack.callback(world.end)
        yield world
