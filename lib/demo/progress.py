"""How far the demo is: the rows that `sm status` has, plus those of issues that are over."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from cast import PARTS
from msgspec import structs
from stage import DemoError, Stage

from sm.forge import IssueState, PullState
from sm.workflow import trace
from sm.workflow.overview import overview
from sm.workflow.status import State, StatusRow, seen


@dataclass
class Progress:
    """The state of all issues. `rows` are those that were taken up, `next` the other numbers."""

    stage: Stage
    started_at: float = field(default_factory=time.time)
    active: list[StatusRow] = field(default_factory=list)
    next: list[int] = field(default_factory=list)
    _known: dict[int, StatusRow] = field(default_factory=dict)

    def look(self) -> None:
        """Look at everything again.

        Raises:
            DemoError: an issue has been given up.

        """
        now = time.time()
        found = overview(self.stage.context, now)
        self.active = list(found.sessions)
        self._known |= {row.issue: row for row in self.active}
        at_work = {row.issue for row in self.active}
        for issue in set(self._known) - at_work:
            self._known[issue] = self._settle(self._known[issue], now)
        self.next = [n for n in range(1, len(PARTS) + 1) if n not in self._known]
        if given_up := [one for one in found.waiting if one.issue in self._known and not one.ready]:
            raise DemoError(f"issue #{given_up[0].issue} was given up: {given_up[0].why}")

    def _settle(self, row: StatusRow, now: float) -> StatusRow:
        """The last row of a session that is over, with what came of it."""
        known = seen(self.stage.context)
        branch = self.stage.context.project.branch(row.issue)
        issue, pull = known.issue(row.issue), known.pull(branch)
        if row.phase is State.MERGED and not row.agent and not row.monitor:
            return structs.replace(row, last_event_age_s=now - self._ended_at(row))
        if not issue or issue.state is IssueState.OPEN or not pull:
            return row
        if pull.state is not PullState.MERGED:
            raise DemoError(f"issue #{row.issue} is closed, but nothing was merged for it")
        told = self.summary(row.issue)
        return structs.replace(
            row,
            phase=State.MERGED,
            fixes=told.fixes,
            rounds=told.rounds,
            recoveries=told.recoveries,
            age_s=told.took_s,
            last_event="closed the issue, removed the worktree",
            last_event_age_s=now - self._ended_at(row),
            waits_for="",
            problem="",
            monitor=False,
            agent=False,
        )

    def _ended_at(self, row: StatusRow) -> float:
        return trace.story(self.stage.context, row.issue).entries[-1].at

    def summary(self, issue: int) -> trace.Summary:
        """What `sm trace` says of the issue at its end."""
        return trace.story(self.stage.context, issue).summary

    @property
    def rows(self) -> list[StatusRow]:
        """Everything that was taken up, by issue."""
        return [self._known[issue] for issue in sorted(self._known)]

    @property
    def merged(self) -> list[int]:
        """The issues that are over and merged."""
        at_work = {row.issue for row in self.active}
        return [
            row.issue for row in self.rows if row.phase is State.MERGED and row.issue not in at_work
        ]

    @property
    def is_over(self) -> bool:
        """Whether every issue is."""
        return len(self.merged) == len(PARTS)

    @property
    def elapsed_s(self) -> float:
        """Seconds since dev-poll was started."""
        return time.time() - self.started_at
