"""Glossary of a session's states: its group, its shape, and what it means to a person.

The page takes groups and words from here, `sm top` the groups; docs/GUIDE.md repeats the words.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from sm.views.session_row import SessionRow
from sm.views.states import ShownState


class Group(StrEnum):
    """Group of sessions, in the order in which a person looks at them."""

    NEEDS = "needs"
    TROUBLE = "trouble"
    WORKING = "working"
    WAITING = "waiting"
    OVER = "over"


GROUPS = {
    Group.NEEDS: "needs you",
    Group.TROUBLE: "in trouble",
    Group.WORKING: "at work",
    Group.WAITING: "waits",
    Group.OVER: "over",
}
"""Words for each group."""


class Meaning(NamedTuple):
    """Group of a session in this state, unless it needs a person, and the state in a sentence."""

    group: Group
    tells: str


GLOSSARY = {
    ShownState.STARTING: Meaning(Group.WORKING, "the agent was started, and has said nothing yet"),
    ShownState.WORKING: Meaning(Group.WORKING, "it is the agent's turn"),
    ShownState.AWAITING_CI: Meaning(Group.WAITING, "the agent waits for CI"),
    ShownState.AWAITING_REVIEW: Meaning(Group.WAITING, "the agent waits for a reviewer"),
    ShownState.ESCALATED: Meaning(Group.WAITING, "a person is asked"),
    ShownState.PARKED: Meaning(
        Group.WAITING, "its account has a limit, a lost login or trouble with its API"
    ),
    ShownState.UNKNOWN: Meaning(
        Group.TROUBLE, "the agent has written a phase that there is none of"
    ),
    ShownState.CRASHED: Meaning(
        Group.TROUBLE, "the agent is gone, or has been silent for too long"
    ),
    ShownState.DONE: Meaning(Group.OVER, "the agent says that it is done"),
    ShownState.MERGED: Meaning(Group.OVER, "the pull request is merged"),
    ShownState.FAILED: Meaning(Group.TROUBLE, "the agent says that it cannot do it"),
    ShownState.RUNNING: Meaning(Group.WORKING, "the agent runs; it has no hooks that say more"),
    ShownState.BUSY: Meaning(Group.WORKING, "the agent is at work in a turn"),
    ShownState.IDLE: Meaning(Group.WAITING, "its turn is over"),
    ShownState.WAITING: Meaning(
        Group.WAITING, "its turn is over, but something of it still runs in the background"
    ),
    ShownState.DIALOG: Meaning(Group.WAITING, "a question is open in its terminal"),
    ShownState.LIMITED: Meaning(Group.WAITING, "its last turn failed at a limit of its API"),
    ShownState.DEAD: Meaning(Group.TROUBLE, "the agent's process is gone"),
    ShownState.CUT_SHORT: Meaning(Group.TROUBLE, "the session was begun, but no agent was started"),
    ShownState.ENDED: Meaning(Group.OVER, "the session is over"),
    ShownState.DAMAGED: Meaning(Group.TROUBLE, "a file of the session cannot be read"),
}
"""Meaning of every state."""


def find_group(row: SessionRow) -> Group:
    """Return the group of a session: what a person has to do comes before how it is."""
    if row.need:
        return Group.NEEDS
    group = GLOSSARY[row.state].group
    return Group.TROUBLE if row.problem and group is not Group.OVER else group


def count_groups(rows: Iterable[SessionRow]) -> dict[Group, int]:
    """Count the sessions of each group."""
    listed = [find_group(row) for row in rows]
    return {group: listed.count(group) for group in GROUPS}
