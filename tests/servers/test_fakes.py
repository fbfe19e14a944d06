"""The fakes of Gitea and Forgejo walk the journeys, and answer as the servers were recorded to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.testing.forge import ForgeContract
from tests.forges.hook import Hook
from tests.servers.compare import HOOK, find_differences
from tests.servers.hooks import DIALECTS
from tests.servers.journeys import Journeys
from tests.servers.pipelines import FakeYard, Pipelines, fake_yard
from tests.servers.recorder import Book, find_recording, read, recording
from tests.servers.sides import FakeSide, fake_side, noting


def check(kind: str, book: Book) -> None:
    """Hold what a fake has answered in a journey against the recording of the server."""
    differences = find_differences(book.exchanges, read(find_recording(kind)), book.journey)
    assert not differences, "\n".join(differences)


class Fake(ForgeContract, Journeys):
    """All that is walked on a server, on the fake of it."""

    kind: str

    @pytest.fixture
    def side(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeSide]:
        with fake_side(self.kind, tmp_path) as side, noting(side, request.node.name) as book:
            yield side
            check(self.kind, book)


class TestGitea(Fake):
    kind = "gitea"


class TestForgejo(Fake):
    kind = "forgejo"


class TestWoodpecker(Pipelines):
    @pytest.fixture(params=["gitea", "forgejo"])
    def yard(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeYard]:
        with (
            fake_side(request.param, tmp_path) as side,
            fake_yard(side) as yard,
            recording(Book(yard.url, side.state.name, request.node.originalname)) as book,
        ):
            yield yard
            check("woodpecker", book)


@pytest.mark.parametrize("kind", ["gitea", "forgejo"])
def test_webhooks_have_the_headers_that_were_recorded(kind: str) -> None:
    """And the places in the payload where `sm` looks for commits and the repository."""
    recorded = [one for one in read(find_recording(kind)) if one.method == HOOK]
    assert {"issues", "issue_comment", "pull_request", "push"} <= {one.path for one in recorded}
    common = {"content-type", "host", "user-agent"}
    for one in recorded:
        ours = Hook(kind, "", "secret").headers(one.path, b"{}")
        assert {name.lower() for name in ours} - common <= set(one.headers), one.path
        assert DIALECTS[kind].repository in one.body
    of_ci = [one.body for one in recorded if one.path == "status"]
    assert bool(of_ci) == (kind == "gitea"), "Forgejo 12 has no webhook about CI"
    assert all("sha" in one for one in of_ci)
