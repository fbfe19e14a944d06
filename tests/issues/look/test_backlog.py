"""Issues that may be picked up, and those that wait for each other."""

from __future__ import annotations

from sm.base.issue_id import IssueId
from sm.issues.look.backlog import explain_circle, find_circle


def test_a_circle_is_found_and_told() -> None:
    graph: dict[IssueId, list[IssueId]] = {1: [2, 3], 2: [4], 3: [], 4: [1], 5: [5], 6: [1], 7: [8]}

    def circle(start: IssueId) -> tuple[IssueId, ...]:
        return find_circle(start, lambda number: graph.get(number, []))

    assert circle(1) == (1, 2, 4, 1)
    assert circle(5) == (5, 5)
    assert circle(6) == ()
    assert circle(7) == ()
    assert explain_circle(circle(5)) == "; so it waits for itself: edit the text of one of them"
    assert "itself by #1 → #2 → #4 → #1" in explain_circle(circle(1))
