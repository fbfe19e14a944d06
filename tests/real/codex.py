"""Codex in a terminal: the same hooks, given on its command line, and the same scripted API."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import Tmux
from sm.config.schema import AgentSettings
from sm.sessions import agent as agents
from sm.sessions import agent_process, registry
from sm.sessions.launch import Launch
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession, Session
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api
from tests.real.client import environment
from tests.real.terminal import EVENTS, Terminal

PROMPT = "›"

SWITCH = "check_for_update_on_startup = false"
CONFIG = f"""\
model = "gpt-5-codex"
model_provider = "loop"
approval_policy = "never"
sandbox_mode = "danger-full-access"
{SWITCH}

[model_providers.loop]
name = "loop"
base_url = "{{url}}/v1"
wire_api = "responses"
env_key = "ANTHROPIC_API_KEY"
supports_websockets = false

[projects.{{cwd}}]
trust_level = "trusted"
"""

CLAUDE_ONLY = {"StopFailure", "Notification", "SubagentStop"}


class Codex(Terminal):
    """One Codex in a tmux session of its own."""

    def __post_init__(self) -> None:
        """Make the folders that it needs, and its configuration."""
        super().__post_init__()
        home = self.home / ".codex"
        home.mkdir()
        cwd = json.dumps(str(self.cwd))
        (home / "config.toml").write_text(CONFIG.format(url=self.api.url, cwd=cwd))

    def start(self, *args: str, wait: bool = True, **more: str) -> None:
        """Run the client; `args` come first, for a subcommand must; `more` are settings."""
        settings = [f"{name}={json.dumps(value)}" for name, value in more.items()]
        given = [part for one in settings + self._hooks() for part in ("-c", one)]
        # A background server would be shared with whatever else runs as this user.
        self.launch("--no-daemon", "--dangerously-bypass-hook-trust", *given, *args)
        if wait:
            self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the prompt is there."""
        self.wait_screen(lambda screen: PROMPT in screen, "a prompt")

    def _hooks(self) -> list[str]:
        commands = {
            event: f"bash '{self.folder}/hook' '{self.folder}' {event}"
            for event in EVENTS
            if event not in CLAUDE_ONLY
        }
        return [
            f'hooks.{event}=[{{hooks=[{{type="command",command={json.dumps(command)}}}]}}]'
            for event, command in commands.items()
        ]


@contextmanager
def session_of_sm(
    program: Path,
    tmux: Tmux,
    root: Root,
    api: Api,
    folder: Path,
    *,
    profile: Profile = CODEX,
    newer: str = "",
) -> Iterator[Session]:
    """A session of sm whose agent is an idle Codex; `newer` is a version that it has heard of."""
    work, home = folder / "work", folder / "codex"
    work.mkdir()
    (home / ".codex").mkdir(parents=True)
    config = CONFIG.format(url=api.url, cwd=json.dumps(str(work)))
    (home / ".codex" / "config.toml").write_text(config)
    variables = environment(home, api.url)
    if newer:
        hear_of(home, newer)
        variables["CODEX_MANAGED_BY_NPM"] = "1"  # else it only says so, and offers nothing
    command = shlex.join([str(program), *CODEX.command.split()[1:]])
    session = AdHocSession(
        AdHocRecord(
            name="s-codex",
            provider=CODEX.name,
            cwd=work,
            config=None,
            state_root=root.path,
            created_at=time.time(),
            command=command,
        )
    )
    registry.create(root, session)
    for name in ("TERM", "PATH"):
        variables.pop(name)
    launch = Launch(AgentSettings(command=command, env=variables), profile)
    agent_process.launch(tmux, session, launch, generation=1)
    found = session.provide(tmux=tmux, profile=profile)
    try:
        wait_for(lambda: prompt(found) in ("idle", "dialog"), "its prompt")
        yield found
    finally:
        agent_process.stop(tmux, session)


def hear_of(home: Path, version: str) -> None:
    """Have a Codex with this home know of a newer version, as if it had asked today (0.171.0)."""
    config = home / ".codex" / "config.toml"
    config.write_text(config.read_text().replace(f"{SWITCH}\n", ""))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    known = {"latest_version": version, "last_checked_at": now, "dismissed_version": None}
    (home / ".codex" / "version.json").write_text(json.dumps(known))


def prompt(target: Session) -> str:
    """What its screen shows."""
    known = agents.load(target.dir)
    assert known
    shown = target.tmux.look(known.pane_id, escapes=True)[1]
    return read_screen(CODEX, shown).prompt
