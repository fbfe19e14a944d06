"""How a session elsewhere stands, by what its node has said."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.runners import Placement, Standing
from sm.plugins.hosts import health
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.health import GAP_S, HostSilence, KeptReport, judge
from sm.plugins.hosts.node.report import NodeReport

NOW = 10_000.0
PLACED = Placement("harb", 1, "dev-harb-1", "ssh", "box", 1, "c" * 40, "dev-harb-1", NOW - 5000)
RUNS = KeptReport(NOW - 9, NodeReport(now=NOW, rows={"dev-harb-1": {"phase": "working"}}))
ENDED = KeptReport(NOW - 9, NodeReport(now=NOW, ended=("dev-harb-1",)))
UNKNOWN = KeptReport(NOW - 9, NodeReport(now=NOW))


def silent(for_s: float) -> HostSilence:
    return HostSilence(NOW - for_s, NOW, "no route")


@pytest.mark.parametrize(
    ("kept", "silence", "standing"),
    [
        (RUNS, None, Standing.RUNNING),
        (ENDED, None, Standing.OVER),
        (UNKNOWN, None, Standing.LOST),
        (None, None, Standing.SILENT),
        (RUNS, silent(599), Standing.SILENT),
        (RUNS, silent(600), Standing.LOST),
        (None, silent(600), Standing.LOST),
        (ENDED, silent(1), Standing.SILENT),
    ],
)
def test_a_session_stands_as_its_node_says(
    kept: KeptReport | None, silence: HostSilence | None, standing: Standing
) -> None:
    seen = judge(PLACED, kept, silence, 600.0, NOW)
    assert seen.standing is standing
    assert seen.host == "box"
    assert seen.known_at == (kept.at if kept else 0.0)


def test_what_was_silent_before_it_was_placed_has_its_whole_time() -> None:
    late = Placement("harb", 1, "dev-harb-1", "ssh", "box", 2, "c" * 40, "x", NOW - 100)
    assert judge(late, None, silent(5000), 600.0, NOW).standing is Standing.SILENT


def test_a_silence_goes_on_only_while_somebody_looks(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    assert health.note_silence(folder, "no route", 1000.0).since == 1000.0
    assert health.note_silence(folder, "no route", 1000.0 + GAP_S - 1).since == 1000.0
    later = 1000.0 + 3 * GAP_S
    assert health.note_silence(folder, "no route", later).since == later, "we were away ourselves"
    assert health.note_silence(folder, "no route", 5.0).since == 5.0, "the clock was set back"


def test_what_a_node_says_ends_its_silence(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    health.note_silence(folder, "no route", 1000.0)
    health.keep_report(folder, "harb", NodeReport(now=1.0))
    assert health.read_silence(folder) is None
    assert health.read_report(folder, "harb") is not None


def test_a_damaged_report_is_none(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    folder.report("harb").write_text('{"at": "soon"}')
    assert health.read_report(folder, "harb") is None
