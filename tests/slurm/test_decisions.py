"""What is decided about jobs: their options, their script, and how their sessions stand."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import cast

import pytest

from sm.adapters.process import Result
from sm.base.errors import SmError, TemporaryError
from sm.issues.runners import Placement, Standing
from sm.plugins.hosts.node.job import JobOrder
from sm.plugins.hosts.slurm.job import run_job
from sm.plugins.hosts.slurm.queue import (
    QueueError,
    SlurmJob,
    explain,
    list_options,
    name_job,
    read_jobs,
    write_note,
)
from sm.plugins.hosts.slurm.reports import JobReport, Lack
from sm.plugins.hosts.slurm.runner import make_shown
from sm.plugins.hosts.slurm.script import write_call, write_job
from sm.plugins.hosts.slurm.settings import Slurm
from sm.plugins.hosts.slurm.standing import find_job, judge, list_failed
from sm.sessions.project import Project
from sm.store.paths import Root

FAILED = "sbatch: error: Batch job submission failed:"
RULES = """{"review":true,"ci":false,"trusted":["o'hara"]}"""
PLACEMENT = Placement(
    project="harb",
    issue=7,
    session="dev-harb-7",
    runner="slurm",
    host="slurm",
    attempt=2,
    claim="c",
)


def job(state: str, *, attempt: int = 2, number: str = "5", words: str = "") -> SlurmJob:
    return SlurmJob(number, "mine", state, "Licenses", "one", attempt, words)


@pytest.mark.parametrize(
    ("state", "standing"),
    [
        ("PENDING", Standing.WAITING),
        ("RUNNING", Standing.RUNNING),
        ("COMPLETING", Standing.RUNNING),
        ("SUSPENDED", Standing.SILENT),
        ("COMPLETED", Standing.OVER),
        ("CANCELLED", Standing.LOST),
        ("NODE_FAIL", Standing.LOST),
        ("TIMEOUT", Standing.LOST),
        ("FAILED", Standing.LOST),
        ("ANYTHING_NEW", Standing.LOST),
    ],
)
def test_how_a_session_stands_is_how_its_job_does(state: str, standing: Standing) -> None:
    assert judge(PLACEMENT, job(state), 1.0).standing is standing


def test_a_job_that_answers_without_its_session_is_lost_and_one_that_begins_is_not() -> None:
    seen = judge(PLACEMENT, job("RUNNING"), 1.0, is_gone=True)
    assert seen.standing is Standing.LOST
    assert seen.words == "its job runs, and knows nothing of it any more"
    assert judge(PLACEMENT, job("COMPLETED"), 1.0, is_gone=True).standing is Standing.OVER


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        (None, "its agent on one to be heard"),
        (Lack.TO_BEGIN, "its session to begin in its job on one"),
        (Lack.ENDED, "its job on one to end: its session there is over"),
    ],
)
def test_what_a_job_lacks_is_told_instead_of_what_it_said_last(
    lacks: Lack | None, words: str
) -> None:
    said = JobReport(2, 7.0, lacks=lacks) if lacks else None
    shown = make_shown(judge(PLACEMENT, job("RUNNING"), 1.0), said)
    assert (shown.row, shown.words) == (None, words)


def test_a_job_that_was_put_back_once_its_session_has_ended_is_lost_at_once() -> None:
    seen = judge(PLACEMENT, job("PENDING", words="handed over"), 1.0)
    assert seen.standing is Standing.LOST, "it would begin in two minutes, to begin nothing"
    assert seen.words == "Slurm has put its job back: handed over"


def test_a_job_that_slurm_has_forgotten_is_lost() -> None:
    assert judge(PLACEMENT, None, 1.0).standing is Standing.LOST


def test_the_job_of_another_attempt_is_none_of_this_one() -> None:
    jobs = [job("RUNNING", attempt=1, number="4"), job("PENDING", number="10"), job("FAILED")]
    found = find_job(jobs, "mine", 2)
    assert found
    assert found.id == "10", "the latest, by number"
    assert find_job(jobs, "other", 2) is None


def test_a_job_that_failed_counts_until_the_session_has_another() -> None:
    failed, later = job("FAILED", number="9"), job("RUNNING", number="10")
    assert list_failed([failed], ["mine", "other"]) == {"mine": failed}
    assert list_failed([failed, later], ["mine"]) == {}
    assert list_failed([job("FAILED", number="11"), later], ["other"]) == {}


def test_what_squeue_says_is_read_back() -> None:
    note = write_note(2, "cannot read\nthe clone | or so")
    line = f"5|sm-dev-harb-7-ab|RUNNING|None|one|{note}"
    [found] = read_jobs([line, "not ours", "6|other|RUNNING|None|two|a comment of theirs"][:2])
    assert (found.attempt, found.node) == (2, "one")
    assert found.words == "cannot read the clone | or so"
    [other] = read_jobs(["6|other|RUNNING|None|two|a comment of theirs"])
    assert other.attempt == 0


def test_a_job_is_begun_once_and_only_by_us() -> None:
    options = list_options(Slurm(), PLACEMENT, "name")
    assert {"--dependency=singleton", "--no-requeue", "--export=NIL"} <= set(options)
    assert not [one for one in options if one.startswith(("--time", "--signal", "--partition"))]


def test_what_is_configured_is_asked_for() -> None:
    settings = Slurm(
        partition="long",
        memory="4G",
        licenses=("claude:1", "seats:2"),
        time_limit_s=7200,  # type: ignore[arg-type]
        options=("--constraint=ssd",),
    )
    options = list_options(settings, PLACEMENT, "name")
    assert "--licenses=claude:1,seats:2" in options
    assert {"--partition=long", "--mem=4G", "--time=120", "--signal=B:USR1@300"} <= set(options)
    assert options[-1] == "--constraint=ssd"


def test_two_installations_of_a_user_have_jobs_of_their_own(tmp_path: Path) -> None:
    one, other = Root(tmp_path / "one"), Root(tmp_path / "other")
    assert name_job(one, "dev-harb-7") == name_job(one, "dev-harb-7")
    assert name_job(one, "dev-harb-7") != name_job(other, "dev-harb-7")


def test_a_script_survives_any_path(tmp_path: Path) -> None:
    place = tmp_path / "a 'quoted' $HOME"
    program = place / "sm"
    place.mkdir()
    program.write_text('#!/bin/sh\necho "$SM_STATE_ROOT|$SM_TMUX_SOCKET|$SM_CONFIG|$*"\n')
    program.chmod(0o755)
    settings = Slurm(sm=str(program), config=f"{place}/%N.yaml", state=str(place / "%N"))
    for text in (write_job(settings, PLACEMENT, "name", RULES), write_call(settings, "name")):
        done = subprocess.run(
            ["sh", "-c", text, "sm", "host", "serve"],
            env={"SLURMD_NODENAME": "one", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(f"{place}/one/name|name|{place}/one.yaml|host ")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("squeue: error: Unable to contact slurm controller (connect failure)", QueueError),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", QueueError),
        ("squeue: error: Munge encode failed: Failed to access 'socket'", QueueError),
        (f"{FAILED} Job violates accounting/QOS policy (job submit limit, …)", TemporaryError),
        (f"{FAILED} Resource temporarily unavailable", TemporaryError),
        (f"{FAILED} Required partition not available (inactive or drain)", TemporaryError),
        (f"{FAILED} Invalid partition name specified", SmError),
        (f"{FAILED} Requested time limit is invalid (missing or exceeds some limit)", SmError),
    ],
)
def test_what_is_worth_another_try_is_told_from_what_is_refused(
    said: str, kind: type[SmError]
) -> None:
    assert type(explain(Result(1, "", said))) is kind


def test_a_job_that_slurm_begins_again_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    said = run_job(cast("Project", None), JobOrder(7, 1, "c", 300), 0)
    assert said == "begun again by Slurm: the next attempt is another job"
