"""An agent's `git stash` by the real clients: the person's own stash stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import git, wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.client import Clients
from tests.real.responses import exec_command
from tests.real.stages import make_real_stage

RUNS: dict[str, Callable[[str], Tool]] = {"claude": Tool.bash, "codex": exec_command}


@pytest.mark.parametrize("client", RUNS)
def test_a_persons_stash_is_not_popped_into_an_agents_branch(
    client: str, pinned: Clients, api: Api, tmux_socket: str, tmp_path: Path, root: object
) -> None:
    assert tmux_socket
    assert root
    run = RUNS[client]
    stage = make_real_stage(client, pinned, api, tmp_path, {})
    clone = stage.repository.clone
    (clone / "README.md").write_text("the person's half a thought\n")
    git(clone, "stash", "push", "--message=mine")
    known = git(clone, "stash", "list")
    told = tmp_path / "told"
    for command in ("git stash pop", "echo x >f && git add f && git stash"):
        shell = f"{{ {command}; echo rc=$?; }} >>'{told}' 2>&1"
        api.say(Reply("", tools=(run(shell),)))
    api.say(Reply("It is refused."))
    stage.file_issue()
    try:
        stage.poll()
        wait_for(lambda: len(api.main) >= 3, "both commands to be run")
        said = told.read_text()
        assert said.count("sm: refused: this clone has one stash") == 2, said
        assert said.count("rc=1") == 2
        assert git(clone, "stash", "list") == known
        worktree = stage.project.settings.worktree(1)
        assert "half a thought" not in (worktree / "README.md").read_text()
        assert (worktree / "f").read_text() == "x\n"
    finally:
        stage.end()
