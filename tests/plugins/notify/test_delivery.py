"""Words reach a service, or wait, or are given up; by a clock that is set by hand.

apprise is real, and so is the service, which misbehaves.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sm.base.errors import StateError
from sm.plugins.notify.delivery import deliver, find_due, take_back
from sm.plugins.notify.outbox import Destination, Outbox, Post
from sm.plugins.notify.rules import DAY_S
from sm.sessions import plan
from sm.sessions.history import Receipt, StepVerb
from sm.store.paths import Root
from tests.disks import fill, small_disk
from tests.helpers import sm_yaml
from tests.plugins.notify.service import Service, serve
from tests.plugins.notify.words import Clock, make_word

pytestmark = pytest.mark.long_lived


@pytest.fixture
def service() -> Iterator[Service]:
    with serve() as service:
        yield service


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().install(monkeypatch)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return sm_yaml(tmp_path)


def set_notify(config: Path, **notify: Any) -> None:
    known = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**known, "notify": notify}))


@pytest.fixture
def outbox(config: Path, service: Service, root: Root) -> Outbox:
    """The outbox of the channel `phone`, which is that service."""
    set_notify(config, channels={"phone": {"url": service.url}})
    return open_outbox(config, root)


def open_outbox(config: Path, root: Root, channel: str = "phone") -> Outbox:
    project = yaml.safe_load(config.read_text())["name"]
    root.private.mkdir(mode=0o700, exist_ok=True)
    return Post(root).open(Destination(str(config), project, channel))


def run(outbox: Outbox, clock: Clock, until_s: float = 10.0) -> None:
    """Be the notifier until nothing is due within so long."""
    end = clock.at + until_s
    for _ in range(10_000):
        due = find_due(outbox, clock.at)
        for letter in due.letters:
            if not deliver(outbox, letter, due.address):
                break
        if not due.letters:
            if due.next_at > end:
                clock.at = end
                return
            clock.at = due.next_at
    raise AssertionError("it goes on for ever")


def test_a_word_is_told_once_by_json_and_by_ntfy(
    outbox: Outbox, config: Path, service: Service, clock: Clock
) -> None:
    assert outbox.put(make_word())
    assert not outbox.put(make_word())
    run(outbox, clock)
    assert not outbox.put(make_word()), "it was told"
    set_notify(config, channels={"phone": {"url": service.ntfy_url}})
    outbox.put(make_word(8))
    run(outbox, clock, DAY_S / 2)
    assert service.read() == [
        "shop#7: an agent asks\nshop#7 needs a person: which colour?\nsm reply shop 7 TEXT",
        "shop#8: an agent asks\nshop#8 needs a person: which colour?\nsm reply shop 8 TEXT",
    ]
    assert service.heard[1]["topic"] == "topic"


def test_nothing_else_leaves_the_machine(outbox: Outbox, service: Service, clock: Clock) -> None:
    outbox.put(make_word())
    run(outbox, clock)
    [heard] = service.heard
    assert {*heard} == {"version", "title", "message", "attachments", "type"}
    assert not heard["attachments"]


def test_a_service_that_answers_500_for_a_day_gets_it_then(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    service.status = 500
    outbox.put(make_word(at=clock.at))
    run(outbox, clock, DAY_S - 3600)
    tries = len(service.heard)
    assert 30 < tries < 60
    assert "500" in outbox.recall().trouble.reason
    service.status = 200
    run(outbox, clock, 3600)
    assert len(service.heard) == tries + 1
    assert "perhaps" not in service.read()[-1]
    assert not outbox.recall().trouble.failures
    assert not outbox.recall().lost.count


def test_after_a_day_it_is_given_up_and_what_is_newer_is_not(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    service.status = 500
    outbox.put(make_word(at=clock.at))
    run(outbox, clock, 3600)
    outbox.put(make_word(8, "asks something else", at=clock.at))
    run(outbox, clock, DAY_S)
    assert outbox.recall().lost.count == 1
    assert "500" in outbox.recall().lost.reason
    assert [word.address for word in outbox.list_waiting()] == ["shop#8"]


def test_a_closed_port_and_a_wrong_address_are_tried_again(
    outbox: Outbox, config: Path, clock: Clock, service: Service
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    outbox.put(make_word(at=clock.at))
    for url, said in (
        (f"json://127.0.0.1:{port}", "onnection error"),
        ("nonsense://secret-token", "apprise knows no service of its address"),
    ):
        set_notify(config, channels={"phone": {"url": url}})
        run(outbox, clock, 600)
        assert said in outbox.recall().trouble.reason
        assert "secret-token" not in outbox.recall().trouble.reason
    set_notify(config, channels={"phone": {"url": service.url}})
    run(outbox, clock, 3600)
    assert len(service.heard) == 1


def test_a_configuration_that_cannot_be_used_is_waited_for(
    outbox: Outbox, config: Path, clock: Clock, service: Service
) -> None:
    sound = config.read_text()
    outbox.put(make_word(at=clock.at))
    config.write_text("no: such: thing")
    run(outbox, clock, 600)
    assert outbox.list_waiting()
    config.write_text(sound)
    run(outbox, clock, 3600)
    assert len(service.heard) == 1


def test_a_channel_that_was_taken_out_is_told_nothing(
    outbox: Outbox, config: Path, clock: Clock
) -> None:
    outbox.put(make_word(at=clock.at))
    set_notify(config, channels={})
    run(outbox, clock)
    assert not outbox.list_waiting()
    assert "no channel 'phone' any more" in outbox.recall().lost.reason


@pytest.mark.parametrize("place", ["url_file", "url_env", "url_command"])
def test_the_address_may_stand_elsewhere(
    outbox: Outbox,
    config: Path,
    clock: Clock,
    service: Service,
    place: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = config.with_name("address")
    file.write_text(f"{service.url}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PHONE", service.url)
    where = {"url_file": str(file), "url_env": "PHONE", "url_command": f"cat '{file}'"}
    set_notify(config, channels={"phone": {place: where[place]}})
    outbox.put(make_word(at=clock.at))
    run(outbox, clock)
    assert len(service.heard) == 1


def test_what_is_settled_before_it_is_sent_is_not_sent(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    outbox.put(make_word(at=clock.at, asked=True))
    outbox.put(make_word(8, at=clock.at, asked=True))
    outbox.drop_asked("dev-shop-7")
    run(outbox, clock)
    [told] = service.read()
    assert told.startswith("shop#8")


def test_what_is_answered_while_it_waits_is_not_sent(
    outbox: Outbox, config: Path, root: Root, service: Service, clock: Clock
) -> None:
    """As in quiet hours, or while the service fails."""
    service.status = 500
    for number in (7, 8):
        outbox.put(make_word(number, f"asks {'ab'[number - 7]}", at=clock.at, asked=True))
        directory = root.session(f"dev-shop-{number}")
        directory.path.mkdir(parents=True, mode=0o700)
        plan.add_receipt(directory, Receipt(clock.at, "p", "escalate", "w", verb=StepVerb.NOTIFY))
    run(outbox, clock, 120)
    assert len(outbox.list_waiting()) == 2
    answered = Receipt(clock.at, "q", "answer", "w", verb=StepVerb.INJECT)
    plan.add_receipt(root.session("dev-shop-7"), answered)
    service.status, tried = 200, len(service.heard)
    run(outbox, clock, 3600)
    [told] = service.read()[tried:]
    assert told.startswith("shop#8: an agent asks")
    assert not outbox.list_waiting()


def test_what_is_settled_while_it_is_taken_is_left_out(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    outbox.put(make_word(at=clock.at, asked=True))
    clock.at += 1
    due = find_due(outbox, clock.at)
    outbox.drop_asked("dev-shop-7")
    assert deliver(outbox, due.letters[0], due.address)
    assert not service.heard


def test_quiet_hours_hold_it_until_they_end(
    outbox: Outbox, config: Path, service: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC0")
    time.tzset()
    clock.at = 1_780_005_600.0  # 22:00
    set_notify(config, quiet="22:00-07:00", channels={"phone": {"url": service.url}})
    outbox.put(make_word(at=clock.at))
    run(outbox, clock, 8.9 * 3600)
    assert not service.heard
    run(outbox, clock, 600)
    assert len(service.heard) == 1


def test_a_try_that_was_cut_short_is_made_once_more_and_says_so(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    outbox.put(make_word(at=clock.at))
    for _ in range(3):
        clock.at += 1
        for letter in find_due(outbox, clock.at).letters:
            for word in letter.words:
                outbox.move(word, outbox.new, outbox.sending)  # and there it dies
        take_back(outbox, clock.at)
        assert not outbox.put(make_word())
    assert not outbox.list_waiting()
    assert outbox.recall().lost.count == 1
    outbox.put(make_word(8, at=clock.at))
    clock.at += 1
    [letter] = find_due(outbox, clock.at).letters
    outbox.move(letter.words[0], outbox.new, outbox.sending)
    take_back(outbox, clock.at)
    run(outbox, clock)
    [told] = service.read()
    assert told.startswith("shop#8: an agent asks (perhaps told before)\n")


def test_a_thousand_events_in_a_minute_are_few_messages(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    for number in range(1000):
        outbox.put(make_word(number, f"asks {'abcdefghij'[number % 10] * (number // 10 + 1)}"))
    run(outbox, clock, 3600)
    assert not outbox.list_waiting()
    assert len(service.heard) <= 3
    assert "and 990 more: sm needs" in service.read()[0]


def test_a_full_disk_loses_nothing_that_was_put(
    config: Path, root: Root, service: Service, clock: Clock
) -> None:
    set_notify(config, channels={"phone": {"url": service.url}})
    with small_disk(root.path, "400k") as disk:
        outbox = open_outbox(config, root)
        outbox.put(make_word(at=clock.at))
        fill(disk)
        with pytest.raises(StateError, match="No space left"):
            outbox.put(make_word(8, at=clock.at))
        service.status = 500
        run(outbox, clock, 600)
        assert len(service.heard) < 10, "it makes its pauses, although it cannot write them down"
        service.status = 200
        run(outbox, clock, 3600)
        assert service.read()[-1].startswith("shop#7: an agent asks\n")
        assert not outbox.list_waiting()
        assert not outbox.list_cut_short()


def test_damaged_words_and_memories_hold_nothing_up(
    outbox: Outbox, service: Service, clock: Clock
) -> None:
    (outbox.new / "damaged").write_text("{")
    (outbox.path / "memory.json").write_text("{")
    outbox.put(make_word(at=clock.at))
    run(outbox, clock)
    assert len(service.heard) == 1


def test_what_was_told_is_forgotten_after_a_week(outbox: Outbox, clock: Clock) -> None:
    outbox.put(make_word(at=clock.at))
    run(outbox, clock)
    found = next(outbox.told.iterdir()).stat().st_ctime
    take_back(outbox, found + 6 * DAY_S)
    assert not outbox.put(make_word())
    take_back(outbox, found + 8 * DAY_S)
    assert outbox.put(make_word())


def test_a_service_that_is_too_slow_is_asked_once_more_and_told_that_it_may_have_it(
    outbox: Outbox, config: Path, service: Service, clock: Clock
) -> None:
    service.pause_s = 30
    set_notify(config, channels={"phone": {"url": f"{service.url}?rto=0.2"}})
    outbox.put(make_word(at=clock.at))
    run(outbox, clock, DAY_S)
    first, second = service.heard
    assert "perhaps" not in first["title"]
    assert second["title"] == "shop#7: an agent asks (perhaps told before)"
    assert outbox.recall().lost.count == 1
