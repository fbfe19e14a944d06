"""Issues that wait for each other, so that none of them is ever picked up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sm.base.issue_id import IssueId, spell


def find_circle(
    start: IssueId, needs: Callable[[IssueId], Iterable[IssueId]]
) -> tuple[IssueId, ...]:
    """Find the way from an issue back to itself, over what each needs; empty if there is none."""
    came_from: dict[IssueId, IssueId] = {start: 0}
    ahead = [start]
    while ahead:
        number = ahead.pop(0)
        for needed in needs(number):
            if needed == start:
                way = [start]
                while number != start:
                    way.insert(1, number)
                    number = came_from[number]
                return (start, *way[1:], start)
            if needed not in came_from:
                came_from[needed] = number
                ahead.append(needed)
    return ()


def explain_circle(circle: tuple[IssueId, ...]) -> str:
    """Say what is wrong and what helps, '' if there is no circle."""
    if not circle:
        return ""
    way = " → ".join(spell(number) for number in circle)
    itself = "itself" if len(circle) == 2 else f"itself by {way}"
    return f"; so it waits for {itself}: edit the text of one of them"
