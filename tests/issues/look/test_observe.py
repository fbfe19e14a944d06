from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.model import BOT, PullState
from sm.base.phase import Phase
from sm.config.load import load
from sm.issues.look import phase_file
from sm.issues.look.observe import find_first, observe
from sm.plugins.hosts.node.report import report
from sm.sessions import plan
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.e2e.stage import make_stage
from tests.helpers import Repository, git, make_repository, open_project, put_session, sm_yaml
from tests.residents import settle


@pytest.mark.parametrize("mtime", [1, 4_000_000_000], ids=["1970", "future"])
def test_phase_of_an_impossible_time_that_comes_during_the_look_waits_from_now_on(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch, mtime: int
) -> None:
    """Else it is answered with that time, is known from then on, and CI is said to be late."""
    project = make_stage(tmp_path, auto=False, settings=None).project
    session = put_session(project, project.forge.issues.add("Mend it", author="ada").number)
    session.worktree.mkdir(parents=True)
    phase = root.phase("harb", session.issue)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tmux").write_text(
        "#!/bin/sh\n"
        f"echo {Phase.AWAITING_CI} >'{tools}/phase'\n"
        f"touch -d @{mtime} '{tools}/phase'\n"
        f"mv '{tools}/phase' '{phase}'\n"
        f"exec '{shutil.which('tmux')}' \"$@\"\n"
    )
    (tools / "tmux").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    found = observe(session)
    assert found.write.phase is Phase.AWAITING_CI
    assert abs(found.write.at - time.time()) < 50
    assert found.facts.now < found.facts.ci_due_at


def test_others_may_push_to_the_base_of_a_branch_that_is_on_offer(
    tmp_path: Path, root: Root, tmux_socket: str
) -> None:
    """The base is not fetched each time; a branch that was set back to it has nothing to offer."""
    assert root.path
    assert tmux_socket
    stage = make_stage(tmp_path, auto=False, settings=None)
    project, clone = stage.project, stage.repository.clone
    session = put_session(
        project,
        project.forge.issues.add("Mend it", author="ada").number,
        phase=f"{Phase.AWAITING_REVIEW}\n",
    )
    base = git(clone, "rev-parse", "main")
    git(clone, "worktree", "add", "-q", "-b", session.record.branch, str(session.worktree))
    stage.push_work(session.issue)
    project.forge.pulls.open(session.record.branch, "main", "Mend it", author=BOT)
    git(tmp_path, "clone", "-q", str(stage.repository.bare), "colleague")
    Repository(stage.repository.bare, tmp_path / "colleague").commit("other", "theirs")
    seen = observe(session).facts
    assert seen.pull is PullState.OPEN
    assert seen.pushed
    assert git(clone, "rev-parse", "refs/remotes/origin/main") == base

    git(session.worktree, "reset", "-q", "--hard", base)
    git(session.worktree, "push", "-q", "--force", "origin", "HEAD")
    assert not observe(session).facts.pushed


@pytest.mark.parametrize(
    ("first", "expected"),
    [("", ""), ("s-1", "s-1"), ("harb#8", "harb-8"), ("harb#7", ""), ("harb#9", ""), ("s-2", "")],
)
def test_only_another_session_that_runs_is_asked_first(
    root: Root, tmp_path: Path, first: str, expected: str
) -> None:
    config = load(sm_yaml(tmp_path), os.environ, tmp_path)
    known = config.projects[0]
    escalation = structs.replace(known.escalation, first=first)
    project = Project(config, structs.replace(known, escalation=escalation))
    asking = put_session(project, 7)
    there = put_session(project, 8)
    put_session(project, 9, alive=False)
    settle(root, tmp_path, "s-1")
    found = find_first(asking)
    names = {"harb-8": there.name}
    assert (found.name if found else "") == names.get(expected, expected)


def test_a_machine_at_work_for_another_has_people_told_nothing_meanwhile(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    config = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(config))
    project = open_project(config)
    asking = put_session(project, 7, phase="PHASE:escalate\nReason: which?\n")
    write = phase_file.read(root, project.name, 7)
    assert write
    first = Receipt(
        time.time(), "k", "first-escalate", write.id, verb=StepVerb.CONSULT, detail="ann"
    )

    def is_told() -> bool:
        told: bool = report(project, [(asking.name, 0)]).rows[asking.name]["inside"]["told"]
        return told

    plan.add_receipt(asking.dir, first)
    assert is_told(), "the other machine tells them nothing"
    plan.add_receipt(
        asking.dir, Receipt(time.time(), "l", "escalate", write.id, verb=StepVerb.NOTIFY)
    )
    assert not is_told(), "no channel of this machine does"
