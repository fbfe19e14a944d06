"""The process that sends: one for a state root, killed at each step, delayed by no slow service."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from sm.adapters import process
from sm.base.need import NeedKind
from sm.channels.channel import Word
from sm.plugins.notify.channel import Services
from sm.plugins.notify.entry import open_notify
from sm.plugins.notify.outbox import Post
from sm.store import lock
from sm.store.paths import Root
from sm.testing.channel import QUESTION, make_session
from tests.e2e.stage import make_stage
from tests.helpers import wait_for
from tests.plugins.notify.service import Service, end_notifiers, serve

pytestmark = pytest.mark.long_lived
CRASH_POINTS = {"notify:taken": 1, "notify:sent": 2}
"""Where it is killed, and how often the service hears of it all the same."""


@pytest.fixture
def service() -> Iterator[Service]:
    with serve() as service:
        yield service
        end_notifiers()


def make_services(tmp_path: Path, **notify: object) -> Services:
    stage = make_stage(tmp_path, auto=False, settings={"notify": notify})
    found = open_notify(make_session(stage.project))
    assert found
    return found


def list_started() -> list[int]:
    started = [one for one in process._spawned if "notifier" in str(one.args)]
    return [one.pid for one in started if one.poll() is None]


def is_sent(services: Services) -> bool:
    boxes = Post(services.session.root).list_all()
    return not any(box.list_waiting() or box.list_cut_short() for box in boxes)


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_killed_at_each_step_it_has_told_at_most_twice_and_says_so(
    point: str,
    tmp_path: Path,
    root: Root,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SM_CRASH_AT", point)
    monkeypatch.setenv("SM_CRASH_ONCE", str(tmp_path / "once"))
    services = make_services(tmp_path, channels={"phone": {"url": service.url}})
    services.ask(QUESTION)
    wait_for(lambda: (tmp_path / "once" / point).exists(), "it was killed")
    wait_for(lambda: not lock.is_held(Post(root).lock), "it is gone")
    services.ask(QUESTION)  # as the next pass does, if it was killed as well
    # What was cut short is put back: for a moment it is in neither place that `is_sent` looks at.
    wait_for(lambda: len(service.heard) >= CRASH_POINTS[point], "the service has heard it")
    wait_for(lambda: is_sent(services), "it is known to be sent")
    assert len(service.heard) == CRASH_POINTS[point]
    assert service.heard[-1]["title"] == "harb#1: an agent asks (perhaps told before)"
    assert "perhaps" not in "".join(one["title"] for one in service.heard[:-1])


def test_one_that_was_killed_as_it_began_is_not_waited_for(
    tmp_path: Path, root: Root, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SM_CRASH_AT", "notify:listening")
    monkeypatch.setenv("SM_CRASH_ONCE", str(tmp_path / "once"))
    services = make_services(tmp_path, channels={"phone": {"url": service.url}})
    services.ask(QUESTION)
    wait_for(lambda: (tmp_path / "once" / "notify:listening").exists(), "it was killed")
    wait_for(lambda: not lock.is_held(Post(root).lock), "it is gone")
    services.ask(QUESTION)
    assert list_started(), "at once, not at the end of the time that a start may take"
    wait_for(lambda: is_sent(services), "another one has sent it")
    assert [one["title"] for one in service.heard] == ["harb#1: an agent asks"]


def test_a_slow_service_and_a_dead_one_delay_no_other(
    tmp_path: Path, root: Root, service: Service
) -> None:
    with serve() as slow, serve() as dead:
        slow.pause_s, dead.status = 60, 500
        addresses = {"a-slow": slow.url, "b-dead": dead.url, "c-sound": service.url}
        channels = {name: {"url": url} for name, url in addresses.items()}
        services = make_services(tmp_path, channels=channels)
        services.ask(QUESTION)
        services.tell(Word("m9", "It gave up.", "has given up", need=NeedKind.FAILED))
        wait_for(lambda: len(service.heard) == 2, "the sound one has heard both")
        wait_for(lambda: slow.heard, "the slow one was asked")
        assert len(slow.heard) == 1
        wait_for(lambda: dead.heard, "the dead one was asked")
        assert len(list_started()) == 1, "one process for all"


def test_a_pass_starts_another_one_when_something_is_due(
    tmp_path: Path, root: Root, service: Service
) -> None:
    services = make_services(tmp_path, channels={"phone": {"url": service.url}})
    services.listen()
    assert not list_started()
    services.ask(QUESTION)
    [started] = list_started()
    os.kill(started, signal.SIGKILL)
    end_notifiers()
    services.listen()
    assert not list_started(), "it may only just have been started"
    Post(root).set_due(1.0)
    services.listen()
    services.listen()
    wait_for(lambda: service.heard, "the next one has sent it")
    assert len(list_started()) == 1


def test_it_ends_when_nothing_is_due_soon(
    tmp_path: Path, root: Root, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = make_services(tmp_path, channels={"phone": {"url": service.url}})
    services.ask(QUESTION)
    started = process._spawned[-1]
    assert [started.pid] == list_started()
    wait_for(lambda: service.heard, "it was sent")
    assert started.wait(60) == 0
    assert not Post(root).due.exists()
    assert not Post(root).wake.exists()
    assert not Post(root).log.read_text()


def test_what_is_not_wanted_is_not_put(tmp_path: Path, root: Root, service: Service) -> None:
    channels = {"phone": {"url": service.url, "needs": ["review"]}}
    services = make_services(tmp_path, channels=channels)
    services.ask(QUESTION)
    services.tell(Word("m3", "It was merged.", "was merged"))
    services.tell(Word("m4", "", "", need=NeedKind.REVIEW))
    assert not Post(root).list_all()
    assert not list_started()


def test_secrets_stay_here(tmp_path: Path, root: Root, service: Service) -> None:
    services = make_services(tmp_path, channels={"phone": {"url": service.url}})
    secret = "ghp_" + "a1" * 18
    services.ask(structs.replace(QUESTION, shortly=f"needs a person: is {secret} right?"))
    wait_for(lambda: service.heard and is_sent(services), "it was sent")
    assert secret not in json.dumps(service.heard)
    assert not any(secret in file.read_text() for file in files_of(root))
    assert not any(service.url in file.read_text() for file in files_of(root))


def files_of(root: Root) -> list[Path]:
    return [path for path in Post(root).path.rglob("*") if path.is_file()]


def test_projects_share_the_machines_channels_and_have_their_own(
    tmp_path: Path, root: Root, service: Service
) -> None:
    """Else an equal cause in two projects would be two messages."""
    stage = make_stage(tmp_path, auto=False)
    project = yaml.safe_load(stage.config.read_text())
    project["notify"] = {"channels": {"own": {"url": service.url}}}
    shared = {"channels": {"all": {"url": service.url}}}
    stage.config.write_text(yaml.safe_dump({"notify": shared, "projects": [project]}))
    services = open_notify(make_session(stage.project))
    assert services
    services.ask(QUESTION)
    found = [outbox.destination for outbox in Post(root).list_all()]
    whose = {one.channel: one.project for one in found if one}
    assert whose == {"all": "", "own": "harb"}
    wait_for(lambda: len(service.heard) == 2, "both have sent it")
