"""A terminal program for tests: it reads in raw mode, as an agent CLI does, and keeps a log."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sm.adapters.agent.profiles import resolve
from sm.config.forges import LocalSettings
from sm.config.schema import AgentSettings, ProjectSettings
from sm.sessions.launch import Launch
from sm.sessions.record import IssueRecord
from sm.sessions.session import IssueSession
from sm.store.paths import Root, name_session

COMPOSER = r"""
import json, os, sys, tty
from pathlib import Path

log, style = Path(sys.argv[1]), sys.argv[2]
(log.parent / (log.name + ".env")).write_text(json.dumps(dict(os.environ)))
half = log.parent / (log.name + ".half")
half.write_text(json.dumps(sys.argv[3:]))
half.rename(log.parent / (log.name + ".argv"))
if style != "cooked":
    tty.setraw(0)
os.write(1, b"\x1b[?2004hhello\r\n" if style == "composer" else b"hello\r\n")
screen = os.environ.get("SHOW", "\u276f\u00a0")
os.write(1, screen.encode())
while data := os.read(0, 65536):
    with log.open("ab") as raw:
        raw.write(data)
"""

PASTE, END = b"\x1b[200~", b"\x1b[201~"


def program(folder: Path) -> Path:
    """The program as a file in `folder`; its arguments: the log, and composer, raw or cooked."""
    path = folder / "composer.py"
    path.write_text(COMPOSER)
    return path


def argv(folder: Path, log: Path, style: str = "composer") -> list[str]:
    """The command that runs it."""
    return [sys.executable, str(program(folder)), str(log), style]


def received(log: Path) -> list[str]:
    """The messages that it got: bracketed pastes, each closed by Enter."""
    if not log.exists():
        return []
    parts = log.read_bytes().split(END + b"\r")
    return [part.removeprefix(PASTE).decode() for part in parts[:-1]]


def make_project(folder: Path, command: list[str], **agent: object) -> ProjectSettings:
    """A project whose agent is `command`."""
    import shlex

    return ProjectSettings(
        name="harb",
        repo=folder / "clone",
        forge=LocalSettings(path=folder / "forge"),
        agent=AgentSettings(command=shlex.join(command), **agent),  # type: ignore[arg-type]
    )


def launch_of(project: ProjectSettings, prompt: str = "") -> Launch:
    """A start of the project's agent."""
    return Launch(project.agent, resolve(project.agent, {}), prompt)


def make_session(root: Root, worktree: Path, issue: int = 7) -> IssueSession:
    """The identity of a session whose worktree exists; no configuration is there."""
    worktree.mkdir(parents=True, exist_ok=True)
    session = IssueSession(
        IssueRecord(
            name=name_session("harb", issue),
            project="harb",
            issue=issue,
            title="Mend it",
            branch=f"fix/{issue}",
            base="main",
            remote="origin",
            repo=worktree.parent / "clone",
            provider="generic",
            cwd=worktree,
            config=worktree.parent / "sm.yaml",
            state_root=root.path,
            created_at=1000.0,
        )
    )
    return session.provide(holder=make_project(worktree.parent, ["agent"]))


def environment(log: Path) -> dict[str, str]:
    """The environment that it was started with."""
    found: dict[str, str] = json.loads(log.with_name(log.name + ".env").read_text())
    return found


def arguments(log: Path) -> list[str]:
    """The arguments behind its own two."""
    found: list[str] = json.loads(log.with_name(log.name + ".argv").read_text())
    return found
