"""Supervision: leftovers and missing things, and what is safe to do. See `docs/PROTOCOL.md`.

`dev-poll` and `sm doctor --fix` go by this table: they find things, and the first row that applies
to a thing says what becomes of it. A thing without a row is left alone and not told.

A row that removes something is for what provably belongs to this installation, and for what exists
elsewhere as well. Whatever could be somebody's work, or somebody else's, is a person's to decide:
such a row has no act, only the command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from enum import StrEnum, unique

from msgspec import Struct

from sm.issues.rules.leftover import MOMENT_S, IssueStanding, Left, Owner, Thing


class ProjectWords(Struct, frozen=True):
    """Words of a project that commands need."""

    project: str
    repo: str
    remote: str
    backlog: str
    tmux: str = "tmux"

    @property
    def git(self) -> str:
        """Beginning of a command in the clone."""
        return f"git -C {shlex.quote(self.repo)}"


@unique
class RepairAct(StrEnum):
    """Act on a thing; the words are those of docs/PROTOCOL.md."""

    REMOVE_LOCK = "remove it"
    REBUILD = "make it anew"
    START = "start its agent, or adopt it"
    WATCH = "start a monitor"
    WAKE = "wake its monitor"
    LET_GO = "end what is left of it and give the claim up"
    END_TERMINAL = "end it, and what runs there"
    END_PROCESS = "end it"
    RELINK = "have git repair the link"
    FORGET_WORKTREE = "drop git's record of it"
    REMOVE_WORKTREE = "remove it and the clone's branch, if nothing is lost and nobody is in it"
    CLOSE_PULL = "close it"
    DELETE_BRANCH = "delete it"


class By(StrEnum):
    """Actor of a row."""

    BOTH = "tick, doctor"
    TICK = "tick"
    DOCTOR = "doctor"
    PERSON = "you"


def always(_: Left) -> bool:
    """Return True: for a row about every thing of its kind that no earlier row is about."""
    return True


class SupervisionRow(Struct, frozen=True, eq=False):
    """Row: what is done about a thing if `when` holds and it is at least `after_s` seconds old.

    `fact` is `when` in words. `told` says what was found, `doing` and `done` what is done about it,
    `command` what a person can do. These are templates over a `Left`, as `left`, and
    `ProjectWords`, as `at`.
    """

    name: str
    thing: Thing
    fact: str
    by: By
    told: str
    command: str
    act: RepairAct | None = None
    doing: str = ""
    done: str = ""
    when: Callable[[Left], bool] = always
    after_s: float = 0.0

    def applies(self, left: Left) -> bool:
        """Whether the row is about this thing."""
        return left.thing is self.thing and left.age_s >= self.after_s and self.when(left)


class Ruling(Struct, frozen=True):
    """Ruling of the table on one thing, in words and as the act."""

    row: SupervisionRow
    left: Left
    told: str
    doing: str
    done: str
    command: str


ROWS: tuple[SupervisionRow, ...] = (
    SupervisionRow(
        "lock-left",
        Thing.LOCK,
        "no process has it open, and no git at work there can have made it",
        By.BOTH,
        "git has left the lock '{left.name}' behind",
        "rm {left.quoted}",
        RepairAct.REMOVE_LOCK,
        "remove '{left.name}', which a killed git has left behind",
        "removed '{left.name}', which a killed git had left behind",
        after_s=MOMENT_S,
    ),
    SupervisionRow(
        "record-damaged",
        Thing.RECORD,
        "it is damaged, and its issue is on the forge",
        By.BOTH,
        "{left.detail}",
        "",
        RepairAct.REBUILD,
        "make the record of {left.name} anew",
        "make the record of {left.name} anew",
        lambda left: bool(left.issue) and left.standing is not IssueStanding.UNKNOWN,
    ),
    SupervisionRow(
        "record-lost",
        Thing.RECORD,
        "it is damaged, and nothing else tells what was in it",
        By.PERSON,
        "{left.detail}",
        "",
    ),
    SupervisionRow(
        "start-cut-short",
        Thing.SESSION,
        "it has had no agent yet, and is not paused",
        By.TICK,
        "the start of session '{left.name}' was cut short",
        "",
        RepairAct.START,
        "finish the start of",
        when=lambda left: not (left.is_started or left.is_paused),
    ),
    SupervisionRow(
        "monitor-gone",
        Thing.SESSION,
        "it has no monitor",
        By.BOTH,
        "session '{left.name}' has no monitor",
        "",
        RepairAct.WATCH,
        "restart the monitor of {left.who}",
        "restart the monitor of {left.who}",
        lambda left: left.is_started and not left.is_watched,
    ),
    SupervisionRow(
        "terminal-gone",
        Thing.SESSION,
        "its tmux session is gone, and it is not paused",
        By.TICK,
        "",
        "",
        RepairAct.WAKE,
        when=lambda left: not (left.has_terminal or left.is_paused),
    ),
    SupervisionRow(
        "claim-lost",
        Thing.CLAIM,
        "it is ours, its issue is open, no session is on record, and none is paused",
        By.TICK,
        "issue {left.called} is claimed by us and has no session",
        "dev-poll takes it up again while it is open; to give it up: {at.git} push {at.remote} "
        ":{left.name}",
        RepairAct.START,
        "take up again",
        when=lambda left: (
            left.owner is Owner.OURS and not (left.has_session or left.is_settled or left.is_paused)
        ),
    ),
    SupervisionRow(
        "claim-settled",
        Thing.CLAIM,
        "it is ours, its issue is closed, blocked or deleted, no session is on record, and none is "
        "paused",
        By.BOTH,
        "issue {left.called} is {left.standing}, and still claimed by us",
        "",
        RepairAct.LET_GO,
        "give up the claim of {left.called}, which is {left.standing}",
        "gave up the claim of {left.called}, which is {left.standing}",
        when=lambda left: left.owner is Owner.OURS and not (left.has_session or left.is_paused),
    ),
    SupervisionRow(
        "claim-moved",
        Thing.CLAIM,
        "it names this machine, user and state root, and a clone that is not there any more",
        By.PERSON,
        "issue {left.called} is claimed by your clone as it was at '{left.detail}'",
        "to have it worked on from here: sm recover {at.project}#{left.issue}",
        when=lambda left: left.owner is Owner.MOVED,
    ),
    SupervisionRow(
        "issue-unknown",
        Thing.ISSUE,
        "a session works on it, and the forge does not have it",
        By.PERSON,
        "session '{left.name}' works on issue {left.called}, which the forge does not have",
        "it was deleted or moved; to end the session, with its work kept: sm kill "
        "{at.project}#{left.issue}",
        when=lambda left: left.has_session and left.standing is IssueStanding.UNKNOWN,
    ),
    SupervisionRow(
        "issue-idle",
        Thing.ISSUE,
        "its label says that a session works on it, and nobody has claimed it",
        By.PERSON,
        "issue {left.called} is labelled as being worked on, and no session works on it",
        "to have it worked on: sm issue label {at.project}#{left.issue} --add {at.backlog}",
        when=lambda left: (
            left.is_marked and not (left.has_session or left.is_claimed or left.is_settled)
        ),
    ),
    SupervisionRow(
        "terminal-over",
        Thing.TERMINAL,
        "we have made it, no session is on record, its issue is closed or deleted and not claimed, "
        "and nobody is at it",
        By.BOTH,
        "tmux session '{left.name}' has no record, and issue {left.called} is {left.standing}",
        "{at.tmux} kill-session -t '={left.name}'",
        RepairAct.END_TERMINAL,
        "end tmux session '{left.name}': issue {left.called} is {left.standing}",
        "ended tmux session '{left.name}': issue {left.called} is {left.standing}",
        lambda left: (
            left.owner is Owner.OURS and left.is_over and not (left.has_session or left.is_claimed)
        ),
        after_s=MOMENT_S,
    ),
    SupervisionRow(
        "terminal-elsewhere",
        Thing.TERMINAL,
        "another installation has made it",
        By.PERSON,
        "tmux session '{left.name}' is of another state root, and has a name of ours",
        "give one of the two projects another 'name', or its installation a 'tmux_socket'",
        when=lambda left: left.owner is Owner.ELSEWHERE and not left.has_session,
    ),
    SupervisionRow(
        "terminal-alone",
        Thing.TERMINAL,
        "no session is on record",
        By.PERSON,
        "tmux session '{left.name}' has no record",
        "unless dev-poll takes it up again: {at.tmux} kill-session -t '={left.name}'",
        when=lambda left: not left.has_session,
    ),
    SupervisionRow(
        "process-left",
        Thing.PROCESS,
        "an agent has started it, and that agent and its session have ended",
        By.DOCTOR,
        "process {left.name} was left running by the agent of '{left.detail}', which has ended",
        "",
        RepairAct.END_PROCESS,
        "end process {left.name}, which the agent of '{left.detail}' has left running",
        "ended process {left.name}, which the agent of '{left.detail}' had left running",
        after_s=MOMENT_S,
    ),
    SupervisionRow(
        "monitor-left",
        Thing.MONITOR,
        "its session is gone",
        By.DOCTOR,
        "the monitor of '{left.detail}', process {left.name}, runs, and that session is gone",
        "",
        RepairAct.END_PROCESS,
        "end process {left.name}, the monitor of '{left.detail}', which is gone",
        "ended process {left.name}, the monitor of '{left.detail}', which is gone",
        after_s=MOMENT_S,
    ),
    SupervisionRow(
        "worktree-cut-off",
        Thing.WORKTREE,
        "the clone was moved: the worktree looks for it where it was",
        By.BOTH,
        "worktree '{left.name}' does not find the clone, which was moved",
        "{at.git} worktree repair",
        RepairAct.RELINK,
        "have git repair the link of '{left.name}' to the clone",
        "repaired the link of '{left.name}' to the clone",
        lambda left: left.is_there and not left.is_linked and left.owner is Owner.OURS,
    ),
    SupervisionRow(
        "worktree-unknown",
        Thing.WORKTREE,
        "its folder is where worktrees are, and the clone does not know it",
        By.PERSON,
        "'{left.name}' is where the worktree of issue {left.called} belongs, and is none of the "
        "clone's",
        "look what is in it, and move it away",
        when=lambda left: left.is_there and not left.is_linked,
    ),
    SupervisionRow(
        "worktree-over",
        Thing.WORKTREE,
        "its issue is closed or deleted, not claimed, and no session is on record",
        By.BOTH,
        "a worktree of issue {left.called} was kept: '{left.name}'",
        "sm worktree drop {at.project}#{left.issue}",
        RepairAct.REMOVE_WORKTREE,
        "remove the worktree of {left.called}",
        "removed the worktree of {left.called}",
        lambda left: left.is_over and not (left.has_session or left.is_claimed),
    ),
    SupervisionRow(
        "worktree-gone",
        Thing.WORKTREE,
        "its folder beside the clone was removed by hand, it was on its own branch, its issue is "
        "not claimed, and no session is on record",
        By.BOTH,
        "the worktree of issue {left.called} was removed by hand: '{left.name}'",
        "{at.git} worktree remove {left.quoted}",
        RepairAct.FORGET_WORKTREE,
        "drop git's record of '{left.name}', which was removed by hand; its branch stays",
        "dropped git's record of '{left.name}', which was removed by hand; its branch stays",
        lambda left: (
            not (left.is_there or left.has_session or left.is_claimed) and left.owner is Owner.OURS
        ),
    ),
    SupervisionRow(
        "worktree-kept",
        Thing.WORKTREE,
        "its issue is open, and no session is on record",
        By.PERSON,
        "a worktree of issue {left.called} was kept: '{left.name}'",
        "it goes with its issue; to remove it now: sm worktree drop {at.project}#{left.issue}",
        when=lambda left: not left.has_session,
    ),
    SupervisionRow(
        "pull-over",
        Thing.PULL,
        "sm has opened it, and its issue is closed, not claimed, and has no session",
        By.BOTH,
        "pull request {left.name} of {left.called} is open, and the issue is closed",
        "sm pr close {left.name}",
        RepairAct.CLOSE_PULL,
        "close the pull request {left.name} of {left.called}",
        "closed the pull request {left.name} of {left.called}, which is closed",
        lambda left: left.is_over and not (left.has_session or left.is_claimed),
    ),
    SupervisionRow(
        "branch-over",
        Thing.BRANCH,
        "it is on the remote without work, and its issue is closed, not claimed, has no session",
        By.BOTH,
        "branch '{left.name}' has no work, and issue {left.called} is closed",
        "{at.git} push {at.remote} :refs/heads/{left.name}",
        RepairAct.DELETE_BRANCH,
        "delete the branch '{left.name}'",
        "deleted the branch '{left.name}', which has no work",
        lambda left: (
            not left.is_local and left.is_over and not (left.has_session or left.is_claimed)
        ),
    ),
    SupervisionRow(
        "branch-left",
        Thing.BRANCH,
        "it is one of the clone without a worktree, and its issue is closed, not claimed, has no "
        "session",
        By.DOCTOR,
        "your clone has the branch '{left.name}', and issue {left.called} is closed",
        "{at.git} branch -D {left.name}",
        RepairAct.REMOVE_WORKTREE,
        "delete the branch '{left.name}' of the clone, if its work is on the remote",
        "deleted the branch '{left.name}' of the clone, whose work is on the remote",
        lambda left: left.is_local and left.is_over and not (left.has_session or left.is_claimed),
    ),
)

BY_NAME = {row.name: row for row in ROWS}


def judge(left: Left, at: ProjectWords) -> Ruling | None:
    """Return the table's ruling on the thing; None if it is left alone."""
    row = next((row for row in ROWS if row.applies(left)), None)
    if row is None:
        return None
    told, doing, done, command = (
        text.format(left=left, at=at) for text in (row.told, row.doing, row.done, row.command)
    )
    return Ruling(row, left, told, doing, done, command)
