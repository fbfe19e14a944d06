"""The people around the project: they file, review, answer, and take the blocked label off."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from sm.adapters.forge.model import BOT, CheckState, Issue, IssueState, PullRequest, PullState
from sm.base.errors import SmError
from sm.views.project import read_overview
from sm.views.states import ShownState
from tests.helpers import git
from tests.soak.room import Room
from tests.soak.work import NAME, Need, Part, file_of

AGAIN_S = 20.0
"""A question that is still there is answered once more, as a person would."""


@dataclass
class People:
    """`given_up` and `answered` count, for each issue, how often that had to be done."""

    room: Room
    parts: tuple[Part, ...]
    given_up: Counter[int] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    """What `sm` said of commands that failed."""
    filed: int = 0
    _answered_at: dict[tuple[int, int], float] = field(default_factory=dict)

    def look(self, elapsed_s: float) -> bool:
        """Do what is to be done now; returns whether every issue is closed."""
        if self.filed < len(self.parts) and elapsed_s >= self.parts[self.filed].at_s:
            self._file(self.parts[self.filed])
        try:
            found = self.room.project.forge.observe(start_checks=False)
            rows = read_overview(self.room.project, time.time()).sessions
            at_work = {row.issue: row.state for row in rows}
        except (SmError, OSError) as error:  # the disk is full, or the machine just starts
            self.problems.append(f"look: {error}")
            return False
        titles = {issue.number: issue.title for issue in found.issues}
        for pull in found.pulls:
            number = int(pull.branch.rpartition("/")[2])
            self._review(pull, number, wants_change=Need.CHANGES in titles[number])
        for issue in found.issues:
            if at_work.get(issue.number) is ShownState.ESCALATED:
                self._answer(issue)
            if "blocked" in issue.labels and issue.number not in at_work:
                self._take_up_again(issue)
        closed = sum(issue.state is IssueState.CLOSED for issue in found.issues)
        return closed == len(self.parts) and not at_work

    def _file(self, part: Part) -> None:
        argv = ("issue", "add", part.title, "--body", "Please.")
        if self._sm(*argv):
            self.filed += 1
        else:  # it may have been filed all the same
            with_it = [issue.title for issue in self.room.project.forge.issues.find()[0]]
            self.filed += part.title in with_it

    def _review(self, pull: PullRequest, issue: int, *, wants_change: bool) -> None:
        if pull.state is not PullState.OPEN or pull.check.state is not CheckState.SUCCESS:
            return
        if any(review.head == pull.head for review in pull.reviews):
            return
        bare, file = self.room.repository.bare, file_of(issue)
        if wants_change and "reviewed" not in git(bare, "show", f"{pull.head}:{file}"):
            wish = ("--request-changes", "--comment", f"{file}:1:say that it was reviewed")
            self._sm("review", str(pull.number), *wish)
        else:
            self._sm("review", str(pull.number), "--approve", "--head", pull.head)

    def _answer(self, issue: Issue) -> None:
        asked = (issue.number, sum(comment.author == BOT for comment in issue.comments))
        if time.monotonic() - self._answered_at.get(asked, -AGAIN_S) < AGAIN_S:
            return
        if self._sm("reply", NAME, str(issue.number), "Green."):
            self.answered[issue.number] += 1
            self._answered_at[asked] = time.monotonic()

    def _take_up_again(self, issue: Issue) -> None:
        labels = ("--remove", "blocked", "--add", "backlog")
        done = self._sm("issue", "label", str(issue.number), *labels)
        # A command that was killed, by a reboot, may have done its work before.
        if done or "blocked" not in self.room.project.forge.issues.read(issue.number).labels:
            self.given_up[issue.number] += 1

    def _sm(self, *args: str) -> bool:
        done = self.room.run("sm", *args)
        if done.returncode:
            self.problems.append(f"sm {' '.join(args)}: {done.returncode} {done.stderr.strip()}")
        return done.returncode == 0
