"""What is said of a cluster, and of a node of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import cast

from sm.base.version import version
from sm.plugins.hosts.slurm import check
from sm.plugins.hosts.slurm.cluster import Partition, read_licenses, read_partitions
from sm.plugins.hosts.slurm.script import write_check
from sm.plugins.hosts.slurm.settings import Slurm
from sm.sessions.project import Project
from sm.setup.finding import Finding, Level

LONG = Partition("long", is_usual=True, is_up=True, limit_s=7200.0, nodes={"idle": 2, "down*": 1})
DOWN = Partition("old", is_usual=False, is_up=True, limit_s=0.0, nodes={"drain": 2})


def judge(**settings: object) -> list[Finding]:
    return list(check.judge_partition(Slurm(**settings), [LONG, DOWN]))  # type: ignore[arg-type]


def test_what_sinfo_and_scontrol_say_is_read() -> None:
    lines = ["long*|up|2:00:00|2|idle", "long*|up|2:00:00|1|down*", "old|up|infinite|2|drain", "?"]
    assert read_partitions(lines) == [LONG, DOWN]
    (days,) = read_partitions(["long|up|1-00:30:00|1|idle"])
    assert days.limit_s == 88_200
    shown = ["LicenseName=agents Total=2 Used=0 Free=2 Reserved=0 Remote=no", "No licenses"]
    assert read_licenses(shown) == {"agents": 2}


def test_a_partition_is_judged() -> None:
    (fine,) = judge(time_limit_s=3600.0)
    assert fine.level is Level.OK
    assert fine.what == "partition 'long': 1 down*, 2 idle, at most 2 h each"
    (unknown,) = judge(partition="none")
    assert unknown.what == "Slurm has no partition 'none'"
    assert unknown.advice == "set slurm.partition to one of: long, old"
    assert judge(partition="old")[0].level is Level.WARN
    assert "longer than" in judge(time_limit_s=9000.0)[1].what
    assert "set slurm.time_limit to 120m" in judge()[1].advice
    assert "as long as" in judge(time_limit_s=600.0, notice_s=900.0)[1].what


def test_licenses_and_the_setup_are_judged() -> None:
    wanted = Slurm(licenses=("agents:2", "seats"))
    found = list(check.judge_licenses(wanted, {"agents": 10}))
    assert found[0].what == "license 'agents': 10 of it, so 5 sessions at a time"
    assert found[1].what == "Slurm has no license 'seats'"
    setup = {"AccountingStorageType": "accounting_storage/none", "MinJobAge": "10 sec"}
    warned = list(check.judge_setup(Slurm(account="shop"), setup))
    assert [one.level for one in warned] == [Level.WARN, Level.WARN]
    assert not list(check.judge_setup(Slurm(), {"MinJobAge": "300 sec"}))


def test_a_node_is_judged_by_what_it_says() -> None:
    text = (
        "motd\nsm-check: node one\nsm-check: date 100\nsm-check: missing tmux\nsm-check: broken x"
    )
    told = check.read_marks(text)
    assert told["node"] == ["one"]
    found = list(check.judge_node(cast("Project", None), told, 100.0, ""))
    assert [one.what for one in found] == ["no tmux on it", "sm does not run on it: x"]
    assert "apt-get install tmux" in found[0].advice
    late = {"node": ["one"], "date": ["200"], "version": [f"sm, version {version()}"]}
    words = [one.what for one in check.judge_node(cast("Project", None), late, 100.0, "")]
    assert words == [f"sm {version()} there, as here", "its clock is 100 s ahead"]
    busy = "srun: error: Unable to allocate resources: Immediate execution impossible, …"
    assert check.judge_refusal(busy).level is Level.WARN
    assert check.judge_refusal("srun: error: else").level is Level.FAIL


def test_the_look_at_a_node_removes_what_it_has_made_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "sm"
    program.write_text('#!/bin/sh\ntouch "$SM_STATE_ROOT/file"; echo "sm $1"\n')
    program.chmod(0o755)
    settings = Slurm(sm=str(program), state=str(tmp_path / "%N"))
    for name, stays in (("sm-check-0", False), ("sm-dev-7", True)):
        done = subprocess.run(
            ["bash", "-c", write_check(settings, name, "harb", ["bash", "nowhere"])],
            env={"SLURMD_NODENAME": "one", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        told = check.read_marks(done.stdout)
        assert (told["missing"], told["node"], told["facts"]) == (["nowhere"], ["one"], ["sm host"])
        assert (tmp_path / "one" / name).exists() is stays
