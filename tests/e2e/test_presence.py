"""A person in a session's terminal while its work is merged, from the key to the session's end."""

from __future__ import annotations

import json
from pathlib import Path

from sm.adapters import procfs
from sm.base.refusal import Refusal
from sm.messages.presence import find_obstacle
from sm.sessions.presence_rule import Disturbance
from sm.store.paths import Root
from sm.views.news import Followed, read_news
from tests.e2e.stage import leave_merge, make_stage, started
from tests.helpers import wait_for
from tests.viewer import Viewer


def test_a_merge_is_told_at_once_and_its_session_ends_when_the_person_has_left(
    tmp_path: Path, root: Root, tmux_socket: str
) -> None:
    assert root.path
    assert tmux_socket
    stage = make_stage(tmp_path, auto=False, settings={"merge": {"by": "sm"}})
    try:
        issue = started(stage)
        session, pid = stage.session(issue), stage.agent_pid(issue)
        person = Viewer(session.tmux.attach_argv(session.name), (120, 40))

        def types() -> bool:
            person.type("x\x7f")
            return find_obstacle(session, Disturbance.END) is Refusal.TYPING

        wait_for(types, "the keys to be known", every_s=0.3)
        leave_merge(stage, issue)
        forge = stage.project.forge
        wait_for(lambda: forge.issues.read(issue).state == "closed", "the issue to be closed")
        assert procfs.find(pid)

        def is_held() -> bool:
            [shown] = json.loads(stage.sm("status", "--json").stdout)
            [row] = shown["sessions"]
            assert (row["phase"], row["problem"], row["need"]) == ("merged", "", None)
            return "the person in its terminal (its end waits)" in row["waits_for"]

        wait_for(is_held, "its end to wait", every_s=0.5)
        told, _ = read_news(stage.project.root.journal, 0, (Followed("harb"),))
        assert [line[9:] for line in told][-1] == f"harb: #{issue} merged"
        assert procfs.find(pid)

        person.type("\x02d")
        wait_for(person.has_ended, "the person to leave")
        person.close()
        wait_for(lambda: not stage.sessions(), "the end of the session")
        wait_for(lambda: procfs.find(pid) is None, "the agent's end")
    finally:
        stage.end()
