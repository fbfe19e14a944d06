from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.forked import run_sm

CODE, DESKTOP = ".claude.json", ".config/Claude/claude_desktop_config.json"
OTHERS = {"theme": "dark", "mcpServers": {"files": {"command": "files-server"}}}


def sm(*args: str, code: int = 0) -> str:
    done = run_sm(*args, env=os.environ, cwd=Path.cwd())
    assert done.returncode == code, done
    return done.stdout + done.stderr


def settings(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize(("client", "place"), [("claude-code", CODE), ("claude-desktop", DESKTOP)])
def test_the_server_is_added_to_what_is_there(sealed: Path, client: str, place: str) -> None:
    path = sealed / place
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.dumps(OTHERS, indent=4) + "\n"
    path.write_text(before)
    said = sm("mcp", "install", client)
    assert said.startswith(
        f"{client}: added the server 'sm' to '{path}' (before: '{path}.sm-backup"
    )
    found = settings(path)
    entry = found["mcpServers"].pop("sm")
    assert found == OTHERS
    assert entry["args"] == ["-Im", "sm", "mcp"]
    assert Path(f"{path}.sm-backup").read_text() == before
    after = path.read_bytes()
    assert sm("mcp", "install", client) == f"{client}: already in '{path}'\n"
    assert path.read_bytes() == after
    sm("mcp", "uninstall", client)
    assert settings(path) == OTHERS
    assert "nothing of sm" in sm("mcp", "uninstall", client)


def test_a_server_of_the_persons_own_that_is_called_the_same_stays(sealed: Path) -> None:
    before = json.dumps({"mcpServers": {"sm": {"command": "session-manager", "args": ["mcp"]}}})
    (sealed / CODE).write_text(before)
    for verb in ("install", "uninstall"):
        said = sm("mcp", verb, "claude-code", code=2)
        assert said.startswith(f"sm: '{sealed / CODE}' has a server 'sm' that is not this one: ")
    assert (sealed / CODE).read_text() == before


def test_the_server_of_a_clone_that_was_moved_is_brought_up_to_date(sealed: Path) -> None:
    sm("mcp", "install", "claude-code")
    now = settings(sealed / CODE)
    moved = settings(sealed / CODE)
    moved["mcpServers"]["sm"]["command"] = "/gone/bin/python"
    moved["mcpServers"]["sm"]["args"] = ["-Im", "sm", "--config", "/gone/sm.yaml", "mcp"]
    for server in (now, moved):
        server["mcpServers"]["sm"]["timeout"] = 60_000  # the person's own
        server["mcpServers"]["sm"]["env"]["HTTPS_PROXY"] = "http://proxy:3128"
    moved["mcpServers"]["sm"]["env"]["SM_STATE_ROOT"] = "/gone/state"
    (sealed / CODE).write_text(json.dumps(moved))
    sm("mcp", "install", "claude-code")
    assert settings(sealed / CODE) == now


def test_what_the_file_was_before_is_told_only_of_the_first_change(sealed: Path) -> None:
    (sealed / CODE).write_text("{}")
    assert "(before: " in sm("mcp", "install", "claude-code")
    sm("mcp", "uninstall", "claude-code")
    assert "(before: " not in sm("mcp", "install", "claude-code")


def test_without_a_name_it_goes_to_the_clients_that_are_there(sealed: Path) -> None:
    assert "is here: name one" in sm("mcp", "install", code=2)
    (sealed / DESKTOP).parent.mkdir(parents=True)
    sm("mcp", "install")
    assert (sealed / DESKTOP).exists()
    assert not (sealed / CODE).exists()
    (sealed / CODE).write_text("{}")
    assert len(sm("mcp", "install").splitlines()) == 2


def test_what_is_printed_is_what_would_be_added(sealed: Path) -> None:
    printed = json.loads(sm("mcp", "install", "--print"))
    assert not (sealed / CODE).exists()
    sm("mcp", "install", "claude-code")
    assert settings(sealed / CODE) == printed


def test_the_server_finds_what_the_person_uses(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, config = tmp_path / "own.db", tmp_path / "sm.yaml"
    config.write_text(f"state_root: {tmp_path}\n")
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(database))
    sm("--config", str(config), "mcp", "install", "claude-code")
    entry = settings(sealed / CODE)["mcpServers"]["sm"]
    assert entry["args"] == ["-Im", "sm", "--config", str(config), "mcp"]
    assert entry["env"] == {"SM_BRIDGE_DATABASE": str(database)}


def test_the_server_finds_it_wherever_the_client_starts_it(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SM_BRIDGE_DATABASE", "own.db")
    monkeypatch.setenv("SM_STATE_ROOT", "state")
    env = json.loads(sm("mcp", "install", "--print"))["mcpServers"]["sm"]["env"]
    assert env == {
        "SM_BRIDGE_DATABASE": str(tmp_path / "own.db"),
        "SM_STATE_ROOT": str(tmp_path / "state"),
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "cannot read"),
        ("[]", "does not hold a JSON object"),
        ('{"mcpServers": []}', "'mcpServers' in"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_alone(
    sealed: Path, content: str, expected: str
) -> None:
    (sealed / CODE).write_text(content)
    assert expected in sm("mcp", "install", "claude-code", code=2)
    assert (sealed / CODE).read_text() == content


def test_an_unknown_client_is_named(sealed: Path) -> None:
    said = sm("mcp", "install", "cursor", code=2)
    assert "unknown client 'cursor': claude-code or claude-desktop" in said
