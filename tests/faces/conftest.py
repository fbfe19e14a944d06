"""A world that ends with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.faces.living import living
from tests.faces.world import World


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Callable[[int], World]]:
    """Make a world from a seed."""
    assert tmux_socket
    with ExitStack() as stack:
        yield lambda seed: stack.enter_context(living(tmp_path, root, seed))
