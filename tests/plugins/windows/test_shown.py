"""What `sm status` and `sm needs` say of a hold."""

from __future__ import annotations

import json
import time
from pathlib import Path

from sm.sessions.failure import SLACK_S
from sm.store.paths import Root
from tests.e2e.stage import make_stage
from tests.plugins.windows.test_hold import RESET, SETTINGS, begin, tell


def test_the_status_says_what_is_used_and_when_it_goes_on(
    tmp_path: Path, root: Root, sealed: Path
) -> None:
    stage = make_stage(tmp_path, auto=False, settings=SETTINGS)
    session = begin(stage, sealed / ".claude")
    assert "begins nothing new" not in stage.sm("status").stdout
    assert json.loads(stage.sm("status", "--json").stdout)[0]["objection"] is None
    tell(session, f"94.4 {RESET} 12 {RESET + 86400}")
    until = RESET + SLACK_S
    day = "%H:%M" if time.localtime(until)[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M"
    told = f"five hours: 94 % used; goes on at {time.strftime(day, time.localtime(until))}"
    first, *rest = stage.sm("status").stdout.splitlines()
    assert first == f"harb begins nothing new: {told}"
    assert any(f"held: {told}" in line for line in rest)
    (seen,) = json.loads(stage.sm("status", "--json").stdout)
    assert seen["objection"] == {
        "shown": "five hours: 94 % used",
        "until": until,
        "told": told,
    }
    assert seen["sessions"][0]["phase"] == "parked"
    assert not json.loads(stage.sm("needs", "--json").stdout)
    number = stage.file_issue()
    assert f"nothing new is taken up: {told}" in stage.poll().stdout
    assert number not in [one.issue for one in stage.sessions()]
    stage.end()
