"""A forge with the issues of a tracker: ids, people, and what is stale."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from sm_noticeboard.cards import Cards, CardSettings, open_tracker

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import Batch, Issue, IssueState, PullState
from sm.adapters.forge.protocol import AnyForge, Limited
from sm.adapters.forge.tracked import TrackedForge
from sm.adapters.forge.tracker import Tracker
from tests.adapters.memory_forge import MemoryForge, Server
from tests.helpers import make_repository


class World:
    """A forge elsewhere, which counts its requests, and cards beside it."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(BareRepository(make_repository(folder).bare))
        self.settings = CardSettings(folder=folder / "cards")
        self.tracker = open_tracker(self.settings)

    def join(self, tracker: Tracker | None = None) -> AnyForge:
        return TrackedForge(MemoryForge(self.server), tracker or self.tracker, self.settings)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Strange(Cards):
    """A tracker with ids of any kind."""

    given: tuple[object, ...] = ()

    def observe(self, since: Batch | None = None) -> Batch:
        return Batch(tuple(Issue(one, "a", IssueState.OPEN, "eve", 1.0) for one in self.given))


@pytest.mark.parametrize(
    "ident", ["../x", "eng-1", "E" * 300 + "-1", "-", "", "ÄNG-1", "ENG-1/2", 7, 0, None, "7"]
)
def test_an_issue_with_an_id_that_is_none_is_passed_over_and_told(
    world: World, ident: object
) -> None:
    strange = Strange(world.settings.folder)
    strange.given = ("ENG-1", ident)
    seen = world.join(strange).observe()
    assert [one.number for one in seen.issues] == ["ENG-1"]
    [told] = seen.problems
    assert "is no id such as ENG-123: passed over" in told
    assert len(told) < 150


def test_a_number_is_no_issue_where_the_issues_are_on_a_tracker(world: World) -> None:
    forge = world.join()
    for ask in (forge.issues.read, forge.issues.close, forge.issues.read_comments):
        with pytest.raises(NotFoundError, match="there is no issue 7"):
            ask(7)
    assert (forge.is_pull(7), forge.is_pull("HALL-7")) == (True, False)


def test_people_of_both_places_are_told_apart(world: World) -> None:
    """Somebody of the forge who has the name of a member of the tracker is not trusted for that."""
    forge = world.join()
    world.server.writers = {"rita"}
    made = forge.issues.add("Sweep", "Please.", author="ann")
    forge.issues.comment(made.number, "Today.", author="bob")
    forge.issues.comment(made.number, "Which?", author="sm", marker="m1")
    seen = forge.observe()
    [issue] = seen.issues
    assert issue.author == "ann@cards"
    assert [one.author for one in issue.comments] == ["bob@cards", "sm"]
    assert set(seen.writers) == {"ann@cards", "bob@cards", "sm@cards"}
    asked = ["ann", "bob", "rita", "ann@cards", "rita@cards", "eve@other"]
    assert forge.find_writers(asked) == {"rita", "ann@cards", "rita@cards"}
    assert forge.issues.read_source(made.number).title_saved.by == "ann@cards"


def test_the_next_look_goes_on_where_the_last_one_was(world: World) -> None:
    forge = world.join()
    card = forge.issues.add("Sweep", author="ann").number
    seen = forge.observe()
    assert not forge.is_stale(seen)
    forge.issues.comment(card, "Today.", author="bob")
    assert forge.is_stale(seen)
    brief = structs.replace(seen, issues=tuple(structs.replace(i, body="") for i in seen.issues))
    again = forge.observe(brief)
    assert [one.comments[0].author for one in again.issues] == ["bob@cards"]
    assert {name.partition(".")[0] for name in again.validators} >= {"tracker"}
    world.server.issues[1] = Issue(1, "of the forge", IssueState.OPEN, "eve", 1.0)
    assert [one.number for one in forge.observe(again).issues] == [card]
    assert forge.pulls.find(PullState.OPEN) == ([], [])


def test_dependencies_are_named_by_the_ids_of_the_tracker() -> None:
    def needs(body: str, number: object = "ENG-9") -> tuple[object, ...]:
        return Issue(number, "a", IssueState.OPEN, "ann", 1.0, body=body).dependencies()

    assert needs("Depends on: ENG-1, OPS-2 (part of ENG-7)\n") == ("ENG-1", "OPS-2")
    assert needs("This depends on ENG-1 and ENG-2, I think.") == ("ENG-1", "ENG-2")
    assert needs("Depends on #1, eng-2, XENG-3x, a/ENG-4, ENG-05") == ()
    assert needs("Depends on: ENG-1, #2", 9) == (2,)


def test_what_only_some_forges_can_do_is_the_forges_own(world: World) -> None:
    class Tokened(MemoryForge):
        def find_limits(self) -> list[str]:
            return ["no merges"]

    joined = TrackedForge(Tokened(world.server), world.tracker, world.settings)
    assert isinstance(joined, Limited)
    assert not isinstance(world.join(), Limited)
    assert joined.pause_s() == MemoryForge(world.server).pause_s()
