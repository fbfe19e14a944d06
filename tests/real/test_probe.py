from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.first_start import list_questions
from sm.adapters.agent.profile import Profile
from sm.config.schema import AgentSettings
from sm.plugins.doctor.probe import probe
from sm.plugins.doctor.starts import STARTS, FirstStart
from sm.setup.finding import Finding, Level
from sm.store.paths import Root
from tests.real.api import Api, Kind, Reply, Tool
from tests.real.client import Clients, environment, seal
from tests.real.codex import CONFIG
from tests.real.responses import exec_command


@pytest.fixture
def agent(claude: Path, api: Api, root: Root, tmp_path: Path) -> AgentSettings:
    """How the pinned Claude Code is run, in a HOME where it trusts the probe's directory."""
    home = tmp_path / "person"
    seal(home, root.probe)
    env = environment(home, api.url)
    env.pop("TERM")
    command = [str(claude), "--dangerously-skip-permissions"]
    return AgentSettings(command=shlex.join(command), env=env)


def failures(found: list[Finding]) -> list[str]:
    return [finding.what for finding in found if finding.level is not Level.OK]


def tried(
    root: Root,
    agent: AgentSettings,
    profile: Profile = CLAUDE,
    *,
    full: bool = False,
    starts: Mapping[str, Sequence[FirstStart]] = MappingProxyType({}),
) -> list[Finding]:
    """What a probe finds; without `starts` no first start is walked through."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sm.plugins.doctor.probe.STARTS", starts)
        found = list(probe(root, agent, profile, full=full))
    print("\n".join(f"{finding.level} {finding.what}" for finding in found))
    return found


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that no other test uses."""
    folder = Path(tempfile.mkdtemp())
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def list_steps(found: list[Finding]) -> list[str]:
    return [finding.what for finding in found if ", step " in finding.what]


def test_the_profile_holds_with_the_pinned_claude_and_its_first_start_at_no_cost(
    root: Root, agent: AgentSettings, api: Api, tmp_path: Path, temporary: Path
) -> None:
    assert not list(list_questions(CLAUDE, shlex.split(agent.command), (root.probe,), agent.env))
    found = tried(root, agent, starts=STARTS)
    assert failures(found) == []
    said = "\n".join(finding.what for finding in found)
    for field in (
        *("glyph '❯', frame '─'", "hooks 'claude': SessionStart", "erase_key", "paste_lines 3"),
        *("paste_characters 800", "stash_key", "stashed", "interrupt_key", "clear '/clear'"),
        *("a text in two pastes", "leave 'exit'"),
    ):
        assert field in said
    steps = list_steps(found)
    for number, asks in enumerate(
        (
            "whether the directory is trusted",
            "whether to use an MCP server",
            "whether to use the key of its environment",
            "whether permissions may be skipped",
        ),
        1,
    ):
        assert steps[number - 1].startswith(f"a first start, step {number}: it asks {asks}: ")
    assert steps[4:] == ["a first start, step 5: the input line"]
    assert not [request for request in api.seen if request.kind is Kind.MAIN]
    # Of what was answered there nothing is in the person's own configuration.
    assert "sm-probe-" not in (tmp_path / "person" / ".claude.json").read_text()
    assert not [*temporary.glob("sm-probe-*")]


def test_a_prompt_is_sent_where_it_is_asked_for(root: Root, agent: AgentSettings, api: Api) -> None:
    api.say(Reply(tools=(Tool.bash("read -rt 2 <> <(:); true"),)))
    found = tried(root, agent, full=True)
    assert failures(found) == []
    said = "\n".join(finding.what for finding in found)
    assert "hooks 'claude': the prompt is confirmed" in said
    assert "hooks 'claude': Stop after" in said
    assert (
        len([request for request in api.seen if request.kind is Kind.MAIN]) == 2
    )  # the tool's result


FALSE = (
    ({"glyph": "»"}, ["glyph '»', frame '─': no composer begins so; it shows: "]),
    ({"idle_colour": "38;5;246"}, ["idle_colour '38;5;246', busy: it looks busy from the"]),
    (
        {"paste_lines": 4, "stash_key": "F9", "leave": ("bye",)},
        [
            "paste_lines 4: pasted 'line 1 / line 2 / line 3 / line 4', the com",
            "stash_key 'F9': the draft stays",
            "leave 'bye': does not end it",
        ],
    ),
)
"""Assumptions; each of the first two leaves nothing more to try."""


