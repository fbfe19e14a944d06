"""A machine with 61 sessions in five projects, of which 29 need a person: what the page is for.

Processes stand in for the agents; git, the forge and the terminals are real.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs

from sm.adapters import procfs
from sm.adapters.forge.local import forge as local
from sm.adapters.forge.local.check_folder import CheckFolder, Verdict
from sm.adapters.forge.model import CheckState
from sm.adapters.tmux_start import start_session
from sm.config.load import load
from sm.issues.look.snapshot import snapshot
from sm.issues.look.tick_record import Clock, Polled
from sm.sessions.agent import Agent
from sm.sessions.machine import Machine, load_here
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import ensure_private_dir, write_atomic, write_json
from tests.helpers import git, make_repository, put_session

PROJECTS = ("shop", "harb", "atlas", "billing-service", "docs")
ISSUES = 12
"""Issues of each project at work."""
FILES = 40
"""Files that the first pull request changes."""
CHOICES = 96
"""Choices of the longest question."""
DEAF = "stty -echo; printf 'at work'; exec tail -f /dev/null"
"""An agent that hears nothing, and shows no input line, so that nothing is typed to it."""
TITLES = (
    "Parse durations like 1h30m",
    "Say which version it is",
    "Read the configuration again on SIGHUP",
    "Remove the old cache",
    "Time out after a minute when the database does not answer",
    "Rotate the logs",
    "Name the colours of the theme",
    "Import addresses from a spreadsheet",
    "Mend the search for words with an umlaut, which finds nothing at all in long texts",
    "Draw the chart again when the window gets another size",
    "Store the session in a cookie",
    "Write a test for the parser",
)
QUESTION = """I looked at both ways, and each has a price.

**In a cookie** nothing is kept on the server, but it is sent with every request:

```python
response.set_cookie("session", sign(data), secure=True, httponly=True)
```

**On the server** the cookie stays small, and a restart loses all sessions unless Redis runs:

| way | bytes per request | survives a restart |
|---|---|---|
| cookie | 900 | yes |
| server | 40 | only with Redis |

Where shall it be kept?

