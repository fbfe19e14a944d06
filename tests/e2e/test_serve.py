"""Sessions that work on issues, over HTTP: messages and the end go the whole way to the forge."""

from __future__ import annotations

from tests.e2e.conftest import MakeStage
from tests.helpers import wait_for
from tests.serving import serving


def test_an_issues_session_is_told_and_ended_over_http(stage_of: MakeStage) -> None:
    stage = stage_of(auto=False)
    stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    with serving(stage.folder, env={"SM_CONFIG": str(stage.config)}) as served:
        (shown,) = served.get("/sessions").body["sessions"]
        assert (shown["id"], shown["name"]) == ("dev-harb-1", "harb#1")
        assert served.post("/sessions/harb%231/input", {"text": "Hello."}).body["status"] == "typed"
        wait_for(lambda: "Hello." in stage.told(), "the message")
        said = served.post("/sessions/dev-harb-1/kill", {}).body
        assert (said["status"], said["session_id"]) == ("killed", "dev-harb-1")
        ended, way_back = said["notes"]
        assert ended == "ended dev-harb-1; issue #1 is labelled blocked"
        assert "sm issue label harb#1 --remove blocked --add backlog" in way_back
        assert served.get("/sessions").body == {"sessions": []}
    assert not stage.sessions()
    assert "blocked" in stage.project.forge.issues.read(1).labels
