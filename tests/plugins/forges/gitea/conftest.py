"""A repository on Forgejo, and one on Gitea, with the people around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forges.sides import RemoteSide, remote_side
from tests.hub import make_hub


@pytest.fixture(params=["forgejo", "gitea"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side
