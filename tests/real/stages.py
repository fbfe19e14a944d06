"""Issues on which a real client works, with the model scripted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from sm.adapters.agent.codex import CODEX
from tests.e2e.stage import Stage, make_stage
from tests.real.api import Api
from tests.real.client import Clients, environment, seal
from tests.real.codex import CONFIG


def make_real_stage(
    client: str, pinned: Clients, api: Api, folder: Path, settings: dict[str, object]
) -> Stage:
    """Return a stage whose first issue the real `client` works on: `claude` or `codex`."""
    home = folder / "client-home"
    variables = {k: v for k, v in environment(home, api.url).items() if v}
    for name in ("PATH", "TERM"):
        variables.pop(name)
    commands = {
        "claude": f"{pinned.claude} --dangerously-skip-permissions",
        "codex": shlex.join([str(pinned.codex), *CODEX.command.split()[1:]]),
    }
    agent = {"agent": {"command": commands[client], "env": variables}}
    stage = make_stage(folder, auto=False, settings=agent | settings)
    worktree = stage.project.settings.worktree(1)
    seal(home, worktree)
    (home / ".codex").mkdir()
    told = CONFIG.format(url=api.url, cwd=json.dumps(str(worktree)))
    (home / ".codex" / "config.toml").write_text(told)
    return stage
