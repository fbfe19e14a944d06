"""What the tests of several forges begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub import Hub, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A repository with the embedded forge beside it."""
    return make_hub(tmp_path)
