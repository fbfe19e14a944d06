"""A session is at the same wherever it is shown, and says since when, and what proves it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.forge.model import PullState
from sm.config.load import load
from sm.plugins.http import views
from sm.sessions import agent_state
from sm.sessions.activity import ActivityReport, Evidence, Proof
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.sessions.session import AdHocSession, AnySession
from sm.store.paths import Root
from sm.views.contexts import list_gauges, read_gauge
from sm.views.family import list_descendants, read_row
from sm.views.project import read_overview
from sm.views.session import STATES
from sm.views.session_row import KIN, tell
from sm.views.states import ShownState
from tests.helpers import (
    a_pull,
    an_issue,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
)
from tests.residents import settle
from tests.shell import REPOSITORY
from tests.views.test_session import done, write_of

NOW = str(os.getpid())
GONE = "999999"


@pytest.fixture
def ann(tmp_path: Path, root: Root) -> AdHocSession:
    return settle(root, tmp_path, "s-ann", provider="claude")


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    return open_project(sm_yaml(tmp_path, trusted=["ada"]))


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


def agrees(session: AnySession) -> tuple[ShownState, float, Proof]:
    """What all views say that it is at."""
    kin, full, http = (
        read_row(session),
        read_gauge(session),
        views.show_session(session.machine, session),
    )
    found = (kin.state, kin.state_since, kin.proof)
    assert found == (full.state, full.state_since, full.proof)
    assert found == (http.status, http.state_since or 0.0, http.proof)
    return found


# The words


def test_the_guide_has_every_state_and_every_proof() -> None:
    text = (REPOSITORY / "docs" / "GUIDE.md").read_text().partition("### States")[2]
    words = re.findall(r"^\| `([^`]+)` \|", text.partition("\n## ")[0], re.MULTILINE)
    assert sorted(words) == sorted([*ShownState, *Evidence])


def test_what_hooks_and_issues_say_are_states() -> None:
    assert {str(each) for each in agent_state.State if each} <= set(ShownState)
    assert len({state for state, _ in STATES}) == 11


# The files

_opened: list[str] | None = None


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str):
        _opened.append(arguments[0])


sys.addaudithook(_note)


def opened(folder: Path, look: Callable[[], object]) -> dict[str, int]:
    """The files of `folder` that `look` opens, and how often each."""
    global _opened
    found: list[str] = []
    _opened = found
    look()
    _opened = None
    return Counter(Path(name).name for name in found if Path(name).parent == folder)


def test_each_file_of_a_session_is_read_once_for_a_list(ann: AdHocSession) -> None:
    write(ann.dir.state, "idle 2000.0 c1 p1\n")
    read = opened(ann.dir.path, lambda: read_row(ann))
    assert {"agent.pid", "state"} <= read.keys()
    assert set(read.values()) == {1}


def test_each_file_of_an_issues_session_is_read_once_for_its_row(project: Project) -> None:
    session = put_session(project, 1)
    put_snapshot(project, an_issue(1))
    read = opened(session.dir.path, lambda: read_overview(project, time.time()).sessions)
    assert read.pop("agent.pid") == 2  # whether it runs, and which it is
    assert {"identity.json", "receipts.jsonl", "state"} <= read.keys()
    assert set(read.values()) == {1}


# Agents


@pytest.mark.parametrize("said", ["idle", "busy", "waiting", "dialog", "limited"])
def test_what_a_hook_has_said_is_proved_by_its_last_call(ann: AdHocSession, said: str) -> None:
    write(ann.dir.state, f"{said} 2000.0 c1 p1\n")
    write(ann.dir.events, "")
    os.utime(ann.dir.events, (2500.0, 2500.0))
    assert agrees(ann) == (said, 2000.0, Proof(Evidence.HOOK, 2500.0))


def test_what_only_the_screen_has_shown_is_proved_by_it(ann: AdHocSession) -> None:
    write(ann.dir.state, "dialog 2000.0 c1 p1\n")
    agent_state.overrule(ann.dir, agent_state.read(ann.dir), agent_state.State.IDLE)
    state, since, proof = agrees(ann)
    assert (state, proof) == (ShownState.IDLE, Proof(Evidence.SCREEN, since))
    assert time.time() - 60 < since <= time.time()


def test_an_agent_without_hooks_is_proved_by_its_process(ann: AdHocSession) -> None:
    os.utime(ann.dir.agent_pid, (3000.0, 3000.0))
    assert agrees(ann) == (ShownState.RUNNING, 3000.0, Proof(Evidence.PROCESS, what=NOW))


def test_nobody_knows_since_when_an_agent_is_dead_that_did_not_say_so(ann: AdHocSession) -> None:
    write(ann.dir.agent_pid, f"{GONE} 5\n")
    write(ann.dir.state, "busy 2000.0 c1 p1\n")
    assert agrees(ann) == (ShownState.DEAD, 0.0, Proof(Evidence.PROCESS, what=GONE))
    assert tell(read_row(ann), KIN, time.time())["state_age_s"] == 0.0
    write(ann.dir.state, "dead 2000.0 c1 p1\n")
    assert agrees(ann) == (ShownState.DEAD, 2000.0, Proof(Evidence.PROCESS, what=GONE))


def test_what_has_no_agent_is_proved_by_its_record(ann: AdHocSession) -> None:
    ann.dir.agent_pid.unlink()
    assert agrees(ann) == (
        ShownState.CUT_SHORT,
        ann.record.created_at,
        Proof(Evidence.RECORD, ann.record.created_at, "identity.json"),
    )
    write(ann.dir.over, "has ended\n")
    os.utime(ann.dir.over, (4000.0, 4000.0))
    assert agrees(ann) == (ShownState.ENDED, 4000.0, Proof(Evidence.RECORD, 4000.0, "over"))


# Issues


def test_an_issue_says_since_when_and_what_proves_it(project: Project) -> None:
    start = time.time() - 100
    put_session(project, 1)
    put_session(project, 2, phase="PHASE:awaiting_ci\n")
    asking = put_session(project, 3, phase="PHASE:escalate\n")
    put_session(project, 4, alive=False)
    lost = put_session(project, 5, alive=False)
    put_session(project, 6)
    put_session(project, 7, receipts=(), alive=False)
    put_session(project, 8, age_s=100_000)
    write(lost.dir.agent_pid, f"{GONE} 5\n")
    done(asking, StepVerb.NOTIFY, "escalate", write_of(project, 3))
    merged = a_pull(21, "fix/6", merged_as="a" * 40, state=PullState.MERGED, closed_at=start + 9e3)
    put_snapshot(project, *map(an_issue, range(1, 9)), merged)
    found = {row.issue: row for row in read_overview(project, time.time()).sessions}
    proved = {number: (row.state, row.proof.kind, row.proof.what) for number, row in found.items()}
    assert proved == {
        1: (ShownState.WORKING, Evidence.PROCESS, NOW),
        2: (ShownState.AWAITING_CI, Evidence.PHASE, "PHASE:awaiting_ci"),
        3: (ShownState.ESCALATED, Evidence.RECEIPT, "escalate"),
        4: (ShownState.CRASHED, Evidence.PROCESS, ""),
        5: (ShownState.CRASHED, Evidence.PROCESS, GONE),
        6: (ShownState.MERGED, Evidence.COMMIT, "a" * 40),
        7: (ShownState.STARTING, Evidence.RECORD, "identity.json"),
        8: (ShownState.CRASHED, Evidence.RECEIPT, ""),
    }
    for number, since in ((1, start), (2, start + 100), (3, start + 100), (6, start + 9e3)):
        assert abs(found[number].state_since - since) < 60
    assert (found[4].state_since, found[5].state_since) == (0.0, 0.0)
    assert start + 100 - 100_000 < found[8].state_since < start


def test_a_hook_proves_that_an_agent_works_on_its_issue(tmp_path: Path, root: Root) -> None:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    config = load(sm_yaml(tmp_path, agent={"profile": "claude"}), os.environ, tmp_path)
    project = Project(config, config.projects[0])
    session = put_session(project, 1)
    write(session.dir.state, f"busy {time.time():.6f} c1 p1\n")
    write(session.dir.events, "")
    os.utime(session.dir.events, (2500.0, 2500.0))
    put_snapshot(project, an_issue(1))
    [row] = read_overview(project, time.time()).sessions
    assert (row.state, row.proof) == (ShownState.WORKING, Proof(Evidence.HOOK, 2500.0))
    assert abs(row.state_since - session.record.created_at) < 1


# Damage


def test_what_is_damaged_says_so_everywhere(project: Project) -> None:
    session = put_session(project, 1)
    session.dir.receipts.unlink()
    session.dir.receipts.mkdir()
    put_snapshot(project, an_issue(1))
    record = settle(project.root, project.root.path, "s-bob")
    write(record.dir.identity, "{")
    [row] = read_overview(project, time.time()).sessions
    assert (row.state, row.proof.kind) == (ShownState.DAMAGED, Evidence.ERROR)
    assert row.proof.what == row.problem != ""
    [_, full] = list_gauges(project.root)
    [_, http] = views.show_all(project.machine)
    assert (full.state, full.id, full.name) == (ShownState.DAMAGED, "s-bob", "s-bob")
    assert (http.status, http.id, http.name) == (ShownState.DAMAGED, "s-bob", None)
    assert http.error == full.notes[0] == full.proof.what == http.proof.what
    assert [kin.id for kin in list_descendants(project.root)] == [session.name]


def test_a_session_that_cannot_be_read_keeps_its_name_and_hides_no_other(
    project: Project, ann: AdHocSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: AnySession) -> ActivityReport:
        raise OSError("no such disk")

    monkeypatch.setattr("sm.sessions.activity.look", fail)
    assert [(one.name, one.state, one.notes) for one in list_gauges(project.root)] == [
        ("s-ann", ShownState.DAMAGED, ("no such disk",))
    ]
    [http] = views.show_all(project.machine)
    assert (http.name, http.status, http.error, http.waiting) == (
        "s-ann",
        "damaged",
        "no such disk",
        None,
    )
