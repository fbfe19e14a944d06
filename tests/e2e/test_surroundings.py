"""What others could read of our processes: their command lines, and their environment."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import MakeStage
from tests.e2e.stage import kill
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
        known = processes_of(stage.project.root.path)
        return [known[command] for command in known if " monitor dev-harb-1" in command]

    [monitor] = wait_for(monitors, "the monitor")
    assert "AGENT_KEY=for-the-agent\0" in monitor
    for command, environment in processes_of(stage.project.root.path).items():
        assert "planted-in-the-shell" not in environment, command


@contextlib.contextmanager
def reading_command_lines(word: str, found: set[str]) -> Iterator[None]:
    """Look at all command lines of this machine again and again, for one that holds `word`."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    line = path.read_bytes()
                    if word.encode() in line:
                        found.add(line.replace(b"\0", b" ").decode("utf-8", "replace"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def test_no_command_line_tells_what_an_issue_is_about(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"ci": {"command": "echo boom zebra''fish; false", "poll": "1s"}})
    found: set[str] = set()
    with reading_command_lines("zebrafish", found):
        issue = stage.file_issue("A zebrafish", "zebrafish " * 20)
        stage.poll()
        wait_for(lambda: any("zebrafish" in said for said in stage.told()), "the first prompt")
        stage.push_work(issue)
        stage.write_phase(issue, "PHASE:awaiting_ci")
        wait_for(lambda: any("boom zebrafish" in said for said in stage.told()), "CI's log")
        kill(stage.agent_pid(issue))
        wait_for(lambda: any("take over" in said for said in stage.told()), "the next agent")
    assert found == set()
