"""The services of `notify.channels` keep what every channel keeps; apprise is real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from sm.base.need import NeedKind
from sm.channels.channel import Channel, Word
from sm.plugins.notify.entry import open_notify
from sm.plugins.notify.outbox import Post
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from sm.testing.channel import ChannelContract, ChannelSide, make_session
from tests.e2e.stage import make_stage
from tests.helpers import wait_for
from tests.plugins.notify.service import Service, end_notifiers, serve

pytestmark = pytest.mark.long_lived


class ServiceSide(ChannelSide):
    answers: ClassVar[bool] = False

    def __init__(self, session: IssueSession, service: Service) -> None:
        super().__init__(session)
        self._service = service

    def open(self) -> Channel:
        channel = open_notify(self.session)
        assert channel
        return channel

    def read(self) -> list[str]:
        boxes = Post(self.session.root).list_all()
        wait_for(
            lambda: not any(box.list_waiting() or box.list_cut_short() for box in boxes),
            "all that waits was sent",
        )
        return self._service.read()


class TestServices(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> Iterator[ChannelSide]:
        with serve() as service:
            notify = {"channels": {"phone": {"url": service.url}}}
            stage = make_stage(tmp_path, auto=False, settings={"notify": notify})
            yield ServiceSide(make_session(stage.project), service)
            end_notifiers()


def test_a_message_has_a_link_to_its_answer_on_the_page(tmp_path: Path, root: Root) -> None:
    with serve() as service:
        notify = {"channels": {"phone": {"url": service.url}}, "page": "https://sm.example.com"}
        side = ServiceSide(
            make_session(make_stage(tmp_path, auto=False, settings={"notify": notify}).project),
            service,
        )
        side.open().ask(Word("a" * 8, "Which?", shortly="asks", need=NeedKind.QUESTION))
        [told] = side.read()
        assert f"https://sm.example.com/#need-{side.session.name}" in told
        end_notifiers()
