"""`bin/soak hosts` on a small scale, so that the program itself stays true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sm.adapters import procfs
from tests.shell import BIN
from tests.soak.trouble import WEIGHTS, draw
from tests.soak.twice import Told
from tests.soak.writers import Note, count_heard, list_lost
from tests.sshd import MISSING, PROGRAM

END_S = 600.0


def test_the_same_seed_makes_the_same_plan_with_every_kind_of_trouble() -> None:
    plan = draw(7, count=30, gap_s=10.0, longest_s=25.0)
    assert plan == draw(7, count=30, gap_s=10.0, longest_s=25.0)
    assert plan != draw(8, count=30, gap_s=10.0, longest_s=25.0)
    assert {one.kind for one in plan} == {*WEIGHTS}
    assert list(plan) == sorted(plan)
    assert len(draw(7, count=2, gap_s=1.0, longest_s=5.0)) == 2


def test_a_message_is_lost_if_no_agent_has_heard_it_and_nobody_was_told() -> None:
    notes = [Note(number, 4, f"id{number}" * (number != 4), "queued") for number in (1, 2, 3, 4)]
    told = [Told(4, 77, "told", "[note 1] go on"), Told(4, 77, "phase", "[note 2]")]
    heard = count_heard(told)
    assert heard == Counter({1: 1})
    assert [line[:8] for line in list_lost(notes, heard, "message id3 was not taken")] == [
        "[note 2]"
    ]
    assert count_heard(told * 2) == Counter({1: 2})


@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
@pytest.mark.timeout(END_S + 30)
@pytest.mark.long_lived
def test_issues_are_merged_once_although_hosts_come_and_go() -> None:
    small = ("--issues", "2", "--hosts", "2", "--troubles", "3", "--gap", "3", "--longest", "6")
    done = subprocess.run(
        [BIN / "soak", "hosts", *small, "--seed", "4", "--step", "0.1"],
        env={"PATH": "/usr/bin:/bin", "SM_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"issues merged exactly once +2 of 2\n", done.stdout), done.stdout
    place = re.search(r"in '(/tmp/sm-soak-\w+)'", done.stdout)
    assert place
    assert not Path(place[1]).exists()
    assert not procfs.find_with_variable(f"HOME={place[1]}/disk/home".encode())
