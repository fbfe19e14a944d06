"""A newcomer follows the README in a clone of his own, and types to his agent in the middle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.forge.model import PullState
from sm.config.load import load
from sm.sessions import agent_state, registry
from sm.sessions.agent_state import State
from sm.sessions.history import fold
from sm.sessions.plan import read_receipts
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.helpers import git, wait_for
from tests.real.api import Api, Reply, Request, Tool
from tests.real.client import environment, seal
from tests.teardown import end_sessions
from tests.viewer import Viewer

BIN = Path(__file__).resolve().parents[2] / "bin"
ASKS = "I can greet in British or in American English. Which one shall I take?"
ANSWER = ("British, ", "please.")
WORK = """set -e
echo 'Good day.' >greeting.txt
git add greeting.txt
git commit -qm 'Greet whoever comes'
git push -q origin HEAD
echo PHASE:awaiting_ci >"$PHASE_FILE"
"""


def model(request: Request) -> Reply:
    """An agent that asks before it begins, and then does as `sm` says."""
    news = _news(request)
    if isinstance(news, Tool):
        return Reply("", tools=(news,))
    return Reply(news)


def _news(request: Request) -> Tool | str:
    last = request.body["messages"][-1]["content"]
    if isinstance(last, list) and any(part.get("type") == "tool_result" for part in last):
        return "Done."
    said = max(
        ("".join(ANSWER), "[sm] CI passed", "[sm] Review: approved", "You work on issue"),
        key=lambda words: max(
            (at for at, text in enumerate(request.texts) if words in text), default=-1
        ),
    )
    if said.startswith("British"):
        return Tool.bash(WORK)
    if said == "[sm] CI passed":
        return Tool.bash('echo PHASE:awaiting_review >"$PHASE_FILE"')
    if said == "[sm] Review: approved":
        merge = re.findall(r"sm pr merge \d+ --project \w+", "\n".join(request.texts))[-1]
        return Tool.bash(f'{BIN / merge} && echo PHASE:done >"$PHASE_FILE"')
    return ASKS


@pytest.fixture
def project(
    claude: Path,
    api: Api,
    root: Root,
    tmux_socket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    """His project, as `sm init` has set it up, with `dev-poll --loop` at work."""
    api.model = model
    home, clone = Path(os.environ["HOME"]), tmp_path / "src" / "shop"
    clone.mkdir(parents=True)
    git(clone, "init", "-q")
    git(clone, "commit", "-q", "--allow-empty", "-m", "Begin")
    monkeypatch.chdir(clone)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").symlink_to(claude)
    known = environment(home, api.url)
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SM_PYTHON", sys.executable)
    passed = [word for name in known for word in ("--pass-env", name)]
    assert run(["init", "--yes", "--ci", "true", "--no-try-ci", *passed]) == 0
    config = load(None, os.environ, clone)
    project = Project(config, config.projects[0])
    seal(home, project.settings.worktree(1))
    assert run(["issue", "add", "Greet whoever comes"]) == 0
    with subprocess.Popen([BIN / "dev-poll", "--loop"], cwd=clone) as loop:
        yield project
        loop.terminate()
    for session in registry.list_for(project):
        if pane := project.tmux.pane(session.name):
            print(project.tmux.capture(pane.id))
    end_sessions(root)


def session_of(project: Project) -> IssueSession:
    return registry.load_for(project, 1)


def test_the_merged_work_is_in_the_log_of_his_clone(project: Project, api: Api) -> None:
    def has_asked() -> bool:
        sessions = registry.list_for(project)
        return bool(sessions) and agent_state.read(sessions[0].dir).state is State.IDLE

    wait_for(lambda: api.main and has_asked(), "the agent's question", 60.0)
    agent = session_of(project)
    argv = [BIN / "sm", "attach", "1"]
    person = Viewer([str(word) for word in argv], (100, 30))
    try:
        _type_slowly(person, project, agent)
        wait_for(
            lambda: project.forge.pulls.find_newest(agent.record.branch), "a pull request", 60.0
        )
    finally:
        person.close()
    assert fold(read_receipts(agent.dir)).recoveries_ever == 0
    pull = project.forge.pulls.find_newest(agent.record.branch)
    assert pull is not None
    assert run(["review", str(pull.number), "--approve"]) == 0
    wait_for(
        lambda: project.forge.pulls.read(pull.number).state is PullState.MERGED, "the merge", 60.0
    )
    git(project.settings.repo, "pull", "-q")
    assert "Greet whoever comes" in git(project.settings.repo, "log", "--format=%s")
    assert not [text for text in api.main[-1].texts if "ended without a new phase" in text]


def _type_slowly(person: Viewer, project: Project, agent: IssueSession) -> None:
    """Half of the answer, which stays as it is through a pass, then the rest."""
    first, rest = ANSWER
    pane = project.tmux.pane(agent.name)
    assert pane is not None
    wait_for(lambda: project.tmux.command("list-clients", "-t", f"={agent.name}"), "the person")
    person.type(first)
    wait_for(lambda: first.strip() in project.tmux.capture(pane.id), "the draft")
    before = agent.dir.seen.stat().st_mtime_ns
    registry.poke(agent.dir)
    wait_for(lambda: agent.dir.seen.stat().st_mtime_ns != before, "a pass")
    assert first.strip() in project.tmux.capture(pane.id)
    person.type(rest)
    wait_for(lambda: "".join(ANSWER) in project.tmux.capture(pane.id), "the whole draft")
    person.type("\r")
