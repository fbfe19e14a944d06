"""`bin/soak kills` on a small scale, so that the program itself stays true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sm.adapters import proc
from tests.shell import BIN
from tests.soak.faults import WEIGHTS, Kind, draw, duration_s

END_S = 600.0


def soak(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "soak", "kills", *options],
        env={"PATH": "/usr/bin:/bin", "SM_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
    )


def test_the_same_seed_makes_the_same_plan_and_another_one_another() -> None:
    plan = draw(7, kills=80, reboots=3, disks=1, gap_s=2.0)
    assert plan == draw(7, kills=80, reboots=3, disks=1, gap_s=2.0)
    assert plan != draw(8, kills=80, reboots=3, disks=1, gap_s=2.0)


def test_a_plan_has_every_kind_of_fault_in_order_and_in_time() -> None:
    plan = draw(1, kills=80, reboots=3, disks=1, gap_s=2.0)
    kinds = [fault.kind for fault in plan]
    assert (len(plan), kinds.count(Kind.REBOOT), kinds.count(Kind.FULL_DISK)) == (84, 3, 1)
    assert {*kinds} == {*WEIGHTS, Kind.REBOOT, Kind.FULL_DISK}
    assert [fault.at_s for fault in plan] == sorted(fault.at_s for fault in plan)
    assert plan[-1].at_s < duration_s(80, 2.0)


@pytest.mark.timeout(END_S + 30)
def test_issues_are_merged_once_among_kills_and_a_reboot() -> None:
    small = ("--issues", "2", "--kills", "8", "--reboots", "1", "--disks", "0", "--sessions", "2")
    done = soak(*small, "--seed", "3", "--gap", "1.5", "--step", "0.1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"issues merged exactly once +2 of 2\n", done.stdout), done.stdout
    place = re.search(r"in '(/tmp/sm-soak-\w+)'", done.stdout)
    assert place
    assert not Path(place[1]).exists()
    assert not proc.with_variable(f"HOME={place[1]}/disk/home".encode())


def test_an_unknown_option_is_named() -> None:
    done = soak("--fast")
    assert (done.returncode, "--fast" in done.stderr) == (2, True)
