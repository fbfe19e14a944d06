"""What is done about what is left over: decisions alone."""

from __future__ import annotations

from itertools import product
from string import Formatter
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.git_locks import OLD_S
from sm.issues.rules.leftover import MOMENT_S, IssueStanding, Left, Owner, Thing
from sm.issues.rules.supervision import BY_NAME, ROWS, By, ProjectWords, RepairAct, judge
from sm.issues.supervise.act import ACTS, STARTS
from tests.helpers import REPOSITORY
from tests.supervision import supervision_table

AT = ProjectWords("shop", "/home/ada/the shop", "hub", "backlog", "tmux -L sm")


def row(thing: Thing, **known: Any) -> str:
    """The name of the row that decides, '' for none."""
    ruling = judge(Left(thing=thing, name="x", issue=7, **known), AT)
    return ruling.row.name if ruling else ""


@pytest.mark.parametrize(
    ("name", "thing", "known"),
    [
        ("lock-left", Thing.LOCK, {}),
        ("", Thing.LOCK, {"age_s": MOMENT_S - 1}),
        ("record-damaged", Thing.RECORD, {}),
        ("record-lost", Thing.RECORD, {"standing": IssueStanding.UNKNOWN}),
        ("start-cut-short", Thing.SESSION, {"is_started": False, "is_watched": False}),
        ("monitor-gone", Thing.SESSION, {"is_watched": False, "has_terminal": False}),
        ("terminal-gone", Thing.SESSION, {"has_terminal": False}),
        ("", Thing.SESSION, {}),
        ("claim-lost", Thing.CLAIM, {}),
        ("claim-settled", Thing.CLAIM, {"standing": IssueStanding.CLOSED}),
        ("claim-settled", Thing.CLAIM, {"standing": IssueStanding.BLOCKED}),
        ("claim-settled", Thing.CLAIM, {"standing": IssueStanding.UNKNOWN}),
        ("claim-moved", Thing.CLAIM, {"owner": Owner.MOVED, "standing": IssueStanding.CLOSED}),
        ("", Thing.CLAIM, {"owner": Owner.ELSEWHERE, "standing": IssueStanding.CLOSED}),
        ("issue-unknown", Thing.ISSUE, {"has_session": True, "standing": IssueStanding.UNKNOWN}),
        ("", Thing.ISSUE, {"has_session": True, "is_marked": True}),
        ("issue-idle", Thing.ISSUE, {"is_marked": True}),
        ("", Thing.ISSUE, {"is_marked": True, "is_claimed": True}),
        ("terminal-over", Thing.TERMINAL, {"standing": IssueStanding.CLOSED}),
        ("terminal-alone", Thing.TERMINAL, {"standing": IssueStanding.CLOSED, "age_s": 1.0}),
        ("terminal-alone", Thing.TERMINAL, {"standing": IssueStanding.CLOSED, "is_claimed": True}),
        ("terminal-alone", Thing.TERMINAL, {"standing": IssueStanding.BLOCKED}),
        ("terminal-alone", Thing.TERMINAL, {"standing": "closed", "owner": Owner.NOBODY}),
        ("terminal-elsewhere", Thing.TERMINAL, {"standing": "closed", "owner": Owner.ELSEWHERE}),
        ("process-left", Thing.PROCESS, {}),
        ("", Thing.PROCESS, {"age_s": 1.0}),
        ("monitor-left", Thing.MONITOR, {}),
        ("worktree-cut-off", Thing.WORKTREE, {"is_linked": False, "has_session": True}),
        ("worktree-unknown", Thing.WORKTREE, {"is_linked": False, "owner": Owner.NOBODY}),
        ("worktree-over", Thing.WORKTREE, {"standing": IssueStanding.CLOSED}),
        ("worktree-over", Thing.WORKTREE, {"standing": IssueStanding.UNKNOWN, "is_there": False}),
        ("worktree-kept", Thing.WORKTREE, {"standing": IssueStanding.CLOSED, "is_claimed": True}),
        ("worktree-gone", Thing.WORKTREE, {"is_there": False}),
        ("worktree-kept", Thing.WORKTREE, {"is_there": False, "is_claimed": True}),
        ("worktree-kept", Thing.WORKTREE, {"is_there": False, "owner": Owner.NOBODY}),
        ("worktree-kept", Thing.WORKTREE, {}),
        ("", Thing.WORKTREE, {"has_session": True, "is_there": False}),
        ("pull-over", Thing.PULL, {"standing": IssueStanding.CLOSED}),
        ("", Thing.PULL, {"standing": IssueStanding.CLOSED, "is_claimed": True}),
        ("branch-over", Thing.BRANCH, {"standing": IssueStanding.CLOSED}),
        ("", Thing.BRANCH, {"standing": IssueStanding.CLOSED, "has_session": True}),
        ("branch-left", Thing.BRANCH, {"standing": IssueStanding.CLOSED, "is_local": True}),
        ("", Thing.BRANCH, {"is_local": True}),
    ],
)
def test_the_first_row_that_holds_decides(name: str, thing: Thing, known: dict[str, Any]) -> None:
    assert row(thing, **known) == name


