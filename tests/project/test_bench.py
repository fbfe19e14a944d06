"""The benchmarks can be taken, each of them; one that cannot is named, and stops no other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.bench import run
from tests.bench.measure import Bench, Figure


@pytest.mark.long_lived
@pytest.mark.parametrize("name", run.BENCHMARKS)
def test_its_figures_can_be_taken(name: str) -> None:
    """As small as can be: what they are is not looked at."""
    if why := run.find_missing(name):
        pytest.skip(why)
    figures = list(run.take(name, once=True))
    assert figures or name in run.OF_THE_CLIENT
    for figure in figures:
        assert figure.samples, figure.name


def _figures(bench: Bench) -> Iterator[Figure]:
    yield Figure(name="the first", unit="ms", samples=[1.0])
    raise AssertionError(f"no second one in {bench.folder.name[:8]}")


@pytest.mark.sweep
def test_one_that_fails_is_named_and_the_others_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = ModuleType("tests.bench.broken")
    broken.figures = _figures  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, broken.__name__, broken)
    monkeypatch.setitem(run.BENCHMARKS, "broken", "broken")
    written = tmp_path / "bench.json"
    assert run.main(["--quick", "--output", str(written), "broken", "help"]) == 1
    said = capsys.readouterr()
    assert "the first" in said.out
    reason = "no second one in sm-bench (tests/project/test_bench.py:"
    assert said.err.startswith(f"bench: broken failed: {reason}")
    report = json.loads(written.read_text())
    assert report["failed"]["broken"].startswith(reason)
    assert {name: len(found) for name, found in report["figures"].items()} == {
        "broken": 1,
        "help": 2,
    }
