"""What others could read of the processes that live on: their environment."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import MakeStage
from tests.helpers import wait_for


def processes_of(state_root: Path) -> dict[str, str]:
    """The environments of what was started for this state root, by command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes().decode("utf-8", "replace")
            if f"SM_STATE_ROOT={state_root}\0" in environment:
                command = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
                found[command.replace("\0", " ")] = environment
    return found


def test_what_lives_on_has_no_token_of_its_starters_shell(
    stage_of: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "planted-in-the-shell")
    monkeypatch.setenv("SM_SERVE_TOKEN", "planted-in-the-shell")
    monkeypatch.setenv("AGENT_KEY", "for-the-agent")
    stage = stage_of()
    config = yaml.safe_load(stage.config.read_text())
    config["agent"]["pass_env"] = ["AGENT_KEY"]
    stage.config.write_text(yaml.safe_dump(config))
    stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the agent")

    def monitors() -> list[str]:
        known = processes_of(stage.ctx.root.path)
        return [known[command] for command in known if " monitor dev-harb-1" in command]

    [monitor] = wait_for(monitors, "the monitor")
    assert "AGENT_KEY=for-the-agent\0" in monitor
    for command, environment in processes_of(stage.ctx.root.path).items():
        assert "planted-in-the-shell" not in environment, command