def test_nothing_of_another_installation_and_no_open_work_is_ever_removed() -> None:
    flags = ("has_session", "is_claimed", "is_there", "is_linked", "is_local")
    removing = {
        RepairAct.LET_GO,
        RepairAct.END_TERMINAL,
        RepairAct.REMOVE_WORKTREE,
        RepairAct.CLOSE_PULL,
    }
    removing |= {RepairAct.DELETE_BRANCH}
    for thing, standing, owner in product(Thing, IssueStanding, Owner):
        for values in product((True, False), repeat=len(flags)):
            known: dict[str, Any] = dict(zip(flags, values, strict=True))
            left = Left(
                thing=thing, name="x", issue=7, standing=standing, owner=owner, age_s=1e6, **known
            )
            ruling = judge(left, AT)
            if ruling is None or ruling.row.act not in removing:
                continue
            assert standing is not IssueStanding.OPEN, ruling.row.name
            assert not left.has_session, ruling.row.name
            assert not left.is_claimed or thing is Thing.CLAIM, ruling.row.name
            if thing in (Thing.CLAIM, Thing.TERMINAL):
                assert owner is Owner.OURS, ruling.row.name


def test_each_row_that_acts_has_words_and_an_act_and_the_others_a_command() -> None:
    for one in ROWS:
        assert (one.act is None) == (one.by is By.PERSON), one.name
        if one.act is not None and one.act not in (*STARTS, RepairAct.WAKE):
            assert one.doing, one.name
            assert one.done, one.name
        if one.act and one.by is not By.TICK:
            assert one.act in ACTS or one.act is RepairAct.END_PROCESS, one.name
        if one.by is By.PERSON and one.name != "record-lost":
            assert one.command, one.name
        texts = "".join((one.told, one.doing, one.done, one.command))
        names = {name.partition(".")[0] for _, name, _, _ in Formatter().parse(texts) if name}
        assert names <= {"left", "at"}, one.name
    assert len(BY_NAME) == len(ROWS)


def test_words_of_others_are_put_in_as_they_are_and_quoted_for_a_shell() -> None:
    left = Left(thing=Thing.LOCK, name="/a '{at.repo}'/b.lock")
    ruling = judge(left, AT)
    assert ruling is not None
    assert ruling.told == "git has left the lock '/a '{at.repo}'/b.lock' behind"
    assert ruling.command == """rm '/a '"'"'{at.repo}'"'"'/b.lock'"""
    gone = structs.replace(left, thing=Thing.WORKTREE, is_there=False)
    ruling = judge(gone, AT)
    assert ruling is not None
    assert ruling.command.startswith("git -C '/home/ada/the shop' worktree remove ")


def test_the_document_shows_the_table_as_it_is() -> None:
    shown = (REPOSITORY / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    table = supervision_table()
    assert table in shown, f"write this table into docs/PROTOCOL.md:\n\n{table}"


def test_a_lock_is_as_old_as_its_removal_demands() -> None:
    assert BY_NAME["lock-left"].after_s == OLD_S
