"""A person's review, on forges that take none of a pull request from the account that opened it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sm.adapters.forge.errors import HeadMovedError, RefusedError
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.model import BOT, ReviewState
from sm.base.errors import AnsweredError, TemporaryError, UsageError
from sm.config.load import load
from sm.issues import review
from sm.issues.look.escalation import find_review_page
from sm.issues.review import PullChange
from sm.issues.rules.needs import Case, describe_need
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.forges.sides import KINDS, RemoteSide, remote_side
from tests.hub import make_hub


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path, root: Root) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


def open_project(side: RemoteSide, *, reviewer: str = "") -> Project:
    """The project, its configuration in a file, with the token of a person if there is one."""
    settings = {"kind": side.kind, "url": side.site.url, "repository": side.state.name}
    settings["token_file"] = str(side.token_file(BOT))
    if reviewer:
        side.admit(reviewer)
        settings["reviewer_token_file"] = str(side.token_file(reviewer))
    known = yaml.safe_load(side.hub.config.read_text())
    side.hub.config.write_text(yaml.safe_dump(known | {"forge": settings}))
    config = load(side.hub.config, os.environ, Path.cwd())
    return Project(config, config.projects[0])


def open_pull(side: RemoteSide, project: Project) -> int:
    """A pull request that sm has opened, as it does for its agents."""
    side.push("fix/1")
    return project.forge.pulls.open("fix/1", "main", "Mend it", "", author=BOT).number


def test_without_an_account_of_ones_own_it_is_said_where_to_review(side: RemoteSide) -> None:
    project = open_project(side)
    number = open_pull(side, project)
    page = project.settings.forge.link_pull(number)
    with pytest.raises(UsageError, match="takes no verdict from the account of sm") as refused:
        review.review(project, number, ReviewState.APPROVED, author="ada")
    assert page in str(refused.value)
    pull = project.forge.pulls.read(number)
    assert not project.forge.pulls.read_reviews(number)
    case = Case("review-waits", f"harb#{number}", pull=number)
    asked = describe_need(case)
    assert asked.command == f"sm review harb#{number} --approve"
    # An author may approve where GitLab has no paid tier.
    assert find_review_page(project.settings, pull) == ("" if side.kind == "gitlab" else page)


def test_with_one_the_verdict_is_a_persons_and_counts(side: RemoteSide) -> None:
    project = open_project(side, reviewer="ada")
    number = open_pull(side, project)
    given = review.review(project, number, ReviewState.APPROVED, "Fine.", author="whoever")
    assert (given.state, given.author) == (ReviewState.APPROVED, "ada")
    pull = project.forge.pulls.read(number)
    assert [(one.author, one.state) for one in project.forge.pulls.read_reviews(number)] == [
        ("ada", ReviewState.APPROVED)
    ]
    assert find_review_page(project.settings, pull) == ""


def test_an_agent_never_reviews_by_a_persons_account(side: RemoteSide) -> None:
    project = open_project(side, reviewer="ada")
    number = open_pull(side, project)
    with pytest.raises(RefusedError):
        review.review(project, number, ReviewState.APPROVED, author="sm", by_agent=True)
    assert not project.forge.pulls.read_reviews(number)


def test_a_verdict_and_a_merge_are_of_the_commit_that_was_shown(side: RemoteSide) -> None:
    project = open_project(side, reviewer="ada")
    number = open_pull(side, project)
    shown = project.forge.pulls.read_head(number)
    side.push("fix/1", content="more\n")
    for act in (
        lambda: review.review(
            project, number, ReviewState.APPROVED, author="ada", head=shown, known=""
        ),
        lambda: review.merge(project, number, author="ada", head=shown[:12]),
    ):
        with pytest.raises(HeadMovedError) as refused:
            act()
        assert refused.value.news == "1 new commit"
    assert not project.forge.pulls.read_reviews(number)


def test_a_second_verdict_that_has_not_seen_the_first_one_is_not_given(side: RemoteSide) -> None:
    project = open_project(side, reviewer="ada")
    number = open_pull(side, project)
    head = project.forge.pulls.read_head(number)
    first = review.review(project, number, ReviewState.APPROVED, author="ada", head=head, known="")
    wish = ReviewState.CHANGES_REQUESTED
    with pytest.raises(AnsweredError, match="ada was first: approved"):
        review.review(project, number, wish, "No.", author="bob", head=head, known="")
    seen = review.review(project, number, wish, "No.", author="bob", head=head, known=first.id)
    assert seen.state is wish


class Moving:
    """A pull request that gets a commit each time its changes are read, for so long."""

    def __init__(self, pushes: int) -> None:
        self.pushes, self.at = pushes, 0

    def read_head(self, _number: int) -> str:
        return f"{self.at:040x}"

    def diff(self, _number: int, *, limit: int | None = None) -> bytes:
        patch = f"+{self.at}".encode()
        self.at += self.at < self.pushes
        return patch


@pytest.mark.parametrize("pushes", [0, 1, 2])
def test_changes_and_commit_are_of_one_look(pushes: int) -> None:
    project: Any = SimpleNamespace(forge=SimpleNamespace(pulls=Moving(pushes)))
    assert review.read_change(project, 1) == PullChange(f"{pushes:040x}", f"+{pushes}".encode())


def test_what_never_stands_still_is_not_shown() -> None:
    project: Any = SimpleNamespace(forge=SimpleNamespace(pulls=Moving(99)))
    with pytest.raises(TemporaryError, match="look again"):
        review.read_change(project, 1)


def test_one_account_for_both_is_said(side: RemoteSide) -> None:
    project = open_project(side, reviewer=BOT)
    problems = list(kind_of(project.settings.forge).find_problems(project.settings, ""))
    assert any("both tokens are of 'sm'" in problem for problem in problems), problems
