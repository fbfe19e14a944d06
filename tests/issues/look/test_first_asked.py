"""Who is asked before people: a session that runs, and never the one that asks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.config.load import load
from sm.issues.look import phase_file
from sm.issues.look.first_asked import find_first
from sm.plugins.hosts.node.report import report
from sm.sessions import plan
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import make_repository, open_project, put_session, sm_yaml
from tests.residents import settle


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
