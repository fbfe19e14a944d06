"""Contract of channels: a test inherits `ChannelContract`, and writes the pytest fixture `side`."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import ClassVar

from sm.adapters.forge.model import BOT
from sm.base.need import NeedKind
from sm.channels import people
from sm.channels.channel import Channel, Word
from sm.issues.look.answers import read_texts
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import snapshot
from sm.sessions import plan
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.testing.session import put_session

ASKS, MERGE = NeedKind.QUESTION, NeedKind.MERGE
QUESTION = Word("m1", "Which colour?", "needs a person: which colour?", need=ASKS)
NEXT = Word("m2", "Which size?", "needs a person: which size?", need=ASKS)
NEWS = Word("m3", "It was merged.", "was merged", need=MERGE)
REMINDER = Word("m4", "Still: which colour?", "still needs a person", need=ASKS)


class ChannelSide:
    """The person at the other end of a channel, and the session that asks."""

    place: ClassVar[str] = ""
    """Where a question stands, as the channel says it."""
    answers: ClassVar[bool] = True
    """Whether the person can answer there."""

    def __init__(self, session: IssueSession) -> None:
        self.session = session

    @abstractmethod
    def open(self) -> Channel:
        """Open the channel, as each process does for itself."""

    @abstractmethod
    def read(self) -> list[str]:
        """Return what the person finds there, a text for each word, oldest first."""

    def is_asked(self) -> bool:
        """Whether something there still waits for the person."""
        return False

    def answer(self, text: str) -> None:
        """Answer the last question."""
        raise NotImplementedError


def make_session(project: Project) -> IssueSession:
    """A session whose agent has asked for a person just now; nothing has told anybody."""
    issue = project.forge.issues.add(
        "Add a file", body="Please.", labels=("backlog",), author="ada"
    ).number
    session = put_session(project, issue)
    project.root.phase(project.name, issue).write_text("PHASE:escalate\nReason: which colour?\n")
    write = recall(session, snapshot(project)).facts.write
    key, row = f"escalate:{write}", "escalate"
    told = Receipt(time.time(), key, row, write, verb=StepVerb.NOTIFY, marker=QUESTION.id)
    plan.add_receipt(session.dir, told)
    return session


def get_answers(side: ChannelSide) -> list[str]:
    """What the session's next pass finds as the answers to its question."""
    side.open().listen()
    project = side.session.project
    seen = recall(side.session, snapshot(project, newer_than=time.time()))
    assert not seen.unread
    return read_texts(seen.replies, project.forge.issues.read_comments(side.session.issue))


class ChannelContract:
    """Told once, found when answered, settled for good."""

    def test_it_is_among_the_channels_of_the_session(self, side: ChannelSide) -> None:
        assert side.open() in people.open_channels(side.session)
        assert side.open().place == side.place

    def test_nothing_is_there_before_anything_is_said(self, side: ChannelSide) -> None:
        assert side.read() == []
        assert get_answers(side) == []
        side.open().settle()
        assert side.read() == []

    def test_what_is_asked_twice_is_there_once(self, side: ChannelSide) -> None:
        """The process that has asked may die before it can note that."""
        for _ in range(2):
            side.open().ask(QUESTION)
        [read] = side.read()
        assert "hich colour?" in read

    def test_another_question_is_another(self, side: ChannelSide) -> None:
        side.open().ask(QUESTION)
        side.open().ask(NEXT)
        read = side.read()  # commands run side by side
        assert len(read) == 2
        assert any("hich size?" in text for text in read)

    def test_what_is_told_twice_is_there_once_at_most(self, side: ChannelSide) -> None:
        for word, count in ((NEWS, 1), (REMINDER, 2)):
            for _ in range(2):
                channel = side.open()
                (channel.remind if word is REMINDER else channel.tell)(word)
            assert len(side.read()) in (0, count)

    def test_an_answer_is_found_once(self, side: ChannelSide) -> None:
        side.open().ask(QUESTION)
        assert get_answers(side) == []
        assert bool(side.open().name_way()) is side.answers
        if not side.answers:
            return
        side.answer("Blue.")
        assert get_answers(side) == ["Blue."]
        assert get_answers(side) == ["Blue."]

    def test_what_is_settled_waits_for_nobody_and_is_settled_once(self, side: ChannelSide) -> None:
        side.open().ask(QUESTION)
        told = side.read()
        for _ in range(2):
            side.open().settle()
        assert not side.is_asked()
        assert side.read() in (told, [])


def read_comments(session: IssueSession) -> list[str]:
    """The comments on the issue that sm has written."""
    said = session.project.forge.issues.read_comments(session.issue)
    return [one.body for one in said if one.author == BOT]
