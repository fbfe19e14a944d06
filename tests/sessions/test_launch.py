"""What the launcher is given, and what of the agent before is cleared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux
from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.plugin import Plugin, Registry
from sm.config.schema import AgentSettings
from sm.sessions import personal_hooks, registry
from sm.sessions.launch import Launch, read_environment, write_launch_files
from sm.sessions.session import Session
from sm.setup import install_hooks
from sm.shell_root import find_shell_root
from sm.store import journal
from sm.store.events import Problem
from sm.store.paths import Root
from tests.terminal import make_session


@pytest.fixture
def session(root: Root, tmp_path: Path) -> Session:
    return registry.create(root, make_session(root, tmp_path / "work"))


def written(session: Session, prompt: str = "", profile: Profile = CLAUDE, **env: str) -> list[str]:
    """The command of an agent that is started with these."""
    settings = AgentSettings(command="claude", env=env)
    write_launch_files(Tmux("unused"), session, Launch(settings, profile, prompt))
    return session.dir.launch_argv.read_text().split("\0")[:-1]


def test_a_compaction_of_the_agent_before_is_over(session: Session) -> None:
    session.dir.compacting.write_text("9999999999.0\n")
    written(session)
    assert not session.dir.compacting.exists()


def test_a_prompt_is_no_command_to_the_agent_that_its_profile_describes(session: Session) -> None:
    odd = structs.replace(CLAUDE, command_characters="%", leave=("bye",))
    for prompt, given in (("%do", "Note: %do"), ("bye", "Note: bye"), ("/do", "/do")):
        written(session, prompt, odd)
        assert session.dir.prompt.read_text() == given
    written(session, "/do")
    assert session.dir.prompt.read_text() == "Note: /do"


def test_plugins_add_variables_and_override_none(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "added": Plugin(variables={"added": f"{__name__}:add"}),
        "broken": Plugin(variables={"broken": "no.such.module:x", "odd": f"{__name__}:DOUBLE"}),
    }
    places = {name: f"{__name__}:{name.upper()}" for name in found}
    for name, one in found.items():
        monkeypatch.setattr(sys.modules[__name__], name.upper(), one, raising=False)
    monkeypatch.setattr(plugin, "_registry", Registry(places.items))
    written(session, THEIRS="theirs")
    known = read_environment(session.dir)
    assert (known["THEIRS"], known["OURS"]) == ("theirs", "ours")
    said = [one.text for one in journal.read(session.root.journal) if isinstance(one, Problem)]
    assert len(said) == 2
    assert all("could not add variables to an agent's environment" in one for one in said)


DOUBLE = {"a": "b"}


def add(_session: Session, profile: Profile, environment: Mapping[str, str]) -> dict[str, str]:
    """What a plugin adds."""
    assert profile is CLAUDE
    return {"OURS": "ours", "THEIRS": "ours", "PATH": "/ours"} if environment["PATH"] else {}


def test_what_is_set_because_no_person_is_there_is_for_this_session_alone(session: Session) -> None:
    written(session)
    assert json.loads(session.dir.settings.read_text())["env"] == CLAUDE.unattended
    assert not set(CLAUDE.unattended) & set(read_environment(session.dir))
    denied = json.loads(session.dir.settings.read_text())["permissions"]["deny"]
    assert denied == list(CLAUDE.withheld_tools)
    command = written(session, profile=CODEX)
    assert command[command.index("check_for_update_on_startup=false") - 1] == "-c"


def test_what_a_person_sets_is_not_overridden(session: Session) -> None:
    written(session, DISABLE_AUTOUPDATER="0")
    assert "DISABLE_AUTOUPDATER" not in json.loads(session.dir.settings.read_text())["env"]
    for profile in (CLAUDE, CODEX):
        command = written(session, profile=structs.replace(profile, unattended={}))
        assert json.loads(session.dir.settings.read_text())["env"] == {}
        assert not any("check_for_update" in word for word in command)


def test_no_tool_is_withheld_where_a_person_decides(session: Session) -> None:
    written(session, profile=structs.replace(CLAUDE, withheld_tools=()))
    assert "permissions" not in json.loads(session.dir.settings.read_text())


def test_an_agent_gets_variables_of_any_name(tmp_path: Path) -> None:
    names = ("env", "own", "argv", "entry", "path", "dir", "_env", "ticks", "command", "fields")
    given = [f"PATH={os.environ['PATH']}", *(f"{name}=/bin/true" for name in names)]
    (tmp_path / "launch.env").write_text("".join(f"{entry}\0" for entry in given))
    (tmp_path / "launch.argv").write_text("env\0-0\0")
    launch = find_shell_root() / "lib" / "launch"
    said = subprocess.run(["bash", launch, tmp_path], capture_output=True, text=True, check=True)
    assert set(given) <= set(said.stdout.split("\0"))


def test_a_name_that_the_launcher_uses_itself_is_refused(session: Session) -> None:
    with pytest.raises(UsageError, match="'_sm_own' is one of the launcher"):
        written(session, _sm_own="x")


def puts_status_line(folder: Path, command: str) -> None:
    folder.mkdir(parents=True)
    line = {"statusLine": {"type": "command", "command": command}}
    (folder / "settings.json").write_text(json.dumps(line))


def test_a_status_line_is_read_where_the_agent_has_its_settings(
    session: Session, sealed: Path, tmp_path: Path
) -> None:
    puts_status_line(sealed / ".claude", "mine")
    puts_status_line(tmp_path / "other", "another")
    written(session)
    assert "SM_STATUS_LINE=mine " in session.dir.settings.read_text()
    written(session, CLAUDE_CONFIG_DIR=str(tmp_path / "other"))
    assert "SM_STATUS_LINE=another " in session.dir.settings.read_text()


def test_settings_are_looked_for_in_one_way(sealed: Path) -> None:
    assert install_hooks.default_settings is personal_hooks.find_default_settings
    assert install_hooks.default_settings(os.environ) == sealed / ".claude" / "settings.json"
    assert install_hooks.default_settings({"HOME": "/h"}) == Path("/h/.claude/settings.json")
    assert install_hooks.default_settings({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}) == Path(
        "/c/settings.json"
    )
