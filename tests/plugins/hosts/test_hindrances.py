"""What of a host only a person can change, and what passes by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.runners import KnownState, Placement, Standing
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.health import HostSilence, keep_report, read_report
from sm.plugins.hosts.hindrances import (
    explain_shortage,
    explain_silence,
    list_of_cluster,
    list_unknown,
)
from sm.plugins.hosts.node.report import NodeReport

NOW = 10_000.0
LOST_AFTER_S = 600.0


def place(issue: int, host: str = "box", attempt: int = 1) -> Placement:
    name = f"dev-harb-{issue}"
    return Placement("harb", issue, name, "ssh", host, attempt, "c" * 40, name, 9_000.0)


@pytest.mark.parametrize(
    ("why", "for_s", "is_told"),
    [
        ("ssh: connect to host box port 22: No route to host", 30.0, False),
        ("ssh: connect to host box port 22: No route to host", 600.0, True),
        ("ada@box: Permission denied (publickey).", 0.0, True),
        ("Host key verification failed.", 0.0, True),
        ("no sm there (…): install it, or say where it is by 'sm' of the host", 0.0, True),
        ("sm 0.9 there does not understand sm 0.1 here: …", 0.0, True),
    ],
)
def test_a_host_that_may_come_back_by_itself_is_waited_for(
    why: str, for_s: float, is_told: bool
) -> None:
    silence = HostSilence(NOW - for_s, NOW, f"host 'box' does not answer: {why}")
    found = explain_silence("box", silence, LOST_AFTER_S, NOW)
    assert (found is not None) == is_told
    if found:
        assert found.text == f"Host 'box' does not answer, and gets no sessions: {why}"
        assert found.command == "sm host check box"
        assert found.since == silence.since


def test_what_a_host_lacks_is_one_matter_until_it_is_there_again(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    short = NodeReport(now=0.0, short=("the disk of '/' is nearly full",))
    first = explain_shortage("box", "harb", keep_report(folder, "harb", short))
    assert first
    assert first.text == "Host 'box' gets nothing new: the disk of '/' is nearly full"
    again = explain_shortage("box", "harb", keep_report(folder, "harb", short))
    assert again == first
    keep_report(folder, "harb", NodeReport(now=0.0))
    kept = read_report(folder, "harb")
    assert kept
    assert explain_shortage("box", "harb", kept) is None
    assert kept.short_since == 0.0


def test_a_host_that_was_removed_with_sessions_is_named() -> None:
    (found,) = list_unknown(["box"], [place(1), place(2, "oak"), place(3, "oak")])
    assert found.text.startswith("'oak' has harb#2, harb#3, and is no host of the configuration")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (KnownState(Standing.RUNNING, "n1", NOW), ""),
        (KnownState(Standing.WAITING, "slurm", NOW, "Licenses"), ""),
        (KnownState(Standing.WAITING, "slurm", NOW, "BadConstraints"), "Slurm says BadConstraints"),
        (KnownState(Standing.LOST, "n1", NOW, "Slurm says node fail"), ""),
        (KnownState(Standing.LOST, "n1", NOW, "Slurm says failed: no clone"), "no clone"),
        (KnownState(Standing.SILENT, "n1", NOW - 60, "Slurm does not answer"), ""),
        (KnownState(Standing.SILENT, "n1", NOW - 700, "Slurm does not answer"), "does not answer"),
        (KnownState(Standing.SILENT, "n1", 0.0, "Slurm does not answer"), ""),
    ],
)
def test_a_job_that_cannot_begin_and_a_slurm_that_is_away_need_a_person(
    seen: KnownState, said: str
) -> None:
    found = list(list_of_cluster([place(1, "slurm")], {"dev-harb-1": seen}, 600.0, NOW))
    assert bool(found) == bool(said)
    for one in found:
        assert said in one.text
        assert "harb#1" in one.text
        assert one.command == "sm host check slurm"


def test_what_is_known_of_all_jobs_is_one_matter() -> None:
    silent = KnownState(Standing.SILENT, "n1", NOW - 700, "Slurm does not answer")
    seen = {"dev-harb-1": silent, "dev-harb-2": silent}
    (found,) = list_of_cluster([place(1), place(2)], seen, 600.0, NOW)
    assert found.text == "Nothing is known of harb#1, harb#2: Slurm does not answer"
