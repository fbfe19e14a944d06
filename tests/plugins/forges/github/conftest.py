"""A repository on GitHub, with the people around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forges.sides import RemoteSide, remote_side
from tests.hub import make_hub


@pytest.fixture
def side(tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side("github", make_hub(tmp_path), tmp_path / "kept") as side:
        yield side
