"""The journeys on real servers: those that a person names (docs/FORGES.md).

With SM_TEST_RECORD=FOLDER, what they answer is noted there, a file for each test.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sm.adapters.forge.errors import (
    BaseMovedError,
    HeadMovedError,
    NotFoundError,
    UnknownOutcomeError,
    UnreachableError,
)
from sm.adapters.forge.model import BOT, PullState, ReviewState
from sm.plugins.forges.web import request
from sm.plugins.forges.web.answer import HttpAnswer
from sm.plugins.forges.web.client import ForgeClient
from sm.plugins.forges.web.request import SentRequest
from sm.testing.forge import ForgeContract
from tests.helpers import wait_for
from tests.servers.conftest import Servers
from tests.servers.hooks import Receiver, receiving
from tests.servers.journeys import Journeys, merge, offer
from tests.servers.pipelines import Pipelines, ServerYard
from tests.servers.programs import KINDS, PROGRAMS
from tests.servers.recorder import Book, Exchange, recording, write
from tests.servers.sides import ServerSide, noting, server_side

RECORD = os.environ.get("SM_TEST_RECORD", "")
KILLS_S = (0.0, 0.003, 0.01, 0.03)
"""So long after a write has begun the server is killed."""


def keep(server: str, journey: str, exchanges: list[Exchange]) -> None:
    """Note what was answered, if somebody wants that."""
    if RECORD:
        name = re.sub(r"\W+", "_", journey)
        folder = Path(RECORD) / server
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / f"{name}.jsonl", exchanges)


class Real(ForgeContract, Journeys):
    """All that is walked on a fake, on the server."""

    kind: str

    @pytest.fixture
    def side(
        self, request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
    ) -> Iterator[ServerSide]:
        server, name = servers.get(self.kind), servers.name_repository()
        journey = request.node.name
        with (
            server_side(server, name, tmp_path, lambda: servers.run(self.kind)) as side,
            noting(side, journey) as book,
        ):
            yield side
            keep(server.name, journey, book.exchanges)

    # What no fake does

    def test_webhooks_are_taken_once_and_signed(self, side: ServerSide, tmp_path: Path) -> None:
        with receiving(side, tmp_path / "serve") as receiver:
            side.admit("rita")
            forge = side.open()
            number = forge.issues.add("Mend it", "Soon.", ["backlog"], author=BOT).number
            forge.issues.comment(number, "Begun.", author=BOT)
            pull, head = offer(side, "fix/1")
            forge.pulls.review(pull, ReviewState.APPROVED, "Good.", author="rita")
            forge.pulls.merge(pull, head=head, author=BOT)
            wanted = {"issues", "issue_label", "issue_comment", "pull_request", "push", "create"}
            wanted |= {"pull_request_review_approved"}
            if self.kind == "gitea" and PROGRAMS["gitea runner"]:
                side.run_ci("fix/2", passes=True)
                wanted |= {"status", "workflow_job"}  # a run is told only of a file that `main` has
            wait_for(lambda: wanted <= receiver.events(), f"{wanted}: {receiver.events()}")
            for asked, first, second in receiver.taken:
                assert (first.status, second.body) == (202, {"status": "repeated"}), asked.headers
                assert first.body in ({"status": "accepted"}, {"status": "ignored"}), asked.headers
            assert receiver.heard().woke_at
            keep(side.server.name, "webhooks", receiver.exchanges("webhooks"))
            assert refused(receiver), "with another secret"

    def test_a_server_that_is_set_back_is_taken_as_it_is_now(
        self, side: ServerSide, tmp_path: Path
    ) -> None:
        side.admit("rita")
        forge = side.open()
        issue = forge.issues.add("Mend it", author=BOT).number
        side.server.back_up(tmp_path / "copy")
        forge = side.open()
        number, head = offer(side, "fix/1")
        lost = forge.issues.add("Lost", author=BOT).number
        assert forge.issues.comment(issue, "Begun.", author=BOT, marker="m")
        since = forge.observe()
        merge(forge, number, head)
        time.sleep(1)  # a time of the forge has no fractions
        side.server.set_back(tmp_path / "copy")
        forge = side.open()
        assert not forge.issues.read(issue).comments
        forge.observe(since)
        with pytest.raises(NotFoundError):
            forge.pulls.merge(number, head=head, author=BOT)
        assert forge.pulls.find_newest("fix/1") is None
        for _ in range(2):
            forge.issues.comment(issue, "Begun.", author=BOT, marker="m")
        assert len(forge.issues.read(issue).comments) == 1
        other, theirs = offer(side, "theirs")
        assert other == number, "the number is given again"
        with pytest.raises(HeadMovedError):
            forge.pulls.merge(number, head=head, author=BOT)
        request = forge.issues.add("Another one", author=BOT)
        seen = forge.observe(since)
        [pull] = [one for one in seen.pulls if one.number == number]
        assert (pull.branch, pull.head, pull.state) == ("theirs", theirs, PullState.OPEN)
        [found] = [one for one in seen.issues if one.number == request.number]
        assert request.number == lost
        [before] = [one for one in since.issues if one.number == lost]
        assert found.at > before.at, "by that another issue of the same number is known"
        assert forge.branch_head("main") not in (head, theirs)

    @pytest.mark.parametrize("what", ["issue", "comment", "label", "pull", "review", "merge"])
    def test_a_server_that_is_killed_within_a_write_has_it_once(
        self, side: ServerSide, what: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(request, "FIRST_PAUSE_S", 0.5)
        side.admit("rita")
        for number, after_s in enumerate(KILLS_S):
            write, count = WRITES[what](side, f"fix/{number}")
            with killing(side, after_s):
                repeat_until_done(write)
            assert count() == 1, f"killed after {after_s:g} s"


class TestGitea(Real):
    kind = "gitea"


class TestForgejo(Real):
    kind = "forgejo"


class TestWoodpecker(Pipelines):
    @pytest.fixture(params=KINDS)
    def yard(
        self, request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
    ) -> Iterator[ServerYard]:
        wood, name = servers.get_woodpecker(request.param), servers.name_repository()
        with (
            server_side(wood.forge, name, tmp_path) as side,
            recording(Book(wood.url, side.repository, request.node.originalname)) as book,
        ):
            yield ServerYard(side, wood, wood.activate(side.repository))
            keep(f"woodpecker-{wood.version}", request.node.name, book.exchanges)


assert {one.kind for one in (TestGitea, TestForgejo)} == set(KINDS)


def refused(receiver: Receiver) -> bool:
    """Whether a delivery that was changed on its way is refused."""
    asked, _, _ = receiver.taken[0]
    said = receiver.send_on(asked.body + b" ", asked.headers)
    return said.status == 403


@contextmanager
def killing(side: ServerSide, after_s: float) -> Iterator[None]:
    """Kill the server so long after the first write of the block has begun, and start it again."""
    exchange, threads = ForgeClient._exchange, list[threading.Timer]()

    def kill() -> None:
        side.server.process.kill()
        side.server.start()

    def exchange_and_kill(client: ForgeClient, request: SentRequest, url: str) -> HttpAnswer:
        if request.changes and not threads:
            threads.append(threading.Timer(after_s, kill))
            threads[0].start()
        return exchange(client, request, url)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(ForgeClient, "_exchange", exchange_and_kill)
        yield
        assert threads, "nothing was written"
        threads[0].join()


Write = tuple[Callable[[], object], Callable[[], int]]
"""What writes, and what counts how often that is there."""


def write_issue(side: ServerSide, branch: str) -> Write:
    """A new issue. If its answer is lost, a person looks for it: here, the test."""
    forge = side.open()

    def count() -> int:
        return sum(one.title == branch for one in side.open().issues.find()[0])

    def write() -> None:
        if not count():
            forge.issues.add(branch, author=BOT)

    return write, count


def write_comment(side: ServerSide, branch: str) -> Write:
    """A comment with a mark."""
    forge = side.open()
    number = forge.issues.add(branch, author=BOT).number
    return (
        lambda: forge.issues.comment(number, "Once.", author=BOT, marker="m"),
        lambda: len(side.open().issues.read(number).comments),
    )


def write_label(side: ServerSide, branch: str) -> Write:
    """A label, which has to be made."""
    forge = side.open()
    number, label = forge.issues.add(branch, author=BOT).number, branch.replace("/", "-")
    return (
        lambda: forge.issues.add_label(number, label),
        lambda: side.open().issues.read(number).labels.count(label),
    )


def write_pull(side: ServerSide, branch: str) -> Write:
    """A pull request."""
    side.push(branch, f"{branch[-1]}.txt")
    forge = side.open()
    return (
        lambda: forge.pulls.open(branch, "main", branch, author=BOT),
        lambda: sum(one.branch == branch for one in side.open().pulls.find()[0]),
    )


def write_review(side: ServerSide, branch: str) -> Write:
    """A review. If its answer is lost, a person looks for it: here, the test."""
    number, _ = offer(side, branch)
    forge = side.open()

    def count() -> int:
        return len(side.open().pulls.read(number).reviews)

    def write() -> None:
        if not count():
            forge.pulls.review(number, ReviewState.APPROVED, "Good.", author="rita")

    return write, count


def write_merge(side: ServerSide, branch: str) -> Write:
    """A merge; it is done if the branch's commit is in `main`, and the pull request is merged."""
    number, head = offer(side, branch)
    forge = side.open()
    before = count_commits(side)

    def count() -> int:
        is_merged = side.open().pulls.read(number).state is PullState.MERGED
        return int(is_merged) and (count_commits(side) - before) // 2

    return lambda: forge.pulls.merge(number, head=head, author=BOT), count


def count_commits(side: ServerSide) -> int:
    """How many commits `main` has on the server: a merge adds itself and the branch's one."""
    return len(side.ask("GET", "/commits?sha=main&limit=50&stat=false"))


WRITES: dict[str, Callable[[ServerSide, str], Write]] = {
    "issue": write_issue,
    "comment": write_comment,
    "label": write_label,
    "pull": write_pull,
    "review": write_review,
    "merge": write_merge,
}


def repeat_until_done(write: Callable[[], object]) -> None:
    """Write as a tick of `sm` does: again, if it is not known what has come of it."""

    def is_done() -> bool:
        try:
            write()
        except (UnreachableError, UnknownOutcomeError, BaseMovedError):
            return False
        return True

    wait_for(is_done, "the write", every_s=0.5)
