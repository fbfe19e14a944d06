from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sm.adapters.agent.account import (
    describe_account,
    digest_keys,
    find_account_folder,
    guess_account_folder,
    read_login,
    trace_login,
)
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profiles import GENERIC


@pytest.mark.parametrize(
    ("conversation", "folder"),
    [
        ("/home/ada/.claude/projects/-work-shop/1a2b.jsonl", "/home/ada/.claude"),
        ("/srv/two/projects/-work-projects-x/1a2b.jsonl", "/srv/two"),
        ("/home/ada/.codex/sessions/2026/11/28/rollout-1.jsonl", "/home/ada/.codex"),
        ("/tmp/transcript.jsonl", None),
        ("transcript.jsonl", None),
    ],
)
def test_a_transcript_names_the_folder_of_its_account(
    conversation: str, folder: str | None
) -> None:
    assert find_account_folder(Path(conversation)) == (Path(folder) if folder else None)


def test_without_a_transcript_the_environment_does() -> None:
    home = {"HOME": "/home/ada"}
    assert guess_account_folder(CLAUDE, home) == Path("/home/ada/.claude")
    assert guess_account_folder(CODEX, home) == Path("/home/ada/.codex")
    assert guess_account_folder(CLAUDE, home | {"CLAUDE_CONFIG_DIR": "/srv/c"}) == Path("/srv/c")
    assert guess_account_folder(CODEX, home | {"CODEX_HOME": "/srv/x"}) == Path("/srv/x")
    assert guess_account_folder(GENERIC, home) is None
    assert guess_account_folder(CLAUDE, {}) is None


def test_claudes_login_is_the_id_of_its_account(tmp_path: Path) -> None:
    folder, state = tmp_path / ".claude", tmp_path / ".claude.json"
    folder.mkdir()
    assert read_login(folder) == ""
    for content, login in (
        ('{"oauthAccount": {"accountUuid": "a-1", "emailAddress": "x"}, "n": [1]}', "a-1"),
        ("{}", ""),
        ("half a fi", ""),
        ('{"oauthAccount": {"accountUuid": "b-2"}}', "b-2"),
    ):
        state.write_text(content)
        assert read_login(folder) == login
    (folder / ".claude.json").write_text(json.dumps({"oauthAccount": {"accountUuid": "own"}}))
    assert read_login(folder) == "own"


def test_codex_has_another_login_when_its_keys_are_written_anew(tmp_path: Path) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    (tmp_path / ".claude.json").write_text('{"oauthAccount": {"accountUuid": "a-1"}}')
    assert read_login(folder) == ""
    keys = folder / "auth.json"
    keys.write_text("{}")
    keys.chmod(0)  # what is in it is not looked at
    first = read_login(folder)
    assert first
    os.utime(keys, (1, 1))
    assert read_login(folder) not in ("", first)


@pytest.mark.parametrize("name", [".credentials.json", "auth.json"])
def test_a_login_leaves_a_trace_also_if_it_is_the_same_account(tmp_path: Path, name: str) -> None:
    before = trace_login(tmp_path)
    assert before, "that nobody is logged in is known, too"
    path = tmp_path / name
    path.write_text("a secret")
    os.utime(path, ns=(1, 1))
    first = trace_login(tmp_path)
    os.utime(path, ns=(2, 2))
    assert len({before, first, trace_login(tmp_path)}) == 3
    assert "secret" not in first


def test_logins_by_keys_are_told_apart_and_not_told() -> None:
    assert digest_keys({"HOME": "/home/ada"}) == ""
    keys = {"ANTHROPIC_API_KEY": "sk-1"}
    assert digest_keys(keys) == digest_keys(keys | {"HOME": "/home/ada"}) != ""
    assert digest_keys(keys) != digest_keys({"ANTHROPIC_API_KEY": "sk-2"})
    assert digest_keys(keys) != digest_keys(keys | {"ANTHROPIC_BASE_URL": "http://127.0.0.1"})
    assert "sk-1" not in digest_keys(keys)


def test_people_call_an_account_by_its_client_and_whose_login_it_has(tmp_path: Path) -> None:
    folder, env = tmp_path / ".claude", {"HOME": str(tmp_path)}
    folder.mkdir()
    assert describe_account(CLAUDE, folder, env) == "Claude Code (~/.claude)"
    assert describe_account(CODEX, tmp_path / ".codex", env) == "Codex (~/.codex)"
    assert describe_account(CODEX, Path("/srv/x"), env) == "Codex (/srv/x)"
    keys = env | {"ANTHROPIC_API_KEY": "sk-1"}
    assert describe_account(CLAUDE, folder, keys) == "Claude Code (ANTHROPIC_API_KEY)"
    said = {"oauthAccount": {"accountUuid": "a-1", "emailAddress": "ada@example.org"}}
    (tmp_path / ".claude.json").write_text(json.dumps(said))
    assert describe_account(CLAUDE, folder, env) == "Claude Code (ada@example.org)"
