"""A forge whose database is set back to an older copy: numbers are given a second time."""

from __future__ import annotations

import copy
import os

import pytest

from sm.adapters.forge.model import IssueState, PullState
from sm.store.files import discard
from tests.e2e.play import Play, seen_anew
from tests.forges.sides import RemoteSide, age
from tests.forges.state import State
from tests.helpers import git

GITEA = pytest.mark.parametrize("play", ["gitea"], indirect=True)


def state_of(play: Play) -> State:
    assert isinstance(play.side, RemoteSide)
    return play.side.state


class Backup:
    """A copy of a forge's database, made now."""

    def __init__(self, play: Play) -> None:
        self.play, state = play, state_of(play)
        self.entries, self.number = copy.deepcopy(state.entries), state.last_number

    def restore(self) -> None:
        """Set the forge back to it, a minute later."""
        state = state_of(self.play)
        state.entries, state.last_number = self.entries, self.number
        assert isinstance(self.play.side, RemoteSide)
        age(self.play.side)


def look_again(play: Play, issue: int) -> None:
    """All is read anew, and a pass goes on from there."""
    discard(play.project.directory.snapshot)
    for _ in range(3):
        seen_anew(play)
        play.react(issue)


@GITEA
def test_another_issue_with_the_number_of_a_session_is_left_alone(play: Play) -> None:
    backup = Backup(play)
    issue = play.start()
    play.push(issue, "work\n", "PHASE:awaiting_ci")
    assert play.decided() == ["open-pull"]
    backup.restore()
    other = play.side.open().issues.add("Paint it", "In red.", ["backlog"], author="ada").number
    assert other == issue, "the number is given again"
    play.stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    look_again(play, issue)
    found = play.side.open().issues.read(other)
    assert (found.comments, found.labels, found.state) == ((), ("backlog",), IssueState.OPEN)
    assert not [text for text in play.stage.told() if "In red." in text]
    assert play.decided() == ["open-pull"], "nothing is decided about it"
    os.utime(play.stage.session(issue).dir.problem, (1, 1))
    assert (
        "is not the one that this session was begun for"
        in play.stage.sm("needs", check=False).stdout
    )
    play.stage.sm("kill", "harb", str(issue))
    assert not play.stage.sessions()
    assert play.side.open().issues.read(other) == found, "its end leaves it alone, too"


@GITEA
def test_a_pull_request_that_is_gone_is_opened_again_once(play: Play) -> None:
    issue = play.start()
    play.hears(issue, "You work on issue")
    backup = Backup(play)
    head = play.push(issue, "work\n", "PHASE:awaiting_ci")
    lost = play.pull_of(issue)
    backup.restore()
    bare = play.stage.repository.bare
    work = git(bare, "commit-tree", f"{head}^{{tree}}", "-p", "main", "-m", "theirs")
    git(bare, "branch", "theirs", work)
    theirs = play.side.open().pulls.open("theirs", "main", "Theirs", author="ada")
    assert theirs.number == lost.number, "the number is given again"
    look_again(play, issue)
    assert play.decided() == ["open-pull", "open-pull"]
    ours = play.pull_of(issue)
    assert (ours.state, ours.head, ours.number) == (PullState.OPEN, head, lost.number + 1)
    look_again(play, issue)
    assert play.decided() == ["open-pull", "open-pull"]
