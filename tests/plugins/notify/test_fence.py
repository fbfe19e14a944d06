"""What a session that was placed here tells people late, by a real service and a real claim."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.base.need import NeedKind
from sm.channels.channel import Word
from sm.issues.act import attempts
from sm.issues.act.effects import EFFECTS
from sm.issues.runners import Placement
from sm.issues.work.takeover import take_over
from sm.plugins.notify.channel import make_held
from sm.plugins.notify.delivery import deliver
from sm.plugins.notify.outbox import Destination, Outbox, Post
from sm.plugins.notify.rules import ChannelLetter
from sm.sessions.history import StepVerb
from sm.sessions.plan import PlannedStep
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.issues.nodes import Node, file_and_claim, make_node
from tests.plugins.notify.service import Service, serve


class Placed:
    """A session that was placed on a node, and what waits there to be sent to a phone."""

    def __init__(self, stage: Stage, service: Service) -> None:
        self.stage, self.service = stage, service
        notify = {"channels": {"phone": {"url": service.url}}}
        self.node: Node = make_node(stage, "one", notify=notify)
        self.placement: Placement = file_and_claim(stage)[1]
        self.session: IssueSession = self.node.put_on_record(self.placement)
        where = Destination(str(self.node.config), "harb", "phone")
        self.outbox: Outbox = Post(self.session.root).open(where)
        word = Word("w1", "", "gives up")
        self.outbox.put(make_held(self.session, word, NeedKind.FAILED, asked=False))

    def deliver(self) -> bool:
        (word,) = self.outbox.list_waiting()
        return deliver(self.outbox, ChannelLetter((word,), ("c",)), self.service.url)

    def end(self) -> None:
        EFFECTS[StepVerb.FORGET](self.session, PlannedStep(StepVerb.FORGET), "x")


@pytest.fixture
def placed(tmp_path: Path, root: Root) -> Iterator[Placed]:
    assert root.path
    with serve() as service:
        yield Placed(make_stage(tmp_path, auto=False), service)


def test_what_the_holder_of_the_claim_says_is_sent(placed: Placed) -> None:
    assert placed.deliver()
    assert len(placed.service.read()) == 1


def test_nothing_is_sent_of_an_attempt_that_is_overtaken(placed: Placed) -> None:
    take_over(placed.stage.project, placed.placement, "two")
    assert placed.deliver()
    assert placed.service.read() == []
    assert placed.outbox.list_waiting() == []


def test_what_nobody_can_say_is_tried_again(placed: Placed) -> None:
    bare = placed.stage.repository.bare
    away = bare.rename(bare.with_name("away"))
    assert not placed.deliver()
    assert placed.service.read() == []
    assert placed.outbox.recall().trouble.again_at > time.time()
    away.rename(bare)
    assert placed.deliver()
    assert len(placed.service.read()) == 1


def test_the_last_word_of_a_session_that_has_ended_is_sent(placed: Placed) -> None:
    placed.end()
    assert placed.deliver()
    assert len(placed.service.read()) == 1


def test_the_end_of_an_overtaken_session_takes_its_words_back(placed: Placed) -> None:
    (word,) = placed.outbox.list_waiting()
    placed.outbox.move(word, placed.outbox.new, placed.outbox.sending)
    attempts.give_up(placed.session, "attempt 2 has it")
    placed.end()
    assert not placed.outbox.is_sending(word)
    assert placed.outbox.list_waiting() == []
