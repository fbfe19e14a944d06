"""The runner of the tests keeps what is asked of every runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.runners import Runner
from sm.testing.runner import RunnerContract, RunnerSide
from sm.testing.session import make_project
from tests.issues.farm import RUNNER, use_farm


class FarmSide(RunnerSide):
    def open(self) -> Runner:
        return RUNNER


class TestFarm(RunnerContract):
    @pytest.fixture
    def side(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunnerSide:
        use_farm(tmp_path, monkeypatch).add("one", 3)
        return FarmSide(make_project(tmp_path), "farm", "one")
