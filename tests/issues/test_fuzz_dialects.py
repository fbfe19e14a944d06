"""Junk in every field of what a forge over HTTP answers: the others go on, and it is named."""

from __future__ import annotations

import copy
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.adapters.forge.model import CheckState, InlineComment, ReviewState
from sm.config.load import load
from sm.issues.look.snapshot import last_snapshot
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.files import discard
from sm.store.paths import Root
from tests.chance import tries
from tests.forges.server import Asked, Reply
from tests.forges.sides import KINDS, RemoteSide, remote_side
from tests.helpers import put_session
from tests.hub import make_hub
from tests.junk import junk, read_all

LONGEST_S = 1.0
"""Processor time that all reading of one example may take, without the server's."""
ISSUE, BRANCH = 2, "fix/2"
"""What has junk in it. Issue 1 and its pull request are as they should be."""
GOOD = "fix/1"
LISTS = re.compile(r"/(?:issues|pulls|merge_requests)\Z")

words: st.SearchStrategy[object] = st.one_of(
    junk,
    st.sampled_from(
        (
            *(None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**400, 0.5, "", [], {}, [None]),
            *({"": None}, "x" * 100_000, [[[]]] * 99, "0001-01-01T00:00:00+14:00", "../x"),
            *("9999-12-31T23:59:59-12:00", "\x00" * 99, "A" * 39 + "\n", "\u202e\x1b[2J"),
        )
    ),
)
changes = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 200), words), min_size=1, max_size=3
)


class Spot(NamedTuple):
    """A place in a document."""

    within: Any
    key: Any


def spots(within: Any, key: Any) -> Iterator[Spot]:
    """The place and all below it."""
    yield Spot(within, key)
    value = within[key]
    if isinstance(value, dict):
        for name in value:
            yield from spots(value, name)
    if isinstance(value, list):
        for number in range(len(value)):
            yield from spots(value, number)


@dataclass
class Junk:
    """Answers as the forge does, with `changes` in what is about the bad issue.

    Nothing is written meanwhile, so each answer is made once.
    """

    side: RemoteSide
    bad: frozenset[int]
    head: str
    changes: list[tuple[int, int, object]] = field(default_factory=list)
    known: dict[object, Reply] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)

    def respond(self, asked: Asked) -> Reply:
        """The answer."""
        query = tuple(sorted(asked.query.items()))
        key = (asked.line, query, asked.body, asked.headers.get("if-none-match"))
        if key not in self.known:
            self.known[key] = self.side.dialect.respond(asked)
        reply = self.known[key]
        roots = list(self._roots(asked, {"": copy.deepcopy(reply.data)}))
        if not roots or reply.status >= 300:
            return reply
        kind = re.sub(r"[0-9a-f]{40}|[0-9]+", "N", asked.line)
        if kind not in self.kinds:
            self.kinds.append(kind)
        whole = roots[0][0]
        for which, where, value in self.changes:
            if self.kinds[which % len(self.kinds)] == kind:
                # Gone through anew: what was changed before may have had places of its own.
                places = [one for _, root in roots for one in spots(*root)]
                place = places[where % len(places)]
                place.within[place.key] = value
        return Reply(reply.status, whole[""], reply.headers, None)

    def _roots(self, asked: Asked, whole: dict[str, Any]) -> Iterator[tuple[Any, Spot]]:
        """The parts of a document that are about the bad issue."""
        data = whole[""]
        if asked.path.endswith("/graphql"):
            found = data["data"]["repository"]
            for alias in found:
                if int(alias[1:]) in self.bad and found[alias]:
                    yield whole, Spot(found, alias)
        elif isinstance(data, list) and LISTS.search(asked.path):
            for number, one in enumerate(data):
                if (one.get("iid") or one["number"]) in self.bad:
                    yield whole, Spot(data, number)
        elif self._is_bad(asked) and data is not None:
            yield whole, Spot(whole, "")

    def _is_bad(self, asked: Asked) -> bool:
        numbers = "|".join(map(str, self.bad))
        about = rf"/(?:issues|pulls|merge_requests)/(?:{numbers})(?:/|$)|{self.head}"
        of_ci = "/pipelines/" in asked.path or "/actions/" in asked.path
        return bool(re.search(about, asked.path)) or of_ci or self.head in asked.query.values()


