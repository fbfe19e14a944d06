"""The context of an issue's agent: thresholds of its project, and who hears of a compaction."""

from __future__ import annotations

import pytest
import yaml

from sm.context.flags import read_flags, read_wake_threshold
from tests.e2e.conftest import MakeStage
from tests.e2e.test_hook_rows import Hooked, begin
from tests.helpers import wait_for

WARNING = "[sm context] Context at 41% (82,000 tokens). Consider"


@pytest.fixture
def hooked(stage_of: MakeStage) -> Hooked:
    """An issue of a project with thresholds of its own, which differ from the machine's."""
    stage = stage_of()
    config = yaml.safe_load(stage.config.read_text())
    config["context_monitor"] = {"warning_percentage": 40, "critical_percentage": 90}
    config["handoff_cycle"] = {"enabled": False}
    stage.config.write_text(yaml.safe_dump(config))
    return begin(stage, clear="/clear")


def shows(hooked: Hooked, percent: int) -> None:
    """What its status line says."""
    window = {
        "context_window_size": 200000,
        "total_input_tokens": percent * 2000,
        "used_percentage": percent,
    }
    hooked.call("status-line", "", context_window=window)


def test_an_issues_agent_is_warned_at_the_threshold_of_its_project(
    hooked: Hooked, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = hooked.stage.session(hooked.issue).dir
    wait_for(lambda: read_wake_threshold(directory) == 40, "the threshold")
    shows(hooked, 39)
    shows(hooked, 41)
    wait_for(lambda: read_flags(directory).warned, "the flag")
    capfd.readouterr()
    hooked.ends_turn()
    assert WARNING in capfd.readouterr().out  # what its hook has answered
    shows(hooked, 42)
    hooked.ends_turn()
    assert "[sm context]" not in capfd.readouterr().out
    assert read_wake_threshold(directory) == 90


def test_people_hear_of_a_compaction_on_the_issue_once(hooked: Hooked) -> None:
    hooked.call("pre-compact", "PreCompact", trigger="auto")
    told = "has lost its context to a compaction (auto)"
    wait_for(lambda: any(told in one for one in hooked.comments()), "the comment")
    hooked.stage.sm("react", "harb", str(hooked.issue))
    assert sum(told in one for one in hooked.comments()) == 1
    assert "handoff was too late" in hooked.trace()
