"""`bin/soak cut` on a small scale, so that the program itself stays true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sm.adapters import procfs
from tests.cable import MISSING as NO_NAMESPACES
from tests.helpers import git
from tests.shell import BIN
from tests.soak.books import Written, find_pushed_late, list_late, list_lost
from tests.soak.cut import list_heard_again
from tests.soak.figures import MERGED
from tests.soak.outage import SILENT, Kind, Moment, draw
from tests.soak.twice import Told
from tests.sshd import MISSING, PROGRAM

END_S = 400.0


def test_the_same_seed_makes_the_same_outage_and_hundred_have_every_kind_at_every_moment() -> None:
    assert str(draw(7)) == str(draw(7))
    assert draw(7).dice.random() == draw(7).dice.random()
    drawn = [draw(seed) for seed in range(1, 101)]
    assert {one.kind for one in drawn} == {*Kind}
    assert {one.moment for one in drawn} == {*Moment}
    assert {one.kind for one in drawn if one.until_taken} == {*SILENT}
    assert {one.until_taken for one in drawn if one.kind in SILENT} == {True, False}


def test_what_a_host_writes_is_late_once_another_has_the_claim() -> None:
    mine = Written("host1", 4, "POST /issues/4/comments", "host1", 0.0)
    late = Written("host1", 4, "POST /pulls/5/merge", "host2", 0.0)
    assert list_late([mine, late]) == [str(late)]
    assert str(late).endswith("host1, #4 is host2's: POST /pulls/5/merge")


def test_a_late_push_and_a_lost_commit_are_found_in_the_ledger(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")

    def commit(who: str, *parents: str, words: str = "work") -> str:
        tree = git(tmp_path, "write-tree")
        given = [word for one in parents for word in ("-p", one)]
        by = ("-c", f"user.name={who}", "-c", "user.email=a@b")
        return git(tmp_path, *by, "commit-tree", tree, *given, "-m", words)

    base = commit("ada")
    first, second = (commit("sm", words=f"claimed\n\non: host{n}") for n in (1, 2))
    pushed = commit("host1", base)
    taken = commit("home", pushed)
    late, saved = commit("host1", taken), commit("host1", pushed, words="saved")
    git(tmp_path, "update-ref", "refs/heads/main", late)
    none = "0" * 40
    ledger = "".join(
        f"{old} {new} {ref}\n"
        for old, new, ref in (
            (none, base, "refs/heads/fix/4"),
            (none, first, "refs/sm/claims/4"),
            (base, pushed, "refs/heads/fix/4"),
            (none, saved, "refs/sm/wip/4/1"),
            (pushed, taken, "refs/heads/fix/4"),
            (first, second, "refs/sm/claims/4"),
        )
    )
    hosts = ("host1", "host2")
    assert find_pushed_late(tmp_path, ledger, hosts) == {}
    assert list_lost(tmp_path, ledger, hosts) == [f"host1 {saved[:7]} saved"]
    ledger += f"{taken} {late} refs/heads/fix/4\n{late} {none} refs/heads/fix/4\n"
    told = f"refs/heads/fix/4 {late[:12]} by host1"
    assert find_pushed_late(tmp_path, ledger, hosts) == {late: told}
    git(tmp_path, "update-ref", "refs/heads/main", taken)
    assert list_lost(tmp_path, ledger, hosts) == [f"host1 {saved[:7]} saved"]


def test_a_message_is_heard_again_only_by_an_agent_on_another_host() -> None:
    begun = [Told(4, pid, "begins", f"/host{pid}/soak-4") for pid in (1, 2)]
    begun.append(Told(4, 3, "begins", "/host2/soak-4"))
    heard = [(1, 7), (2, 7), (1, 8), (1, 8), (2, 9), (3, 9)]
    told = [Told(4, pid, "told", f"[note {number}] go on") for pid, number in heard]
    assert list_heard_again([*begun, *told]) == ["[note 7] 2 times"]


def test_a_merge_is_known_by_its_branch_on_both_forges() -> None:
    subjects = ["Merge branch 'fix/7'", "Merge pull request 'Add \"it\"' (#9) from fix/8 into main"]
    assert [one or other for one, other in MERGED.findall("\n".join(subjects))] == [
        "fix/7",
        "fix/8",
    ]


@pytest.mark.skipif(PROGRAM is None, reason=MISSING)
@pytest.mark.timeout(END_S + 30)
@pytest.mark.long_lived
def test_an_issue_is_merged_once_although_its_node_was_cut_off() -> None:
    done = subprocess.run(
        [BIN / "soak", "cut", "1", "--seed", "2", "--step", "0.05"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SM_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
    )
    if NO_NAMESPACES in done.stderr:
        assert done.returncode == 2
        pytest.skip(NO_NAMESPACES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"issues merged exactly once +1 of 1\n", done.stdout), done.stdout
    place = re.search(r"in '(/tmp/sm-soak-\w+)'", done.stdout)
    assert place
    assert not Path(place[1]).exists()
    assert not procfs.find_with_variable(f"HOME={place[1]}/disk/home".encode())
