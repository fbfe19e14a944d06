"""What people do in the demo: review, answer, and pull the plug. All by commands.

What a person is patiently waited for, who does it on the page, the script leaves alone.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cast import NAME, PARTS, Journey, Part, Remark
from patience import Patience
from stage import DemoError, Stage

from sm.adapters.forge.model import BOT, CheckState, PullRequest
from sm.base.issue_id import IssueId, check_pull
from sm.views.open_need import OpenNeed
from sm.views.project import read_overview
from sm.views.session import read_last_look
from sm.views.session_row import SessionRow
from sm.views.states import ShownState

ANSWERS = 4
"""To an agent that nobody can foresee; one that asks more often gets nowhere."""
PLAIN = re.compile(r"[\w./-][\w./#-]*")
NO_ANSWER = "Decide it yourself, in the way that fits the issue best."


@dataclass(frozen=True)
class Deed:
    """Something that a person did at `at`, seconds since the epoch: the command and why.

    `issue` is the one whose need it answers, 0 for none. There is no command for what whoever runs
    the demo has done on the page.
    """

    at: float
    command: str
    why: str
    issue: IssueId = 0

    @property
    def told(self) -> str:
        """The command, if there is one."""
        return f"$ {self.command}" if self.command else "on the page"


@dataclass
class People:
    """The people around the project. `report` is called with every deed, before it is done.

    `left` is until when each need is left to whoever runs the demo, by its key; `by_hand` are the
    issues of which they have answered one.
    """

    stage: Stage
    report: Callable[[Deed], None]
    patience: Patience = field(default_factory=Patience)
    left: dict[str, float] = field(default_factory=dict)
    by_hand: set[IssueId] = field(default_factory=set)
    _open: dict[str, OpenNeed] = field(default_factory=dict)
    _met: set[str] = field(default_factory=set)
    _done: set[tuple[object, ...]] = field(default_factory=set)

    def act(self, rows: list[SessionRow], needs: Sequence[OpenNeed]) -> None:
        """Do what is to be done now, once each.

        Raises:
            DemoError: an agent asks for something that is not in the scenario.

        """
        needed = {need.issue: need for need in needs if need.key not in self.left}
        for row in rows:
            part = PARTS[check_pull(row.issue) - 1]
            if part.journey is Journey.KILLED:
                self._kill(row)
            need = needed.get(row.issue)
            if need is None:
                continue
            self._met.add(need.key)
            try:
                self._meet(row, part)
            except DemoError:
                if self._is_open(need):
                    raise
                self.by_hand.add(need.issue)  # the person was quicker

    def _meet(self, row: SessionRow, part: Part) -> None:
        if row.state is ShownState.ESCALATED:
            self._answer(row, part)
        elif row.state is ShownState.AWAITING_REVIEW:
            self._review(row, part)

    def _is_open(self, need: OpenNeed) -> bool:
        seen = read_overview(self.stage.project, time.time())
        return not self.patience.wait_s or any(one.key == need.key for one in seen.needs)

    def hear(self, needs: Iterable[OpenNeed]) -> None:
        """Find out what is left to the person now, and what they have done."""
        now, before = time.time(), self._open
        self._open = {need.key: need for need in needs}
        for key, need in before.items():
            if key not in self._open and key in self.left:
                self.by_hand.add(need.issue)
                self.report(Deed(now, "", "answered", need.issue))
        self.patience.forget_others(self._open)
        ends = {key: self.patience.find_end(key) for key in self._open if key not in self._met}
        now = time.time()  # later than an end that is now: without patience nothing is left
        self.left = {key: end for key, end in ends.items() if end > now}
        self._met &= self._open.keys()

    def _review(self, row: SessionRow, part: Part) -> None:
        pull = next(
            (p for p in read_last_look(self.stage.project).pulls if p.number == row.pull), None
        )
        if pull is None or pull.check.state is not CheckState.SUCCESS:
            return
        if part.remark and self._first("remark", row.issue):
            self._first("review", pull.head)
            self._request(row.issue, pull, part.remark)
        elif self._first("review", pull.head):
            why = "the remark is dealt with" if part.remark else "it looks good"
            self._sm(why, "review", f"{NAME}#{pull.number}", "--approve", issue=row.issue)

    def _request(self, issue: IssueId, pull: PullRequest, remark: Remark) -> None:
        tree = self.stage.git("ls-tree", "-r", "--name-only", pull.head, folder=self.stage.hub)
        if remark.path not in tree.split("\n"):  # an agent's own idea of where it belongs
            self._sm(
                "one thing is missing",
                "review",
                f"{NAME}#{pull.number}",
                "--request-changes",
                "-m",
                remark.less,
                issue=issue,
            )
            return
        text = self.stage.git("show", f"{pull.head}:{remark.path}", folder=self.stage.hub)
        lines = enumerate(text.splitlines(), 1)
        line = next((number for number, each in lines if remark.anchor in each), 0)
        wish = f"{line}:{remark.text}" if line else f"1:{remark.less}"
        self._sm(
            "one thing is missing",
            *("review", f"{NAME}#{pull.number}", "--request-changes"),
            *("--comment", f"{remark.path}:{wish}"),
            issue=issue,
        )

    def _answer(self, row: SessionRow, part: Part) -> None:
        """Answer the question, once it can be read on the issue."""
        answered = sum(deed[:2] == ("answer", row.issue) for deed in self._done)
        unforeseen = not part.answer and row.issue not in self.by_hand
        if (unforeseen and not self.stage.agent.own) or answered > ANSWERS:
            what = row.reason or row.event
            raise DemoError(f"#{row.issue} needs a person where none was foreseen: {what}")
        comments = self.stage.project.forge.issues.read(row.issue).comments
        asked = sum(comment.author == BOT for comment in comments)
        repeats = self.stage.agent.own or row.issue in self.by_hand
        if asked and self._first("answer", row.issue, asked if repeats else 1):
            answer = part.answer or NO_ANSWER
            self._sm("an answer", "reply", NAME, str(row.issue), answer, issue=row.issue)

    def _kill(self, row: SessionRow) -> None:
        """Pull the plug once the agent has edited all that it wants to, and committed nothing."""
        if row.restarts or ("kill", row.issue) in self._done or not self._has_edited(row):
            return
        plug = self.stage.find_plug(row)
        if plug and self._first("kill", row.issue):
            self.report(Deed(time.time(), plug.command, plug.why))
            plug.pull()

    def _has_edited(self, row: SessionRow) -> bool:
        """README.md is what the script edits last; with others, any file will do."""
        if not Path(row.cwd).is_dir():
            return False
        try:
            changed = self.stage.run("git", "-C", row.cwd, "status", "--porcelain")
        except DemoError:  # it is just being made
            return False
        return bool(changed) if self.stage.agent.own else "README.md" in changed

    def has_answered(self, issue: IssueId) -> bool:
        """Whether the agent of this issue was told what it had asked."""
        return issue in self.by_hand or any(deed[:2] == ("answer", issue) for deed in self._done)

    def _sm(self, why: str, *args: str, issue: IssueId) -> None:
        self.report(Deed(time.time(), _spell(["sm", *args]), why, issue))
        self.stage.run("sm", *args)

    def _first(self, *deed: object) -> bool:
        """Whether this has not been done yet; from now on it has."""
        if deed in self._done:
            return False
        self._done.add(deed)
        return True


def _spell(argv: list[str]) -> str:
    """As a person types it: a shell takes `textkit#7` as it is."""
    return " ".join(word if PLAIN.fullmatch(word) else shlex.quote(word) for word in argv)
