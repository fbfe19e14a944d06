"""What the tests of budgets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.plugins.cost import entering
from sm.plugins.cost.budget import decide
from sm.store.paths import Root


@pytest.fixture
def shop(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a project; what its agents write is read and priced at once."""
    monkeypatch.setattr(entering, "LATE_S", 0.0)
    monkeypatch.setattr(decide, "PRICES_S", 0.0)
    assert root
    return tmp_path


@pytest.fixture
def ledger(sealed: Path) -> Path:
    """Where the ledger is."""
    return sealed / ".local" / "share" / "sm" / "ledger.db"
