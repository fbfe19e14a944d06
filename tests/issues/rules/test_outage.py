"""Which failures of CI say nothing of the commit."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.model import Check, CheckState
from sm.config.schema import Ci
from sm.issues.rules.outage import END_LINES, find_outage

CI = Ci()


def found(log: str = "", step: str = "build", outage: str = "", ci: Ci = CI) -> str:
    check = Check(CheckState.FAILURE, "c" * 40, step, log=log, outage=outage)
    return find_outage(check, ci.infrastructure, ci.infrastructure_steps)


@pytest.mark.parametrize(
    ("log", "step", "reason"),
    [
        ("E  assert 1 == 2\n##[error]exit code 1\n", "build: Run tests", ""),
        ("##[error]THE RUNNER has received a shutdown signal.", "build", "##[error]THE RUNNER"),
        ("fatal: Could not resolve host: git.example.com\n", "build", "fatal: Could not resolve"),
        ("no route\n", "ci/woodpecker/pr/test: clone", "the step 'clone' failed"),
        ("x\n", "build, lint: Set up job", "the step 'Set up job' failed"),
        ("x\n", "clone the sheep", ""),
        ("", "", ""),
    ],
)
def test_ci_is_to_blame_by_the_end_of_its_log_or_by_its_step(
    log: str, step: str, reason: str
) -> None:
    said = found(log, step)
    assert said.startswith(reason)
    assert bool(said) is bool(reason)


def test_a_test_may_talk_of_a_lost_network() -> None:
    talk = "test_dns: Could not resolve host: example.invalid\n"
    assert found(talk + "E  boom\n" * END_LINES) == ""
    assert found(talk + "E  boom\n" * (END_LINES - 1))


def test_what_the_forge_knows_goes_first_and_a_project_may_look_for_nothing() -> None:
    assert found("x", outage="its runner was lost") == "its runner was lost"
    assert found("No space left on device", ci=Ci(infrastructure=())) == ""
    assert found("No space left on device", ci=Ci(infrastructure=("",))) == ""


def test_a_hostile_log_takes_no_more_time_than_its_length() -> None:
    began = time.process_time()
    assert found("Could not resolve hos" * 400_000) == ""
    assert time.process_time() - began < 1
