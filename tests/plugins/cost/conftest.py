"""What the tests of budgets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.plugins.cost.budget import rules
from sm.plugins.cost.ledger import intake
from sm.store.paths import Root


@pytest.fixture
def shop(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a project; what its agents write is read and priced at once."""
    monkeypatch.setattr(intake, "LATE_S", 0.0)
    monkeypatch.setattr(rules, "PRICES_S", 0.0)
    assert root
    return tmp_path


@pytest.fixture
def ledger(sealed: Path) -> Path:
    """Where the ledger is."""
    return sealed / ".local" / "share" / "sm" / "ledger.db"
