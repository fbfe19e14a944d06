"""bin/demo --slurm as a person runs it: to its end, and interrupted on the way."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.demos import END_S, find_place, list_processes, start
from tests.helpers import HANG_S
from tests.slurm.cluster import MISSING

NEEDS_SLURM = pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {MISSING}")
ISSUE = re.compile(r"^  #[1-5] \w+ +((?:one|two)(?:, (?:one|two))*)  \w", re.MULTILINE)


@NEEDS_SLURM
@pytest.mark.long_lived
@pytest.mark.timeout(END_S + 30)
def test_issues_are_merged_by_jobs_on_two_nodes_and_nothing_is_left() -> None:
    demo = start("--slurm")
    said, complained = demo.communicate(timeout=END_S)

    assert demo.returncode == 0, said + complained
    assert "5 of 5 merged" in said
    places = ISSUE.findall(said)
    assert len(places) == 5, "where each was merged"
    assert {"one", "two"} == {node for place in places for node in place.split(", ")}
    assert re.search(r"squeue: \d+ sm-dev-textkit-\S+ PENDING \(Licenses\)", said)
    assert re.search(r"\$ sm status\n(.*\n)+.* one +dev-textkit-\d", said)
    assert "its job was cancelled with uncommitted work" in said
    assert not find_place(said).exists()
    assert not list_processes(find_place(said))


@NEEDS_SLURM
@pytest.mark.long_lived
def test_an_interrupted_one_leaves_nothing() -> None:
    demo = start("--slurm")
    assert demo.stdout is not None
    said = ""
    while "RUNNING" not in said:
        line = demo.stdout.readline()
        assert line, said
        said += line
    os.killpg(demo.pid, signal.SIGINT)
    more, _ = demo.communicate(timeout=HANG_S)
    assert demo.returncode == 130, said + more
    assert not find_place(said).exists()
    assert not list_processes(find_place(said))


def test_without_slurm_it_says_what_to_install(tmp_path: Path) -> None:
    for program in ("bash", "dirname", "readlink"):
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    demo = start("--slurm", path=str(tmp_path))
    said, complained = demo.communicate(timeout=30)
    assert (demo.returncode, said) == (1, "")
    assert complained.startswith("demo: Slurm is missing here: ")
    assert "sbatch, squeue" in complained
    assert "apt-get install slurm-wlm munge" in complained
