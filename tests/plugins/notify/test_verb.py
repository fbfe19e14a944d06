"""`sm notify`: what waits for each channel, and a test message for real."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.base.need import NeedKind
from sm.plugins.notify.model import ChannelTrouble, HeldWord, Memory
from sm.plugins.notify.outbox import Destination, Post
from sm.store.paths import Root
from tests.helpers import sm_yaml
from tests.plugins.notify.service import Service, serve
from tests.plugins.notify.watcher import Watcher, watch

pytestmark = pytest.mark.long_lived

CLOSED = "json://127.0.0.1:9/a-secret-word"


@pytest.fixture
def service() -> Iterator[Service]:
    with serve() as service:
        yield service


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    with watch() as watcher:
        yield watcher


def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **notify: object) -> Path:
    config = sm_yaml(tmp_path)
    section = json.dumps({"notify": notify})[1:-1]
    config.write_text(f"{config.read_text()}\n{section}\n")
    monkeypatch.setenv("SM_CONFIG", str(config))
    return config


def test_a_test_says_of_each_service_whether_it_has_the_message(
    tmp_path: Path,
    root: Root,
    service: Service,
    watcher: Watcher,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    channels = {"phone": {"url": service.url}, "desk": {"url": CLOSED}, "odd": {"url": "what://x"}}
    configure(tmp_path, monkeypatch, channels=channels, heartbeat_url=watcher.url)
    assert run(["notify", "--test"]) == 1
    said = capsys.readouterr().out
    phone, desk, odd, beat = said.splitlines()
    assert phone.startswith("phone: delivered, in ")
    assert desk.startswith("desk: not delivered: ")
    assert odd.startswith("odd: not delivered: apprise knows no service of its address")
    assert beat.startswith("heartbeat: delivered, in ")
    assert "secret" not in said
    assert [one["title"] for one in service.heard] == ["sm: a test"]
    assert watcher.heard == ["POST /5bf66975-secret dev-poll: a test, in 0.0 s"]


def test_one_channel_is_tested_alone(
    tmp_path: Path,
    root: Root,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(
        tmp_path, monkeypatch, channels={"phone": {"url": service.url}, "desk": {"url": CLOSED}}
    )
    assert run(["notify", "--test", "phone"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert run(["notify", "--test", "fax"]) == 2
    assert "there is no channel 'fax': there is 'phone', 'desk'" in capsys.readouterr().err


def test_what_waits_is_shown_and_what_quiet_hours_hold(
    tmp_path: Path,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = time.time()
    hours = "-".join(time.strftime("%H:%M", time.localtime(now + add)) for add in (-7200, 7200))
    channels = {"phone": {"url": CLOSED, "quiet": hours}, "desk": {"url_file": "/none"}}
    config = configure(tmp_path, monkeypatch, channels=channels)
    root.private.mkdir(mode=0o700, exist_ok=True)
    outbox = Post(root).open(Destination(str(config), "harb", "phone"))
    asks, stopped = "needs a person: which colour?", "goes on without dev-poll"
    outbox.put(
        HeldWord(
            id="1",
            at=now - 3600,
            need=NeedKind.QUESTION,
            address="harb#3",
            sentence=f"{asks} sm reply harb 3 TEXT",
            command="sm reply harb 3 TEXT",
        )
    )
    outbox.put(HeldWord(id="2", at=now, need=NeedKind.POLL, address="harb#4", sentence=stopped))
    outbox.remember(Memory(trouble=ChannelTrouble(1, now - 60, "no route", now + 60)))
    assert run(["notify"]) == 0
    head, trouble, first, answer, second, desk = capsys.readouterr().out.splitlines()
    until = time.strftime("%H:%M", time.localtime(now + 7200))
    assert head == f"phone (json): 2 wait, the first for 1h; quiet until {until}, which holds 1"
    assert trouble.startswith("  takes nothing since ")
    assert trouble.endswith(": no route")
    assert first.endswith(f"harb#3 {asks}")
    assert answer == "    sm reply harb 3 TEXT"
    assert second.endswith("harb#4 goes on without dev-poll")
    assert desk == "desk: nothing waits"
    assert run(["notify", "--json"]) == 0
    shown = capsys.readouterr().out
    phone = json.loads(shown)["channels"][0]
    assert [one["held"] for one in phone["waiting"]] == [True, False]
    assert "secret" not in shown


def test_without_channels_it_says_where_to_read_on(
    tmp_path: Path,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(tmp_path, monkeypatch)
    assert run(["notify"]) == 0
    assert "docs/NOTIFY.md" in capsys.readouterr().err
    assert run(["notify", "--test"]) == 2
