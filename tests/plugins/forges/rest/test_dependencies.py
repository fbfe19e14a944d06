"""An issue waits for others that it depends on by the forge's own means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.model import BOT, Batch
from tests.forges.gitea import Gitea
from tests.forges.sides import RemoteSide, age, asked_for, remote_side
from tests.hub import make_hub


@pytest.fixture(params=["github", "forgejo", "gitea"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        side.state.labels = ["backlog", "in-progress", "blocked"]
        yield side


def block(side: RemoteSide, number: int, by: int) -> None:
    """Set it on the forge's page."""
    if isinstance(side.dialect, Gitea):
        side.dialect.waits_for[number] = [by]
    side.state.blocked_by[number] = [by]
    side.state.touch(side.state.entries[number])


def waits(batch: Batch, number: int) -> str:
    return next(one.waits for one in batch.issues if one.number == number)


@pytest.fixture
def pair(side: RemoteSide) -> tuple[int, int]:
    """Two issues of the backlog, of which the second waits for the first."""
    first, second = (
        side.state.add(title, "", "ada").number for title in ("first step", "second step")
    )
    for number in (first, second):
        side.state.label(side.state.entries[number], ["backlog"], "ada")
    block(side, second, first)
    return first, second


def test_it_waits_until_the_other_is_closed(side: RemoteSide, pair: tuple[int, int]) -> None:
    first, second = pair
    age(side)
    since = side.open().observe()
    assert waits(since, second) == ("another issue" if side.kind == "github" else f"#{first}")
    assert waits(since, first) == ""
    side.open().issues.close(first)
    since = side.open().observe(since)
    assert waits(since, second) == ""


def test_that_it_was_set_later_is_seen(side: RemoteSide, pair: tuple[int, int]) -> None:
    first, _ = pair
    third = side.state.add("third", "", "ada")
    side.state.label(third, ["backlog"], "ada")
    age(side)
    since = side.open().observe()
    assert waits(since, third.number) == ""
    block(side, third.number, first)
    assert waits(side.open().observe(since), third.number)


def test_nothing_more_is_asked_while_nothing_happens(
    side: RemoteSide, pair: tuple[int, int]
) -> None:
    for entry in side.state.entries.values():
        entry.updated -= 3600
    since = side.open().observe()
    _, lines = asked_for(side, side.open().observe(since))
    assert not [line for line in lines if "dependencies" in line or line.endswith("/2")]
    assert waits(side.open().observe(since), pair[1])


@pytest.mark.parametrize("labels", [[], ["backlog", "in-progress"], ["backlog", "blocked"]])
def test_who_is_not_ready_is_not_asked_for(side: RemoteSide, labels: list[str]) -> None:
    number = side.open().issues.add("a", author=BOT).number
    side.state.label(side.state.entries[number], labels, "ada")
    block(side, number, side.open().issues.add("b", author=BOT).number)
    _, lines = asked_for(side, None)
    assert not [line for line in lines if "dependencies" in line]
