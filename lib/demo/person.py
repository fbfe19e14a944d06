"""What people do in the demo: review, answer, and pull the plug. All by commands."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cast import PARTS, Journey, Part, Remark
from stage import DemoError, Stage

from sm.forge import CheckState, PullRequest
from sm.workflow.status import State, StatusRow, seen


@dataclass(frozen=True)
class Deed:
    """Something that a person did at `at`, seconds since the epoch: the command and why."""

    at: float
    command: str
    why: str


@dataclass
class People:
    """The people around the project. `report` is called with every deed, before it is done."""

    stage: Stage
    report: Callable[[Deed], None]
    _done: set[tuple[object, ...]] = field(default_factory=set)

    def look(self, rows: list[StatusRow]) -> None:
        """Do what is to be done now, once each.

        Raises:
            DemoError: an agent asks for something that is not in the scenario.

        """
        for row in rows:
            part = PARTS[row.issue - 1]
            if part.journey is Journey.KILLED:
                self._kill(row)
            if row.phase is State.ESCALATED:
                self._answer(row, part)
            elif row.phase is State.AWAITING_REVIEW:
                self._review(row, part)

    def _review(self, row: StatusRow, part: Part) -> None:
        pull = next((p for p in seen(self.stage.context).pulls if p.number == row.pull), None)
        if pull is None or pull.check.state is not CheckState.SUCCESS:
            return
        if part.remark and self._first("remark", row.issue):
            self._first("review", pull.head)
            self._request(pull, part.remark)
        elif self._first("review", pull.head):
            why = "the remark is dealt with" if part.remark else "it looks good"
            self._sm(why, "review", str(pull.number), "--approve", "--head", pull.head[:12])

    def _request(self, pull: PullRequest, remark: Remark) -> None:
        text = self.stage.git("show", f"{pull.head}:{remark.path}", folder=self.stage.hub)
        lines = text.splitlines()
        line = next((n for n, each in enumerate(lines, 1) if remark.anchor in each), 1)
        self._sm(
            "one thing is missing",
            *("review", str(pull.number), "--request-changes"),
            *("--comment", f"{remark.path}:{line}:{remark.text}"),
        )

    def _answer(self, row: StatusRow, part: Part) -> None:
        """Answer the question, once it can be read on the issue."""
        if not part.answer:
            what = row.reason or row.last_event
            raise DemoError(f"#{row.issue} needs a person where none was foreseen: {what}")
        asked = self.stage.context.forge.issue(row.issue).comments
        if asked and self._first("answer", row.issue):
            self._sm("the agent has asked", "reply", row.project, str(row.issue), part.answer)

    def _kill(self, row: StatusRow) -> None:
        """Pull the plug once the agent has edited all that it wants to, and committed nothing."""
        if row.recoveries or ("kill", row.issue) in self._done or not self._has_edited(row):
            return
        pane = self.stage.context.tmux.pane(row.session)
        if pane and self._first("kill", row.issue):
            why = f"the agent of #{row.issue} is at work, nothing committed"
            self.report(Deed(time.time(), f"kill -9 {pane.pid}", why))
            os.kill(pane.pid, signal.SIGKILL)  # the program of that name is an extra package

    def _has_edited(self, row: StatusRow) -> bool:
        """README.md is what an agent edits last."""
        if not Path(row.worktree).is_dir():
            return False
        changed = self.stage.run("git", "-C", row.worktree, "status", "--porcelain")
        return "README.md" in changed

    def _sm(self, why: str, *args: str) -> None:
        self.report(Deed(time.time(), shlex.join(["sm", *args]), why))
        self.stage.run("sm", *args)

    def _first(self, *deed: object) -> bool:
        """Whether this has not been done yet; from now on it has."""
        if deed in self._done:
            return False
        self._done.add(deed)
        return True
