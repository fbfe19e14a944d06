"""What goes wrong between sm and GitLab."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.errors import (
    NotFoundError,
    RefusedError,
)
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import (
    BOT,
    IssueState,
)
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide
from tests.forges.state import Run
from tests.plugins.forges.gitlab.offers import dialect_of, offered


def test_a_pull_request_of_another_process_is_ours(side: RemoteSide) -> None:
    side.push("fix/1")
    side.open().pulls.open("fix/1", "main", "a", author=BOT)
    empty = Fault(part="GET /api/v4/projects/harbor%2Fharb/merge_requests", reply=Reply(data=[]))
    side.site.faults = [empty]
    assert side.open().pulls.open("fix/1", "main", "a", author=BOT).number == 1


def test_what_is_wrong_with_a_field_is_told_in_gitlabs_words(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    refusal = Reply(400, {"message": {"title": ["is too short", "is odd"], "base": "no"}})
    side.site.faults = [Fault(part="PUT", reply=refusal)]
    with pytest.raises(RefusedError, match="title is too short, is odd; base no"):
        side.open().issues.close(number)
    scope = Reply(403, {"error": "insufficient_scope", "error_description": "It needs more."})
    side.site.faults = [Fault(part="PUT", reply=scope)]
    with pytest.raises(RefusedError, match=r"insufficient_scope: It needs more\."):
        side.open().issues.close(number)


def test_a_renamed_project_is_followed_by_its_id(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    configured = side.project
    open_forge(configured, None, side.folder).observe()
    side.state.name = "harbour/sub/new"
    forge = open_forge(configured, None, side.folder)
    seen = forge.observe()
    assert "is called 'harbour/sub/new' now" in seen.problems[0]
    assert forge.issues.close(number).state is IssueState.CLOSED
    with pytest.raises(NotFoundError):
        forge.issues.read(99)


def test_what_is_wrong_is_told(side: RemoteSide) -> None:
    side.state.name = "harbor/sub/harb"
    project = side.project

    def problems() -> list[str]:
        url = "ssh://git@code.example.com/harbor/sub/harb.git"
        return list(kind_of(project.forge).find_problems(project, url))

    assert "has no label" in problems()[0]
    side.state.labels = ["backlog", "in-progress", "blocked"]
    assert problems() == []
    dialect_of(side).scopes = ["read_api"]
    assert problems() == ["the token has no scope 'api' (only read_api): make one that has it"]
    dialect_of(side).may_merge = True
    side.state.name = "gone/gone"
    assert "has no repository 'harbor/sub/harb'" in problems()[0]


def test_hostile_words_are_bounded_where_they_enter(side: RemoteSide) -> None:
    bad = "\x1b]0;x\x07 " + "A" * 5000
    entry = side.state.add(bad, "b" * 100, "ada")
    side.state.label(entry, [f"l{number}" * 100 for number in range(300)])
    number, head = offered(side)
    side.state.entries[-number].title = bad
    side.state.runs.append(Run(1, head, bad, "failure", time.time(), log=bad, reason=bad))
    seen = side.open().observe()
    [issue], [pull] = seen.issues, seen.pulls
    assert max(len(issue.title), len(pull.title)) <= 1000
    assert max(map(len, issue.labels)) <= 200
    assert len(issue.labels) <= 100
    assert (
        "\x1b" not in issue.title + pull.title + pull.check.step + side.open().checks.read(head).log
    )