@dataclass(frozen=True)
class World:
    """A project with a session on the bad issue."""

    project: Project
    session: IssueSession
    answers: Junk

    def read(self) -> list[str]:
        """Read all of it, first anew and then what has changed; what was wrong."""
        discard(self.project.directory.snapshot)
        fresh = Project(self.project.config, self.project.settings)
        return [*read_all(fresh, self.session), *read_all(fresh, self.session)]


@pytest.fixture(params=KINDS)
def world(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    root: Root,
    tmux_socket: str,
) -> Iterator[World]:
    hub = make_hub(tmp_path, ci="true")
    config = load(hub.config, os.environ, tmp_path)
    folder = Project(config, config.projects[0]).directory.path
    with remote_side(request.param, hub, folder) as side:
        project = Project(config, side.project)
        answers = fill(side)
        side.site.respond = answers.respond
        made = World(project, put_session(project, ISSUE, phase="PHASE:awaiting_ci\n"), answers)
        assert made.read() == []
        yield made


def fill(side: RemoteSide) -> Junk:
    """Two issues at work, with all that there may be about the second."""
    side.admit("ada", "rita")
    forge, heads, numbers = side.open(), dict[str, str](), dict[str, int]()
    for number in (1, ISSUE):
        made = forge.issues.add("Mend it", "Depends on #9", ["backlog"], author="ada")
        assert made.number == number
    forge.issues.comment(ISSUE, "Soon.", author="rita")
    for branch in (GOOD, BRANCH):
        heads[branch] = side.push(branch, f"{branch[-1]}.txt")
        numbers[branch] = forge.pulls.open(branch, "main", "Mend it", author="sm").number
    remark = InlineComment("2.txt", 1, "Why?")
    wish = ReviewState.CHANGES_REQUESTED
    forge.pulls.review(numbers[BRANCH], wish, "No.", [remark], author="rita")
    side.finish(heads[GOOD], CheckState.SUCCESS)
    side.finish(heads[BRANCH], CheckState.FAILURE, "build", "it broke\n")
    return Junk(side, frozenset({ISSUE, numbers[BRANCH]}), heads[BRANCH])


@given(changes=changes)
@tries(15)
def test_junk_in_an_answer_stops_nobody(
    world: World, changes: list[tuple[int, int, object]]
) -> None:
    world.answers.changes = changes
    began = time.thread_time()
    problems = world.read()
    assert time.thread_time() - began < LONGEST_S
    assert all(len(problem) < 2000 for problem in problems)
    seen = last_snapshot(world.project.directory)
    assert seen
    good = seen.pull(GOOD)
    assert good
    assert good.check.state is CheckState.SUCCESS
    if seen.issue(ISSUE) is None:
        assert [one for one in problems if "is passed over" in one]


def test_what_cannot_be_read_is_named_and_nothing_else(world: World) -> None:
    """The fuzzed answers are those that are read."""
    kinds, forge = world.answers.kinds, world.project.settings.forge
    assert len(kinds) > (1 if forge.kind == "github" else 5), kinds  # GraphQL answers all in one
    world.answers.bad = frozenset({ISSUE})
    name = next(one for one in kinds if LISTS.search(one) and "issues" in one)
    found = list[str]()
    for where in range(1, 20):
        world.answers.changes = [(kinds.index(name), where, {"not": "it"})]
        found = [one for one in world.read() if one.startswith("number 2 of the answer to GET /")]
        if found:
            break
    assert "is passed over: Expected" in found[0]
    seen = last_snapshot(world.project.directory)
    assert seen
    assert [issue.number for issue in seen.issues] == [1]
