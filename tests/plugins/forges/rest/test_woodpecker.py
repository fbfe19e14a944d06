"""Woodpecker beside a forge: the step that failed, its log, and another run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.errors import AtWorkError, UnreachableError
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import BOT, CheckState
from sm.adapters.forge.protocol import Forge
from sm.base.errors import UsageError
from sm.plugins.forges.rest.woodpecker import LATE_S
from tests.forges.server import Fault, Reply, Site
from tests.forges.sides import RemoteSide, remote_side
from tests.forges.state import Status
from tests.forges.woodpecker import PAGE, REPOSITORY, Made, Woodpecker, woodpecker
from tests.hub import make_hub


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Woodpecker, Site]]:
    with woodpecker() as found:
        yield found


@pytest.fixture
def wood(server: tuple[Woodpecker, Site]) -> Woodpecker:
    known, _ = server
    known.steps, known.errors, known.reruns, known.may_rerun = {}, [], [], True
    known.unbegun = {}
    return known


@pytest.fixture
def side(tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side("github", make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


@pytest.fixture
def forge(side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker) -> Forge:
    token = side.folder / "wood-token"
    token.touch(mode=0o600)
    token.write_text(wood.token)
    settings = structs.replace(
        side.project.forge, woodpecker_url=server[1].url, woodpecker_token_file=token
    )
    return open_forge(structs.replace(side.project, forge=settings), None, side.folder)


def said(side: RemoteSide, server: tuple[Woodpecker, Site], word: str, of: int = REPOSITORY) -> str:
    """A commit with the status that Woodpecker has written for its pipeline 5."""
    head = side.hub.push("fix/1")
    side.open().pulls.open("fix/1", "main", "a", author=BOT)
    status = Status(1, head, "ci/woodpecker/pr/test", word, time.time())
    status.url = f"{server[1].url}/repos/{of}/pipeline/5"
    side.state.statuses.append(status)
    return head


def test_the_step_that_failed_comes_with_its_log(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [
        Made(71, "clone", "success", type="clone"),
        Made(72, "unit", "failure", "\x1b[31mE  boom\x1b[0m\ntoken=ghp_" + "a1" * 18),
        Made(73, "deploy", "skipped"),
    ]
    head = said(side, server, "failure")
    found = forge.checks.read(head)
    assert found.state is CheckState.FAILURE
    assert found.step == "ci/woodpecker/pr/test: unit"
    assert found.log.splitlines()[0] == "E  boom"
    assert "ghp_" not in found.log
    assert found.outage == ""
    assert Path(found.file).read_text() == found.log


def test_a_status_that_names_another_repository_is_read_of_ours(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [Made(72, "unit", "failure", "ours")]
    assert forge.checks.read(said(side, server, "failure", of=99)).log == "ours\n"
    assert not [line for line in server[1].lines() if "/repos/99/" in line]


def test_a_clone_that_failed_is_no_fault_of_the_commit(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [Made(71, "clone", "failure", "no route to host", type="clone")]
    assert forge.checks.read(said(side, server, "failure")).outage == "the step 'clone' failed"


def test_a_log_that_comes_after_its_failure_is_waited_for(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [step := Made(72, "unit", "failure", None)]
    head = said(side, server, "failure")
    with pytest.raises(UnreachableError, match="has no log of the step 'unit' yet"):
        forge.checks.read(head)
    side.state.statuses[-1].at -= LATE_S
    assert "no log is to be had" in forge.checks.read(head).log
    side.state.statuses[-1].at += LATE_S
    step.log = "E  boom\n"
    assert forge.checks.read(head).log == "E  boom\n"


def test_a_step_without_a_log_says_why_and_costs_no_other_log(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [
        Made(71, "lint", "failure", "bad line"),
        Made(72, "unit", "failure", None, error="image 'python:3.99' not found"),
    ]
    found = forge.checks.read(said(side, server, "failure"))
    assert found.step == "ci/woodpecker/pr/test: lint, unit"
    assert found.log == "bad line\n\nunit: image 'python:3.99' not found"


def test_a_combination_of_a_matrix_is_told_from_the_others(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [
        Made(71, "unit", "failure", "one\n", axis=1),
        Made(72, "unit", "failure", "two\n", axis=2),
    ]
    head = said(side, server, "failure")
    status = side.state.statuses[0]
    status.context = "ci/woodpecker/pr/test/2"
    assert forge.checks.read(head).log == "one\n\ntwo\n", "the workflows of that name"
    status.url += "/3"
    assert forge.checks.read(head).log == "two\n"


def test_a_configuration_that_cannot_be_read_says_why(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5], wood.errors = [], ["steps.unit: missing image"]
    assert forge.checks.read(said(side, server, "error")).log == "steps.unit: missing image"


def test_a_failed_pipeline_is_run_again(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [Made(72, "unit", "failure")]
    head = said(side, server, "failure")
    forge.checks.rerun(head)
    assert wood.reruns == [5]
    wood.may_rerun = False
    with pytest.raises(UsageError, match="does not run it again"):
        forge.checks.rerun(head)
    side.state.statuses[0].word = "pending"
    with pytest.raises(AtWorkError):
        forge.checks.rerun(head)


def test_a_woodpecker_that_gives_nothing_keeps_no_failure_from_the_agent(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    wood.steps[5] = [Made(72, "unit", "failure", "ours")]
    head = said(side, server, "failure")
    wood.token, known = "another", wood.token
    try:
        assert "does not accept the token" in forge.checks.read(head).log
    finally:
        wood.token = known
    server[1].faults = [Fault(part="/logs/", reply=Reply(404))]
    found = forge.checks.read(head)
    assert (found.step, "no log is to be had" in found.log) == ("ci/woodpecker/pr/test: unit", True)


def test_an_address_that_is_no_woodpeckers_is_told(
    side: RemoteSide, server: tuple[Woodpecker, Site], wood: Woodpecker, forge: Forge
) -> None:
    """It answers 200 with its page to any path that it does not know."""
    head = said(side, server, "failure")
    server[1].respond = lambda _: Reply(raw=PAGE)
    try:
        assert "is forge.woodpecker_url right?" in forge.checks.read(head).log
    finally:
        server[1].respond = wood.respond


def test_a_pipeline_that_cannot_begin_has_failed_although_it_writes_no_status(
    side: RemoteSide, wood: Woodpecker, forge: Forge
) -> None:
    """As with a wrong .woodpecker.yaml."""
    head = side.hub.push("fix/1")
    number = side.open().pulls.open("fix/1", "main", "a", author=BOT).number
    since = forge.observe()
    assert since.pulls[0].check.state is CheckState.PENDING
    wood.unbegun = {"a" * 40: "another", head: "yaml: line 3: did not find expected key"}
    since = forge.observe(since)
    assert (since.pulls[0].check.state, since.pulls[0].check.step) == (
        CheckState.FAILURE,
        "woodpecker",
    )
    assert forge.observe(since).pulls[0].check.state is CheckState.FAILURE
    assert "line 3: did not find expected key" in forge.pulls.read(number).check.log


def test_a_woodpecker_that_is_silent_costs_nothing_else(
    side: RemoteSide, server: tuple[Woodpecker, Site], forge: Forge
) -> None:
    side.hub.push("fix/1")
    side.open().pulls.open("fix/1", "main", "a", author=BOT)
    server[1].faults = [Fault("/pipelines", drop=True, times=9)]
    found = forge.observe()
    server[1].faults = []
    assert [pull.branch for pull in found.pulls] == ["fix/1"]
    assert "/pipelines" in found.problems[0]
