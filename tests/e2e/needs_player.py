"""Plays the demo's issues as somebody who knows nothing but what `sm needs` prints.

Usage: needs_player.py; it ends with 0 once all issues are merged. Each command is run by a shell as
it stands there: only TEXT, and what a reviewer decides, are filled in.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "demo")]

from cast import NAME, PARTS, Journey, Part, Remark  # noqa: E402
from stage import DemoError, Stage  # noqa: E402

from sm.adapters.forge.model import IssueState  # noqa: E402
from sm.store.paths import name_session  # noqa: E402

END_S = 150.0
LOOK_S = 0.3


def main() -> int:
    """Play on a stage of its own, and clear it away."""
    stage = Stage.new()
    try:
        stage.enter()
        stage.build(print)
        stage.start()
        play(stage)
        stage.end()
    finally:
        stage.clear()
        stage.remove()
    return 0


def play(stage: Stage) -> None:
    """Do what is needed until nothing is open any more.

    Raises:
        DemoError: the end does not come, or a command does not work.

    """
    deadline = time.monotonic() + END_S
    asked, answered = set[str](), set[str]()
    plugged = [number for number, part in enumerate(PARTS, 1) if part.journey is Journey.KILLED]
    while stage.project.forge.issues.find(IssueState.OPEN)[0]:
        stage.check_poll()
        for need in list_needs(stage):
            if need["key"] not in answered:
                answered.add(need["key"])
                line = fill_in(stage, need, asked)
                print(f"{need['name']}: {need['text']}\n$ {line}", flush=True)
                stage.run("bash", "-c", line)
        plugged = [issue for issue in plugged if not pull_plug(stage, issue)]
        if time.monotonic() > deadline:
            raise DemoError(f"not all was merged within {END_S:g} s:\n{stage.run('sm', 'status')}")
        time.sleep(LOOK_S)
    if left := list_needs(stage):
        raise DemoError(f"all is merged, and this is still needed: {left}")


def pull_plug(stage: Stage, issue: int) -> bool:
    """Kill the agent that waits for that, as the demo does, once it has edited its last file."""
    worktree = stage.project.settings.worktree(issue)
    pane = stage.project.tmux.pane(name_session(NAME, issue))
    if pane is None or not (worktree / ".git").exists():
        return False
    try:
        changed = stage.git("status", "--porcelain", folder=worktree)
    except DemoError:  # it is just being made
        return False
    if "README.md" not in changed:
        return False
    os.kill(pane.pid, signal.SIGKILL)
    return True


def list_needs(stage: Stage) -> list[dict[str, Any]]:
    """What waits now: `sm needs` ends with 1 then."""
    said = stage.run("bash", "-c", "sm needs --json || [[ $? == 1 ]]")
    found: list[dict[str, Any]] = json.loads(said)
    return found


def fill_in(stage: Stage, need: dict[str, Any], asked: set[str]) -> str:
    """The command as it stands, with what only this person knows."""
    part: Part = PARTS[need["issue"] - 1]
    line: str = need["command"]
    if need["kind"] == "question":
        if not part.answer:
            raise DemoError(f"nobody was to ask: {need}")
        return line.replace("TEXT", shlex.quote(part.answer))
    if need["kind"] != "review":
        raise DemoError(f"nothing but questions and reviews was to wait: {need}")
    if part.remark and part.title not in asked:
        asked.add(part.title)
        where = f"{part.remark.path}:{find_line(stage, need['issue'], part.remark)}"
        remark = shlex.quote(f"{where}:{part.remark.text}")
        return line.replace("--approve", f"--request-changes --comment {remark}")
    return line


def find_line(stage: Stage, issue: int, remark: Remark) -> int:
    """Where in the branch of the issue the reviewer's remark belongs."""
    branch = stage.project.settings.branch(issue)
    text = stage.git("show", f"{branch}:{remark.path}", folder=stage.hub)
    lines = enumerate(text.splitlines(), 1)
    return next(number for number, each in lines if remark.anchor in each)


if __name__ == "__main__":
    sys.exit(main())
