from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from sm.__main__ import run
from sm.adapters.agent import profiles
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN, NoTerminalError
from sm.base.errors import UsageError
from sm.config import reference
from sm.config.schema import AgentSettings
from sm.testing.agent import AgentSide, ProfileContract
from tests.helpers import REPOSITORY, make_repository, sm_yaml

MINE: dict[str, dict[str, Any]] = {
    "mine": {"program": "mine", "command": "mine --yes", "glyph": ">>"},
    "claude": {"stash_key": "", "command": "claude --model opus"},
    "wrapped": {"like": "claude", "program": "wrapper"},
}


def error(name: str, fields: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as caught:
        profiles.find(name, {name: fields})
    assert "\n" not in caught.value.message
    return caught.value.message


class TestBuiltIn(ProfileContract):
    """Those that come with sm; `tests/real` and `sm doctor --probe` try the clients."""

    @pytest.fixture(params=BUILTIN)
    def side(self, request: pytest.FixtureRequest, tmp_path: Path) -> AgentSide:
        return AgentSide(BUILTIN[request.param], tmp_path)


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (AgentSettings(), "claude"),
        (AgentSettings(command="/opt/bin/claude --x"), "claude"),
        (AgentSettings(command="codex"), "codex"),
        (AgentSettings(command="wrapper 'a b'"), "wrapped"),
        (AgentSettings(command="mine --no"), "mine"),
        (AgentSettings(command="python3 agent.py"), "generic"),
        (AgentSettings(command="python3 claude"), "generic"),
        (AgentSettings(command="claude", profile="generic"), "generic"),
        (AgentSettings(profile="codex-app"), "codex-app"),
    ],
)
def test_a_profile_is_named_or_known_by_its_program(agent: AgentSettings, expected: str) -> None:
    assert profiles.resolve(agent, MINE).name == expected


def test_a_new_profile_starts_from_the_generic_one_or_from_what_it_is_like() -> None:
    mine, wrapped = profiles.find("mine", MINE), profiles.find("wrapped", MINE)
    assert structs.replace(mine, **MINE["mine"]) == mine
    assert mine.interrupt_key == BUILTIN["generic"].interrupt_key
    assert (wrapped.hooks, wrapped.frame, wrapped.program) == ("claude", "─", "wrapper")


def test_a_built_in_one_is_changed_where_the_configuration_says_so() -> None:
    changed = profiles.find("claude", MINE)
    assert (changed.stash_key, changed.command) == ("", "claude --model opus")
    assert changed.hooks == "claude"
    assert profiles.resolve(AgentSettings(command="claude"), MINE) == changed


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"glyf": ">"}, "unknown key 'glyf' in 'profiles.x': did you mean 'glyph'?"),
        ({"stash": "C-s"}, "unknown key 'stash' in 'profiles.x': did you mean 'stash"),
        ({"state_root": "x"}, "unknown key 'state_root' in 'profiles.x': "),
        ({"glyph": 5}, "wrong value for 'glyph' in 'profiles.x': expected text, got 5"),
        ({"glyph": " "}, "wrong value for 'glyph' in 'profiles.x': it has no visible character"),
        ({"frame": "──"}, "'frame' in 'profiles.x': it must be a single character"),
        ({"hooks": "gemini"}, "'hooks' in 'profiles.x': expected "),
        ({"busy": "esc"}, "'busy' in 'profiles.x': expected a list, got 'esc'"),
        ({"busy": ["("]}, "'busy' in 'profiles.x': '(' is no regular expression"),
        ({"dialog": ["x*"]}, "'dialog' in 'profiles.x': 'x*' is found in every row"),
        ({"resume": ["--continue"]}, "'resume' in 'profiles.x': {context} must be in one"),
        ({"stash_key": "C-s C-s"}, "'stash_key' in 'profiles.x': 'C-s C-s' is no key of tmux"),
        ({"submit_keys": []}, "'submit_keys' in 'profiles.x': without a key nothing can be sent"),
        ({"submit_keys": ["a;b"]}, "'submit_keys' in 'profiles.x': 'a;b' is no key of tmux"),
        ({"paste_lines": -1}, "'paste_lines' in 'profiles.x': expected"),
        ({"name": "y"}, "'profiles.x.name' cannot be set: its key is its name"),
        (
            {"like": "gemini"},
            "'profiles.x.like': expected one of claude, codex, ",
        ),
        ({"like": ["claude"]}, "'profiles.x.like': expected one of claude"),
    ],
)
def test_a_profile_that_cannot_be_is_explained(fields: dict[str, Any], message: str) -> None:
    assert message in error("x", fields)


def test_every_field_that_holds_patterns_is_checked() -> None:
    keys = [
        key for key in reference.list_keys(Profile) if key.description.startswith("patterns of")
    ]
    assert sorted(profiles.PATTERNS) == sorted(key.name for key in keys)
    for field in profiles.PATTERNS:
        assert f"'{field}' in 'profiles.x': '(' is no regular" in error("x", {field: ["("]})


def test_a_name_that_is_unknown_or_no_name_is_explained() -> None:
    with pytest.raises(UsageError, match=r"no profile 'gemini': there are claude, .*, mine"):
        profiles.find("gemini", MINE)
    assert "profile 'a/b' cannot be a file name" in error("a/b", {})


def test_rotation_without_a_terminal_is_refused_with_the_reason() -> None:
    profiles.check_terminal(BUILTIN["codex"], "rotation")
    with pytest.raises(NoTerminalError, match="rotation is not possible with 'codex-app': it has"):
        profiles.check_terminal(BUILTIN["codex-app"], "rotation")


def test_config_check_finds_a_bad_profile(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_repository(tmp_path)
    bad = {"mine": {"glyf": ">"}, "other": {"busy": ["("]}}
    sm_yaml(tmp_path, agent={"profile": "codex-app"}, profiles=bad)
    monkeypatch.chdir(tmp_path)
    assert run(["config", "check"]) == 2
    out = capsys.readouterr().out
    assert "machine: unknown key 'glyf' in 'profiles.mine': did you mean 'glyph'?\n" in out
    assert "machine: wrong value for 'busy' in 'profiles.other': '(' is no regular" in out
    assert "harb: work on issues is not possible with 'codex-app'" in out


DOCUMENT = (REPOSITORY / "docs" / "PROFILES.md").read_text()


@pytest.mark.parametrize("key", list(reference.list_keys(Profile)), ids=lambda key: key.name)
def test_every_field_is_in_the_document_as_it_is(key: reference.Key) -> None:
    assert reference.render_row(key) in DOCUMENT.splitlines()


def test_the_examples_of_the_document_are_sound() -> None:
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for _, block in blocks:
        overrides = yaml.safe_load(block)["profiles"]
        for name in overrides:
            profile = profiles.find(name, overrides)
            assert profiles.find_by_command(profile.command, overrides) == profile


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [("(", "is no regular expression"), ("[0-9]+% left", "has no group around the percentage")],
)
def test_a_pattern_of_the_context_needs_a_group(pattern: str, problem: str) -> None:
    assert f"'{pattern}' {problem}" in error("x", {"context_pattern": pattern})
