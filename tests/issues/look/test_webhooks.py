"""What webhooks change for the looks at a forge: when one is due, and what one of them starts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.model import Check, CheckState, PullRequest, PullState
from sm.config.load import load
from sm.config.schema import ProjectSettings
from sm.issues.look.snapshot import (
    WHOLE_S,
    Snapshot,
    find_interval,
    last_snapshot,
    look_for_webhook,
    snapshot,
)
from sm.issues.look.webhooks import (
    COMMITS,
    TRUST_S,
    HeardWebhooks,
    can_wait,
    note_webhook,
    read_heard_webhooks,
)
from sm.plugins.forges.settings import GithubSettings
from sm.sessions.project import Project
from sm.store.files import read_guarded, write_json
from sm.store.paths import Root
from tests.forges.sides import RemoteSide, remote_side
from tests.hub import make_hub

NOW = 1_800_000_000.0
HEAD = "5f" * 20
POLL_S = 30.0
PLACE = GithubSettings(repository="harbor/harb", webhook_secret_env="HARB_SECRET")


def settings(*, has_ci: bool = True) -> ProjectSettings:
    forge = structs.replace(PLACE, has_ci=has_ci)
    return ProjectSettings(name="harb", repo=Path("/nowhere"), forge=forge)


def waiting(state: CheckState = CheckState.PENDING, branch: str = "fix/7") -> PullRequest:
    check = Check(state, HEAD)
    return PullRequest(8, "Mend it", PullState.OPEN, "sm", 0, branch, "main", HEAD, check=check)


def test_while_webhooks_arrive_a_look_is_enough() -> None:
    heard = HeardWebhooks(at=NOW, woke_at=NOW - 60)
    assert can_wait(settings(), heard, NOW - 20, [], NOW)


@pytest.mark.parametrize(
    "heard",
    [
        HeardWebhooks(),
        HeardWebhooks(at=NOW, woke_at=NOW - TRUST_S),
        HeardWebhooks(at=NOW, event="star"),
        HeardWebhooks(at=NOW + 60, woke_at=NOW + 60),
    ],
    ids=["none ever", "none for long", "none that matters", "the clock was set back"],
)
def test_without_webhooks_the_interval_is_as_configured(heard: HeardWebhooks) -> None:
    assert not can_wait(settings(), heard, NOW, [], NOW)


def test_after_a_webhook_there_is_one_more_look() -> None:
    """The forge may show a change some seconds after it has told of it."""
    heard = HeardWebhooks(at=NOW, woke_at=NOW)
    assert not can_wait(settings(), heard, NOW + 1, [], NOW + 1)
    assert not can_wait(settings(), heard, NOW + POLL_S - 1, [], NOW + POLL_S)
    assert can_wait(settings(), heard, NOW + POLL_S, [], NOW + POLL_S)


def test_a_check_of_which_no_webhook_has_told_is_waited_for_as_ever() -> None:
    silent = HeardWebhooks(at=NOW, woke_at=NOW - 60, commits=("ab" * 20,))
    telling = structs.replace(silent, commits=(*silent.commits, HEAD))
    for pull in (waiting(), waiting(CheckState.NONE)):
        assert not can_wait(settings(), silent, NOW - 20, [pull], NOW)
        assert can_wait(settings(), telling, NOW - 20, [pull], NOW)
    for pull in (
        waiting(CheckState.SUCCESS),
        waiting(branch="ada/own"),
        structs.replace(waiting(), state=PullState.CLOSED),
    ):
        assert can_wait(settings(), silent, NOW - 20, [pull], NOW)
    assert can_wait(settings(has_ci=False), silent, NOW - 20, [waiting(CheckState.NONE)], NOW)


@pytest.fixture
def side(tmp_path: Path, root: Root) -> Iterator[RemoteSide]:
    with ExitStack() as running:
        hub = make_hub(tmp_path)
        folder = root.project("harb").path
        folder.mkdir(parents=True, mode=0o700)
        for made in (folder.parent, folder.parent.parent):
            made.chmod(0o700)
        yield running.enter_context(remote_side("github", hub, folder))


def project_of(side: RemoteSide, *, hooks: bool = True) -> Project:
    config = load(side.hub.config, os.environ, side.folder)
    forge = side.project.forge
    assert isinstance(forge, GithubSettings)
    secret = "HARB_SECRET" if hooks else ""
    forge = structs.replace(forge, webhook_secret_env=secret)
    return Project(config, structs.replace(side.project, forge=forge))


def looks(side: RemoteSide) -> int:
    """How often it was looked: each time begins with one conditional request."""
    return sum(one.query.get("per_page") == "1" for one in side.site.asked)


def aged(project: Project, seconds: float) -> Snapshot:
    """Make the last look older, and the last webhooks with it."""
    seen = last_snapshot(project.directory)
    assert seen
    seen = structs.replace(seen, taken_at=seen.taken_at - seconds, whole_at=seen.whole_at - seconds)
    write_json(project.directory.snapshot, seen)
    heard = read_heard_webhooks(project.directory)
    heard = structs.replace(heard, at=heard.at - seconds, woke_at=heard.woke_at - seconds)
    write_json(project.directory.webhooks, heard)
    return seen


def test_a_webhook_starts_a_look_that_all_use(side: RemoteSide) -> None:
    project = project_of(side)
    snapshot(project)
    side.admit("ada")
    number = side.state.add("Mend it", "", "ada").number
    assert snapshot(project_of(side)).issue(number) is None, "the interval is not over"
    look_for_webhook(project_of(side))
    seen = last_snapshot(project.directory)
    assert seen
    assert seen.issue(number)
    before = looks(side)
    assert snapshot(project_of(side)).taken_at == seen.taken_at
    assert looks(side) == before


def test_a_lost_webhook_is_healed_within_five_minutes(side: RemoteSide) -> None:
    """A change that no webhook tells of is seen when all is read anew, and not much before."""
    project = project_of(side)
    snapshot(project)
    note_webhook(project.directory, "issues", wakes=True)
    aged(project, 40)
    look_for_webhook(project)  # more than the usual interval after the webhook
    seen = last_snapshot(project.directory)
    assert seen
    assert find_interval(project, seen) == pytest.approx(seen.whole_at + WHOLE_S - seen.taken_at)
    side.admit("ada")
    number = side.state.add("Mend it", "", "ada").number
    aged(project, 200)
    assert snapshot(project_of(side)).issue(number) is None
    due = int((read_guarded(project.directory.due, 100) or b"").strip())
    assert due <= seen.whole_at + WHOLE_S + 1
    aged(project, 60)
    assert snapshot(project_of(side)).issue(number), "five minutes after all was read"


def test_without_a_secret_what_has_arrived_once_counts_for_nothing(side: RemoteSide) -> None:
    project = project_of(side, hooks=False)
    snapshot(project)
    note_webhook(project.directory, "issues", wakes=True)
    assert find_interval(project, aged(project, 100)) == POLL_S


def test_while_the_forge_takes_few_requests_a_webhook_starts_none(
    side: RemoteSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_of(side)
    snapshot(project)
    before = looks(side)
    monkeypatch.setattr(type(project.forge), "pause_s", lambda *_: 600.0)
    note_webhook(project.directory, "issues", wakes=True)
    look_for_webhook(project)
    assert looks(side) == before
    assert not project.directory.forge_written.exists(), "nor does any other process look"
    due = int((read_guarded(project.directory.due, 100) or b"").strip())
    assert 590 < due - time.time() <= 601


def test_only_so_many_commits_are_kept(side: RemoteSide) -> None:
    directory = project_of(side).directory
    every = [f"{number:040x}" for number in range(COMMITS + 10)]
    for commit in (*every, every[50]):
        note_webhook(directory, "check_run", wakes=True, commits=[commit])
    kept = read_heard_webhooks(directory).commits
    assert len(kept) == COMMITS
    assert kept[-1] == every[50]
    assert every[9] not in kept
