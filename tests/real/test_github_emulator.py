"""An issue's way on a GitHub that others have written, as far as it goes without GraphQL.

It lists pull requests among the issues as little as it has ETags, so those are asked for by branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.errors import MergeRefusedError, NotFoundError
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import BOT, CheckState, IssueState, PullState, ReviewState
from sm.adapters.forge.protocol import Forge
from sm.plugins.forges.github.graphql.client import NoGraphqlError
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.settings import GithubSettings
from tests.hub import make_hub
from tests.real.emulator import NAME, OWNER, Emulator, emulating


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulating(tmp_path_factory.mktemp("emulator")) as emulator:
        yield emulator


def open_as(login: str, emulator: Emulator, folder: Path) -> Forge:
    """The repository, as the account `login` has it."""
    file = folder / f"token-{login}"
    file.touch(mode=0o600)
    file.write_text(f"secret-of-{login}")
    settings = GithubSettings(repository=f"{OWNER}/{NAME}", url=emulator.url, token_file=file)
    kept = folder / f"kept-{login}"
    kept.mkdir(mode=0o700)
    return open_forge(structs.replace(make_hub(kept).project, forge=settings), None, kept)


@pytest.fixture
def forge(emulator: Emulator, tmp_path: Path) -> Forge:
    return open_as("bot", emulator, tmp_path)


def test_an_issue_is_taken_talked_about_merged_and_closed(
    emulator: Emulator, forge: Forge, tmp_path: Path
) -> None:
    person = open_as("ada", emulator, tmp_path)
    issue = person.issues.add("Mend the crane", "It **creaks**.", ("backlog",), author="ada")
    seen = forge.observe()
    assert [each.number for each in seen.issues] == [issue.number]

    forge.issues.add_label(issue.number, "in-progress")
    forge.issues.remove_label(issue.number, "backlog")
    assert forge.issues.comment(issue.number, "On it.", author=BOT, marker="m1")
    assert not forge.issues.comment(issue.number, "On it.", author=BOT, marker="m1")
    assert [said.body for said in forge.issues.read(issue.number).comments] == ["On it."]

    early = emulator.push("fix/1", "crane.txt")
    head = emulator.push("fix/1", "hook.txt")  # a later push does not move its pull requests
    assert forge.branch_head("fix/1") == head
    pull = forge.pulls.open("fix/1", "main", "Mend it", "Closes #1", author=BOT)
    assert forge.pulls.open("fix/1", "main", "Mend it", author=BOT).number == pull.number
    assert (pull.head, pull.state) == (head, PullState.OPEN)
    assert forge.checks.read(head).state is CheckState.PENDING

    emulator.finish(early, "failure")
    emulator.finish(head, "success")
    assert forge.checks.read(early).state is CheckState.FAILURE
    assert forge.checks.read(head).state is CheckState.SUCCESS

    person.pulls.review(pull.number, ReviewState.APPROVED, "Well done.", author="ada")
    assert isinstance(forge, RestForge)
    (review,) = forge.reader.reviews(pull.number)
    assert (review.author, review.state, review.head) == ("ada", ReviewState.APPROVED, head)

    with pytest.raises(MergeRefusedError):
        forge.pulls.merge(pull.number, author=BOT, head=early)  # which nobody has approved
    merged = forge.pulls.merge(pull.number, author=BOT, head=head)
    assert (merged.state, merged.head) == (PullState.MERGED, head)
    assert forge.pulls.merge(pull.number, author=BOT, head=head).merged_as == merged.merged_as
    assert forge.issues.close(issue.number).state is IssueState.CLOSED
    (closed,) = forge.observe(seen).issues
    assert closed.state is IssueState.CLOSED


def test_comments_are_not_read_without_graphql_and_it_is_said(forge: Forge) -> None:
    issue = forge.issues.add("A rope", "", ("backlog",), author="ada")
    forge.issues.comment(issue.number, "Which one?", author="ada")
    with pytest.raises(NoGraphqlError, match="sm reads GitHub by GraphQL"):
        forge.observe()


def test_who_may_push_is_asked_of_the_server(forge: Forge) -> None:
    assert "mallory" not in forge.find_writers(["mallory", OWNER])


def test_what_is_not_there_is_said(forge: Forge) -> None:
    with pytest.raises(NotFoundError):
        forge.issues.read(4711)
    assert forge.pulls.find_newest("nowhere") is None
    assert forge.branch_head("nowhere") == ""
