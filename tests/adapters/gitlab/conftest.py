"""A project on a GitLab of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.gitlab import forge as gitlab_forge
from tests.forges.sides import RemoteSide, remote_side
from tests.hub import make_hub


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteSide]:
    monkeypatch.setattr(gitlab_forge, "UNSURE_S", 0.0)
    with remote_side("gitlab", make_hub(tmp_path), tmp_path / "kept") as side:
        yield side
