"""Contract of runners: a test inherits `RunnerContract`, and writes the pytest fixture `side`."""

from __future__ import annotations

from abc import abstractmethod

from sm.base.issue_id import IssueId
from sm.issues.runners import Placement, Runner, Standing
from sm.sessions.project import Project
from sm.store.paths import name_session

CLAIM = "c" * 40
"""The claim of each session: no branch has it."""
GOING = (Standing.WAITING, Standing.RUNNING)
"""How a session stands that was placed, and has not ended."""


class RunnerSide:
    """A runner with room for three sessions on one host, and the project that it is asked for."""

    def __init__(self, project: Project, name: str, host: str) -> None:
        self.project, self.name, self.host = project, name, host

    @abstractmethod
    def open(self) -> Runner:
        """The runner, as each process finds it."""

    def make_placement(self, issue: IssueId, attempt: int = 1) -> Placement:
        """What a tick makes before it has the session begun; without a handle."""
        named = self.project.name
        session = name_session(named, issue)
        return Placement(named, issue, session, self.name, self.host, attempt, CLAIM)

    def place(self, issue: IssueId, attempt: int = 1) -> Placement:
        """A session that was begun."""
        return self.open().place(self.project, self.make_placement(issue, attempt))

    def stand(self, *placements: Placement) -> list[Standing]:
        """How these stand by one look."""
        seen = self.open().follow(self.project, placements)
        return [seen[one.session].standing for one in placements]


class RunnerContract:
    """Placed once, followed by each process, ended for good."""

    def test_there_is_room_until_it_is_taken(self, side: RunnerSide) -> None:
        free = side.open().list_free(side.project, [])
        assert len(free) >= 3
        placed = [side.place(1), side.place(2)]
        assert len(side.open().list_free(side.project, placed)) == len(free) - 2

    def test_a_session_that_is_placed_has_a_handle_and_goes_on(self, side: RunnerSide) -> None:
        placed = side.place(1)
        assert placed.handle
        assert placed.session == side.make_placement(1).session
        [standing] = side.stand(placed)
        assert standing in GOING

    def test_what_is_placed_twice_is_there_once(self, side: RunnerSide) -> None:
        """The process that has placed it may die before it can note that."""
        assert side.place(1).handle == side.place(1).handle

    def test_another_attempt_is_another_session(self, side: RunnerSide) -> None:
        assert side.place(1, attempt=1).handle != side.place(1, attempt=2).handle

    def test_one_look_follows_all_of_them_and_may_follow_none(self, side: RunnerSide) -> None:
        assert dict(side.open().follow(side.project, [])) == {}
        placed = [side.place(1), side.place(2)]
        assert all(one in GOING for one in side.stand(*placed))

    def test_what_is_ended_is_over_and_may_be_ended_again(self, side: RunnerSide) -> None:
        ended, other = side.place(1), side.place(2)
        for _ in range(2):
            side.open().end(side.project, ended)
        first, second = side.stand(ended, other)
        assert first is Standing.OVER
        assert second in GOING