1. In a cookie
2. On the server, in memory
3. On the server, in Redis
"""


@dataclass
class Sixty:
    """The machine and its projects."""

    folder: Path
    machine: Machine
    projects: dict[str, Project]


@contextmanager
def sixty(folder: Path) -> Iterator[Sixty]:
    """Make the machine, and end what stands in for its agents."""
    with ExitStack() as stack:
        config = _configure(folder)
        loaded = load(config, os.environ, folder)
        projects = {one.name: Project(loaded, one) for one in loaded.projects}
        world = Sixty(folder, load_here(config), projects)
        for name, project in projects.items():
            _fill(world, project, stack, first=name == PROJECTS[0])
        yield world


def _configure(folder: Path) -> Path:
    projects: list[dict[str, Any]] = []
    for name in PROJECTS:
        repository = make_repository(folder / name)
        local.create(folder / name / "forge", repository.bare)
        projects.append(
            {
                "name": name,
                "repo": str(repository.clone),
                "forge": {"kind": "local", "path": str(folder / name / "forge")},
                "agent": {"command": "agent-of-no-one", "profile": "claude"},
                "ci": {"command": "make test"},
                "trusted": ["ada", "rita"],
                "max_sessions": 20,
                "poll_interval": "1h",
            }
        )
    config = folder / "sm.yaml"
    said = {
        "state_root": str(folder / "state"),
        "keep_free": {"disk": 0, "memory": 0},
        "bridge_database": str(folder / "core.db"),
        "projects": projects,
    }
    config.write_text(yaml.safe_dump(said))
    return config


def _fill(world: Sixty, project: Project, stack: ExitStack, *, first: bool) -> None:
    issues = project.forge.issues
    for title in TITLES:
        issues.add(title, f"{title}, please.\n", labels=("in-progress",), author="ada")
    issues.add("Add a checkout", "With two steps.", labels=("backlog",), author="rita")
    issues.add("Take cards", "Depends on #13\n", labels=("backlog",), author="ada")
    for issue in range(1, ISSUES + 1):
        _make(project, issue, stack, first=first)
    snapshot(project, newer_than=time.time())
    write_json(project.directory.polled, Polled(Clock(time.time(), boot="of another start")))


def _make(project: Project, issue: int, stack: ExitStack, *, first: bool) -> None:
    phase, alive = "", True
    match issue:
        case 1 | 2:  # waits for a person's review
            _offer(project, issue, CheckState.SUCCESS, FILES if first and issue == 1 else 2)
            phase = "PHASE:awaiting_review\n"
        case 3:
            phase = "PHASE:escalate\nReason: Which signal?\n- SIGHUP\n- SIGUSR1\n"
        case 5:
            _offer(project, issue, CheckState.FAILURE)
            phase = "PHASE:awaiting_ci\n"
        case 6:
            phase = "PHASE:awaiting_ci\n"
            stack.enter_context(_offer_pending(project, issue))
        case 12:
            alive = False
    age_s = 1800.0 + 400 * issue
    session = put_session(project, issue, TITLES[issue - 1], age_s=age_s, alive=False, phase=phase)
    write_json(session.dir.identity, structs.replace(session.record, provider="claude"))
    _add_worktree(project, issue)
    if alive:
        _be_alive(project, session, stack)
    _tell(session, issue, first=first)


def _tell(session: IssueSession, issue: int, *, first: bool) -> None:
    match issue:
        case 4:
            asked = {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}}
            _say(session, "dialog", "dialog", **asked)
        case 11:
            asked_of = QUESTION
            if first:
                asked_of += "".join(f"{n}. Way {n}\n" for n in range(4, CHOICES + 1))
            _say(session, "idle", "stop_payload", last_assistant_message=asked_of)
        case 1 | 2 | 3:
            _say(session, "idle", "stop_payload", last_assistant_message="It is pushed.")
        case _:
            _say(session, "busy", "stop_payload", last_assistant_message="I parse hours now.")


def _say(session: IssueSession, state: str, payload: str, **said: Any) -> None:
    now = time.time() - 300
    write_atomic(session.dir.state, f"{state} {now:.6f} context prompt\n")
    write_atomic(
        getattr(session.dir, payload),
        json.dumps({"session_id": "context", "prompt_id": "prompt", **said}),
    )
    write_atomic(session.dir.usage, f"{now + 290:.6f} context 41.5 200000 - - - - 83000\n")


def _be_alive(project: Project, session: IssueSession, stack: ExitStack) -> None:
    pane = start_session(project.tmux, session.name, session.record.cwd, ["sh", "-c", DEAF])
    known = procfs.find(pane.pid)
    assert known
    agent = Agent(session.name, known.pid, known.started, pane.id, session.record.created_at, 1)
    write_json(session.dir.agent, agent)
    write_atomic(session.dir.agent_pid, f"{known.pid} {known.started}\n")
    stack.enter_context(lock.hold(session.dir.monitor_lock))


# Pull requests


def _add_worktree(project: Project, issue: int) -> Path:
    settings = project.settings
    worktree = settings.worktree(issue)
    if not worktree.exists():
        git(settings.repo, "worktree", "add", "-q", "-b", settings.branch(issue), str(worktree))
    return worktree


def _offer(project: Project, issue: int, state: CheckState, files: int = 3) -> None:
    checks = _push(project, issue, files)
    step = "make test" if state is CheckState.FAILURE else ""
    write_json(checks.result, Verdict(state, step, int(bool(step)), time.time() - 700, 12.5))


@contextmanager
def _offer_pending(project: Project, issue: int) -> Iterator[None]:
    with lock.hold(_push(project, issue, 1).lock):
        yield


def _push(project: Project, issue: int, files: int) -> CheckFolder:
    worktree = _add_worktree(project, issue)
    for number in range(files):
        folder = worktree / ("src", "tests", "docs/guide")[number % 3]
        folder.mkdir(parents=True, exist_ok=True)
        body = "".join(
            f"def work_{number}_{at}(value: int) -> int:\n    return value * {at}\n\n\n"
            for at in range(8)
        )
        (folder / f"work_{number}.py").write_text(body)
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", f"work on {issue}")
    git(worktree, "push", "-q", "origin", "HEAD")
    pull = project.forge.pulls.open(
        project.settings.branch(issue), "main", TITLES[issue - 1], f"Closes #{issue}", author="sm"
    )
    folder = project.settings.repo.parent / "forge" / "checks" / pull.head
    checks = CheckFolder(ensure_private_dir(folder))
    checks.log.write_text("compiling\nrunning 12 tests\ntest_timeout: expected 60, got 0\n")
    return checks
