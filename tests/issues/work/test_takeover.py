from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from sm.adapters.forge.errors import MergeRefusedError
from sm.adapters.forge.model import ReviewState
from sm.issues.runners import Placement
from sm.issues.work import claim, wip
from sm.issues.work.takeover import (
    LostClaimError,
    claim_for,
    delete_taken_over,
    let_go,
    recall,
    take_over,
)
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.issues.nodes import Node, file_and_claim, make_node


@pytest.fixture
def stage(tmp_path: Path, root: Root) -> Stage:
    assert root.path
    return make_stage(tmp_path, auto=False, settings={"review": {"required": False}})


@pytest.fixture
def node(stage: Stage) -> Node:
    return make_node(stage, "one")


def list_refs(stage: Stage) -> dict[str, str]:
    lines = git(stage.repository.bare, "for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ") for line in lines.splitlines())


def push(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What an agent's own git does."""
    argv = ["git", "-C", str(folder), "push", *options, "origin", "HEAD"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(f"{name}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


def test_a_claim_for_another_host_names_it_and_the_attempt(stage: Stage) -> None:
    issue, placement = file_and_claim(stage, "one")
    assert (placement.host, placement.attempt, placement.session) == ("one", 1, "dev-harb-1")
    assert list_refs(stage)[claim.name_ref(issue.number)] == placement.claim
    project = stage.project
    said = claim.describe_owner(project.git, project.settings, issue.number)
    assert "on: one" in said
    assert "attempt: 1" in said


def test_it_is_no_claim_of_ours_for_a_version_that_knows_no_attempts(stage: Stage) -> None:
    """Such a version computes what its own claim would be, and leaves any other alone."""
    issue, _ = file_and_claim(stage)
    project, refs = stage.project, list_refs(stage)
    assert not claim.is_ours(project.git, project.settings, issue.number, project.root, refs)


def test_the_claim_of_this_machine_is_what_it_was_before(stage: Stage) -> None:
    """An older version and this one make the same commit, so each knows the other's claim."""
    project = stage.project
    number = stage.file_issue()
    made = claim.make_object(project.git, project.settings, number, project.root)
    text = project.git.commit_text(made)
    assert "attempt" not in text
    assert text.rstrip().endswith(f"project: harb\nissue: {number}")


def test_claiming_again_finds_the_attempt_that_is_there(stage: Stage) -> None:
    issue, placement = file_and_claim(stage, "one")
    moved = take_over(stage.project, placement, "two")
    again = claim_for(stage.project, issue.number, "elsewhere", "three")
    assert again is not None
    assert (again.host, again.attempt, again.claim) == ("two", 2, moved.claim)


def test_another_installation_has_the_issue(stage: Stage, node: Node) -> None:
    issue, placement = file_and_claim(stage)
    assert claim_for(node.project, issue.number, "elsewhere", "one") is None
    assert recall(node.project, issue.number, "elsewhere") is None
    with pytest.raises(LostClaimError):
        take_over(node.project, structs.replace(placement, claim="0" * 40), "x")


def test_what_the_last_attempt_pushes_is_refused_by_the_remote(stage: Stage, node: Node) -> None:
    issue, placement = file_and_claim(stage)
    tree = node.put_on_record(placement).worktree
    commit(tree, "a")
    assert push(tree).returncode == 0
    last = commit(tree, "b")
    take_over(stage.project, placement, "two")
    for options in ((), ("--force-with-lease",)):
        refused = push(tree, *options)
        assert refused.returncode, refused.stderr
    branch = list_refs(stage)[f"refs/heads/fix/{issue.number}"]
    said = git(stage.repository.bare, "log", "-1", "--format=%s", branch)
    assert said == f"Go on elsewhere, attempt 2 at #{issue.number}"
    assert last not in git(stage.repository.bare, "rev-list", branch)


def test_a_merge_at_the_last_attempts_head_is_refused_by_the_forge(
    stage: Stage, node: Node
) -> None:
    issue, placement = file_and_claim(stage)
    tree = node.put_on_record(placement).worktree
    head = commit(tree, "a")
    push(tree)
    forge = node.project.forge
    pull = forge.pulls.open(
        branch=f"fix/{issue.number}", base="main", title="a", body="", author="sm"
    )
    forge.pulls.review(pull.number, ReviewState.APPROVED, author="rita")
    take_over(stage.project, placement, "two")
    with pytest.raises(MergeRefusedError):
        forge.pulls.merge(pull.number, head=head, author="sm")


def test_only_one_of_several_takers_gets_the_next_attempt(stage: Stage) -> None:
    _, placement = file_and_claim(stage)

    def take(host: str) -> Placement:
        project = stage.project
        return take_over(Project(project.config, project.settings), placement, host)

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(take, ("a", "b", "c", "d")))
    # Whoever was too late finds what the first one did.
    assert {(one.attempt, one.claim) for one in taken} == {(2, taken[0].claim)}
    assert list_refs(stage)[claim.name_ref(placement.issue)] == taken[0].claim
    log = git(stage.repository.bare, "log", "--format=%s", f"fix/{placement.issue}")
    assert log.count("Go on elsewhere") == 1


@pytest.mark.parametrize("point", ["takeover:before-push", "takeover:after-push"])
def test_a_taker_that_was_killed_goes_on_where_it_was(stage: Stage, point: str) -> None:
    _, placement = file_and_claim(stage)
    run = (
        "import sys; from pathlib import Path; import os, msgspec\n"
        "from sm.config.load import load; from sm.sessions.project import Project\n"
        "from sm.issues.runners import Placement; from sm.issues.work.takeover import take_over\n"
        "config = load(Path(sys.argv[1]), os.environ, Path.cwd())\n"
        "take_over(Project(config, config.projects[0]),"
        " msgspec.json.decode(sys.argv[2], type=Placement), 'two')\n"
    )
    argv = [stage.environment["SM_PYTHON"], "-c", run, str(stage.config)]
    argv.append(msgspec.json.encode(placement).decode())
    killed = stage.run(*argv, check=False, env={"SM_CRASH_AT": point})
    assert killed.returncode == -9, killed.stderr
    taken = take_over(stage.project, placement, "two")
    assert taken.attempt == 2
    log = git(stage.repository.bare, "log", "--format=%s", f"fix/{placement.issue}")
    assert log.count("Go on elsewhere") == 1


def test_a_successor_gets_the_commits_that_were_not_pushed(stage: Stage, node: Node) -> None:
    issue, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    kept = commit(session.worktree, "a")
    assert wip.save(session)
    take_over(stage.project, placement, "two")
    assert kept in git(stage.repository.bare, "rev-list", f"fix/{issue.number}").split()


def test_letting_go_leaves_nothing_of_the_attempts(stage: Stage, node: Node) -> None:
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    commit(session.worktree, "a")
    wip.save(session)
    second = take_over(stage.project, placement, "two")
    assert not let_go(stage.project, placement)  # the claim is the second attempt's
    assert let_go(stage.project, second)
    assert not [ref for ref in list_refs(stage) if ref.startswith("refs/sm/")]


def test_a_branch_that_was_taken_over_after_its_merge_goes_unless_work_was_pushed_to_it(
    stage: Stage, node: Node
) -> None:
    _, placement = file_and_claim(stage)
    session = node.put_on_record(placement)
    merged = commit(session.worktree, "work.txt")
    assert push(session.worktree).returncode == 0
    moved = take_over(stage.project, placement, "two")
    branch = session.record.branch
    assert delete_taken_over(stage.project, branch, merged)
    assert f"refs/heads/{branch}" not in list_refs(stage)
    commit(session.worktree, "more.txt")
    assert push(session.worktree).returncode == 0
    take_over(stage.project, moved, "one")
    assert not delete_taken_over(stage.project, branch, merged)
    assert f"refs/heads/{branch}" in list_refs(stage)
