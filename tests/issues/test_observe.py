from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.issues.observe import observe
from sm.sessions import agent_process
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.e2e.stage import make_stage
from tests.helpers import put_session


@pytest.fixture
def session(tmp_path: Path, root: Root) -> IssueSession:
    """Of an agent whose phase file is empty, and whose worktree is the clone."""
    project = make_stage(tmp_path, auto=False, settings=None).project
    issue = project.forge.add_issue("Mend it", body="", labels=(), author="ada").number
    made = put_session(project, issue)
    made.worktree.mkdir(parents=True)
    return made


@pytest.mark.parametrize("mtime", [1.0, 4e9], ids=["1970", "future"])
def test_phase_of_an_impossible_time_that_is_written_during_the_look_waits_from_now_on(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch, mtime: float
) -> None:
    """Else it is answered with that time, is known from then on, and CI is said to be late."""
    path = session.root.phase("harb", session.issue)

    def write(*_: object) -> bool:
        path.write_text("PHASE:awaiting_ci\n")
        os.utime(path, (mtime, mtime))
        return True

    monkeypatch.setattr(agent_process, "is_reachable", write)
    found = observe(session)
    assert abs(found.write.at - time.time()) < 50
    assert found.facts.now < found.facts.ci_due_at
