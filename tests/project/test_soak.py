"""`bin/soak kills` on a small scale, so that the program itself stays true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.adapters.forge.model import Comment
from tests.helpers import a_pull, an_issue
from tests.shell import BIN
from tests.soak import twice
from tests.soak.faults import WEIGHTS, Kind, draw, duration_s
from tests.soak.twice import Told

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


def test_a_prompt_told_twice_is_found_and_one_told_again_for_a_new_phase_is_not() -> None:
    said = Told(4, 77, "told", "[sm] CI passed for 1234")
    spoken = Told(4, 77, "phase", "awaiting_ci")
    assert twice.prompts([said, said]) == ["#4 '[sm] CI passed for 1234'"]
    assert twice.prompts([said, spoken, said]) == []


def test_a_first_prompt_that_two_agents_were_given_is_found() -> None:
    one, other = (Told(4, pid, "told", "You take over issue #4 nonce") for pid in (77, 78))
    spoken = Told(4, 77, "phase", "awaiting_ci")
    assert len(twice.prompts([one, other])) == 1
    assert len(twice.prompts([one, spoken, other])) == 1
    assert len(twice.prompts([one, spoken, other], killed={77})) == 1


def test_a_first_prompt_is_given_again_where_its_agent_was_killed_at_once() -> None:
    one, other = (Told(4, pid, "told", "You take over issue #4 nonce") for pid in (77, 78))
    assert twice.prompts([one, other], killed={77}) == []


def test_a_comment_that_is_there_twice_is_found_unless_it_was_asked_twice() -> None:
    question = [
        Comment("sm", 1000.0 + n, "The agent asks for a person: why?", marker=f"m{n}")
        for n in range(2)
    ]
    issue, asked = an_issue(4, comments=tuple(question)), Told(4, 77, "phase", "escalate\nReason:")
    assert len(twice.comments([issue], [asked], Counter(), Counter())) == 1
    assert twice.comments([issue], [asked, asked], Counter(), Counter()) == []
    same = an_issue(5, comments=(question[0], question[0]))
    assert "#5 marker m0" in twice.comments([same], [], Counter(), Counter())


def test_a_second_pull_request_claim_or_worktree_is_found() -> None:
    assert twice.pulls([a_pull(1, "fix/4"), a_pull(2, "fix/4"), a_pull(3, "fix/5")]) == ["fix/4: 2"]
    claimed = f"{'0' * 40} {'a' * 40} refs/sm/claims/4\n{'a' * 40} {'0' * 40} refs/sm/claims/4\n"
    assert twice.claims(claimed, Counter()) == []
    assert twice.claims(claimed * 2, Counter()) == ["#4: 2"]
    assert twice.claims(claimed * 2, Counter({4: 1})) == []
    assert twice.worktrees([Told(4, n, "begins", f"/w/{n}") for n in (1, 2)]) == ["#4: /w/1, /w/2"]


@pytest.mark.timeout(END_S + 30)
@pytest.mark.long_lived
def test_issues_are_merged_once_among_kills_and_a_reboot() -> None:
    small = ("--issues", "2", "--kills", "8", "--reboots", "1", "--disks", "0", "--sessions", "2")
    done = soak(*small, "--seed", "3", "--gap", "1.5", "--step", "0.1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"issues merged exactly once +2 of 2\n", done.stdout), done.stdout
    place = re.search(r"in '(/tmp/sm-soak-\w+)'", done.stdout)
    assert place
    assert not Path(place[1]).exists()
    assert not procfs.find_with_variable(f"HOME={place[1]}/disk/home".encode())


def test_an_unknown_option_is_named() -> None:
    done = soak("--fast")
    assert (done.returncode, "--fast" in done.stderr) == (2, True)
