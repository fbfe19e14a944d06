"""How far the demo is: the rows that `sm status` has, plus those of issues that are over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cast import PARTS
from msgspec import structs
from person import People
from stage import DemoError, Stage

from sm.adapters.forge.model import PullState
from sm.base.issue_id import IssueId
from sm.views import trace
from sm.views.open_need import OpenNeed
from sm.views.project import read_overview
from sm.views.session import read_last_look
from sm.views.session_row import SessionRow
from sm.views.states import ShownState

QUEUE = "slurm"
"""The host of a session that has none yet."""


@dataclass(frozen=True)
class Played:
    """A demo at its end: what each issue has cost, and what is not as it should be."""

    progress: Progress
    people: People
    took_s: float
    costs: Mapping[IssueId, str]
    problems: tuple[str, ...]


@dataclass
class Progress:
    """The state of all issues, as of the last look.

    `queue` is what `squeue` shows; `hosts` are where each issue was worked on.
    """

    stage: Stage
    started_at: float = field(default_factory=time.time)
    active: list[SessionRow] = field(default_factory=list)
    needs: Sequence[OpenNeed] = ()
    queue: Sequence[str] = ()
    over: dict[IssueId, SessionRow] = field(default_factory=dict)
    hosts: dict[IssueId, list[str]] = field(default_factory=dict)
    _ended_at: dict[IssueId, float] = field(default_factory=dict)
    _took_s: dict[IssueId, float] = field(default_factory=dict)

    def look(self) -> None:
        """Look at everything again.

        Raises:
            DemoError: a session has ended without a merge, which only a person may have it do.

        """
        self.queue = self.stage.read_queue()
        found = read_overview(self.stage.project, time.time())
        at_work = {row.issue for row in found.sessions}
        for row in self.active:
            if row.issue not in at_work:
                self.over[row.issue] = self._settled(row)
        self.active, self.needs = list(found.sessions), found.needs
        for row in self.active:
            known = self.hosts.setdefault(row.issue, [])
            if row.host and row.host not in (QUEUE, *known[-1:]):
                known.append(row.host)

    def _settled(self, row: SessionRow) -> SessionRow:
        """The last row of a session that is over, with what came of it."""
        project, branch = self.stage.project, self.stage.project.settings.branch(row.issue)
        pull = read_last_look(project).pull(branch)
        if pull is None or pull.state is not PullState.MERGED:  # merged since, on a node
            pull = project.forge.pulls.find_newest(branch)
        self._ended_at[row.issue] = time.time()
        told = self.summary(row.issue)
        if pull is None or pull.state is not PullState.MERGED:
            if self.stage.agent.own or self.stage.is_shared:
                self._took_s[row.issue] = told.took_s
                return structs.replace(row, state=ShownState.FAILED, waits_for="", need=None)
            raise DemoError(f"the session of issue #{row.issue} has ended, and nothing was merged")
        # The first event comes a while after its beginning.
        self._took_s[row.issue] = max(time.time() - row.begun_at, told.took_s)
        return structs.replace(
            row,
            state=ShownState.MERGED,
            fixes=told.fixes,
            rounds=told.rounds,
            restarts=told.recoveries,
            event=f"merged as pull request #{pull.number}",
            waits_for="",
            problem="",
            need=None,
        )

    def summary(self, issue: IssueId) -> trace.Summary:
        """What `sm trace` says of the issue at its end."""
        return self.stage.read_summary(issue)

    @property
    def rows(self) -> list[SessionRow]:
        """Everything that was taken up, by issue."""
        now = time.time()
        over = [
            structs.replace(row, begun_at=now - self._took_s[issue], event_at=self._ended_at[issue])
            for issue, row in self.over.items()
        ]
        return sorted([*over, *self.active], key=lambda row: row.issue)

    @property
    def next(self) -> list[int]:
        """The issues that were not taken up yet."""
        taken_up = {row.issue for row in self.rows}
        return [number for number in range(1, len(PARTS) + 1) if number not in taken_up]

    @property
    def merged(self) -> int:
        """How many issues are merged."""
        return sum(row.state is ShownState.MERGED for row in self.over.values())

    @property
    def is_over(self) -> bool:
        """Whether every issue is."""
        return len(self.over) == len(PARTS)

    @property
    def elapsed_s(self) -> float:
        """Seconds since dev-poll was started."""
        return time.time() - self.started_at
