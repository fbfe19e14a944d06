"""People are told in every channel, those of plugins too, and none of these holds anything up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from msgspec import Struct

from sm.base import plugin
from sm.base.errors import SmError
from sm.base.plugin import Plugin
from sm.channels import people
from sm.channels.channel import Asked, Channel, PersonReply, Word
from sm.plugins import OURS
from sm.sessions.session import IssueSession, Session
from sm.store import events, journal
from sm.store.paths import Root
from sm.testing.channel import QUESTION, make_session, read_comments
from tests.e2e.stage import make_stage

ASKED = Asked(QUESTION.id, 0.0)


class Pager(Channel, Struct, frozen=True):
    """A channel of somebody else; `heard` is what a person has got by it, `broken` why not."""

    place: ClassVar[str] = "on the pager"
    broken: ClassVar[str] = ""
    heard: ClassVar[list[str]] = []
    session: Session

    def tell(self, word: Word) -> None:
        if self.broken:
            raise SmError(self.broken)
        self.heard.append(word.shortly)

    ask = remind = tell

    def settle(self) -> None:
        self.tell(Word("", "", "settled"))

    def list_replies(self, asked: Asked) -> list[PersonReply]:
        if self.broken:
            raise SmError(self.broken)
        return [PersonReply("pager-1", 1.0, "ada", "Blue.")]

    def name_way(self) -> str:
        return "a key of the pager"

    def introduce(self) -> str:
        if self.broken:
            raise SmError(self.broken)
        return "A person has a pager."


class Bell(Pager, frozen=True):
    """It only rings."""

    place: ClassVar[str] = ""


PLUGINS = {name: f"{__name__}:{name.upper()}" for name in ("gone", "pager", "bell")}
GONE = Plugin(channels={"gone": f"{__name__}:no_such_thing"})
PAGER = Plugin(channels={"pager": f"{__name__}:Pager"})
BELL = Plugin(channels={"bell": f"{__name__}:Bell"})


@pytest.fixture
def session(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Iterator[IssueSession]:
    monkeypatch.setattr(Pager, "heard", [])
    plugin.use(PLUGINS.items)
    yield make_session(make_stage(tmp_path, auto=False).project)
    plugin.use(OURS.items)


def list_problems(session: IssueSession) -> list[str]:
    found = journal.read(session.root.journal, session.name)
    return [event.text for event in found if isinstance(event, events.Problem)]


def test_a_channel_of_a_plugin_is_told_what_the_others_are(session: IssueSession) -> None:
    assert people.ask(session, QUESTION) == []
    people.tell(session, Word("m2", "It was merged.", "was merged"))
    people.remind(session, Word("m3", "Still: which colour?", "still needs a person"))
    people.settle(session)
    told = [QUESTION.shortly, "was merged", "still needs a person", "settled"]
    assert Pager.heard == [text for text in told for _ in ("pager", "bell")]
    assert read_comments(session) == [QUESTION.text, "It was merged.", "Still: which colour?"]


def test_what_has_no_short_form_is_told_on_the_issue_alone(session: IssueSession) -> None:
    people.tell(session, Word("m2", "It was told as it came."))
    assert Pager.heard == []
    assert read_comments(session) == ["It was told as it came."]


def test_what_an_agent_and_a_person_are_told_of_a_channel(session: IssueSession) -> None:
    channels = people.open_channels(session)
    assert people.introduce(session, channels) == ("A person has a pager.",) * 2
    ways = people.name_ways(session, channels)
    assert ways == ("a comment on the issue", *("a key of the pager",) * 2)
    assert [one.text for one in people.list_replies(session, ASKED)[0]] == ["Blue.", "Blue."]


def test_a_channel_that_fails_keeps_nothing_from_the_others(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pager, "broken", "no battery")
    assert people.ask(session, QUESTION) == ["not on the pager: no battery"]
    assert read_comments(session) == [
        f"{QUESTION.text}\n\nThis question is not on the pager: no battery."
    ]
    people.settle(session)
    people.alert(session, Word("m2", "It was merged.", "was merged"))
    assert people.introduce(session, people.open_channels(session)) == ()
    assert people.list_replies(session, ASKED) == ([], "no battery")
    assert {"no battery", "not on the pager: no battery"} < {*list_problems(session)}


def test_a_channel_that_cannot_be_loaded_is_named_once(session: IssueSession) -> None:
    for _ in range(3):
        assert len(people.open_channels(session)) == 3
    [problem] = list_problems(session)
    assert problem.startswith("plugin 'gone' cannot give 'gone'")