@pytest.mark.parametrize(("changes", "expected"), FALSE)
def test_what_does_not_hold_is_told(
    root: Root, agent: AgentSettings, changes: dict[str, object], expected: list[str]
) -> None:
    tried_all = tried(root, agent, structs.replace(CLAUDE, **changes))
    found = failures(tried_all)
    assert len(found) == len(expected)
    assert all(map(str.startswith, found, expected)), found


def test_a_directory_that_is_not_trusted_yet_is_no_failure(
    root: Root, agent: AgentSettings, tmp_path: Path
) -> None:
    seal(tmp_path / "person", tmp_path / "elsewhere")
    found = tried(root, agent)
    assert failures(found) == []
    assert any(finding.what.startswith("trust: it asked for") for finding in found)
    again = tried(root, agent)
    assert not any(finding.what.startswith("trust: ") for finding in again)


def list_foreseen(root: Root, agent: AgentSettings) -> list[str]:
    """What a start of Claude Code is expected to ask."""
    return list(list_questions(CLAUDE, shlex.split(agent.command), (root.probe,), agent.env))


def test_whether_permissions_may_be_skipped_is_foreseen_and_left_to_the_person(
    root: Root, agent: AgentSettings, tmp_path: Path
) -> None:
    home = tmp_path / "person"
    (home / ".claude" / "settings.json").unlink()
    state = json.loads((home / ".claude.json").read_text())
    del state["bypassPermissionsModeAccepted"]
    (home / ".claude.json").write_text(json.dumps(state))
    assert len(list_foreseen(root, agent)) == 1
    found = tried(root, agent)
    [asked] = [one for one in found if "it asks: " in one.what]
    assert asked.level is not Level.OK
    assert asked.what.startswith("it asks: WARNING: Claude Code running in Bypass")
    assert asked.advice == f"start it in '{root.probe}' and answer once"


def test_whether_a_directory_is_trusted_is_foreseen(
    root: Root, agent: AgentSettings, tmp_path: Path
) -> None:
    path = tmp_path / "person" / ".claude.json"
    state = json.loads(path.read_text())
    del state["projects"]
    path.write_text(json.dumps(state))
    assert len(list_foreseen(root, agent)) == 1
    found = tried(root, agent, structs.replace(CLAUDE, trust=""))
    assert len([one for one in found if "it asks: " in one.what]) == 1


def test_the_profile_holds_with_the_pinned_codex_and_its_first_starts_are_walked_through(
    root: Root, pinned: Clients, api: Api, tmp_path: Path, temporary: Path
) -> None:
    folder = tmp_path / "person" / ".codex"
    folder.mkdir(parents=True)
    config = CONFIG.format(url=api.url, cwd=json.dumps(str(root.probe)))
    (folder / "config.toml").write_text(config)
    env = environment(folder.parent, api.url)
    env.pop("TERM")
    command = CODEX.command.replace("codex", str(pinned.codex), 1)
    api.say(Reply(tools=(exec_command("sleep 2"),)))
    settings = AgentSettings(command=command, env=env)
    found = tried(root, settings, CODEX, full=True, starts=STARTS)
    assert failures(found) == ["hooks 'codex': no SessionStart after the start"]
    said = "\n".join(finding.what for finding in found)
    for field in ("glyph '›'", "erase_key", "clear '/clear'", "the prompt is confirmed", "Stop af"):
        assert field in said
    login, trust, line = list_steps(found)
    assert login.startswith("a start without a login, step 1: it asks for a login: ")
    assert trust.startswith("a first start, step 1: it asks whether the directory is trusted: ")
    assert line == "a first start, step 2: the input line"
    assert len([one for one in api.seen if one.kind is Kind.MAIN]) == 2, "those of the prompt"
    assert "sm-probe-" not in (folder / "config.toml").read_text()
    assert not [*temporary.glob("sm-probe-*")]
