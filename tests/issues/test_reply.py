"""Of the people who answer one question, one is first: the agent gets that, and others are told."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sm.adapters.forge.local import forge
from sm.base.errors import AnsweredError
from sm.base.issue_id import IssueId
from sm.issues import reply
from sm.issues.look import answers
from sm.issues.look.observe import Observation, recall
from sm.issues.look.snapshot import snapshot
from sm.sessions import monitors, plan
from sm.sessions.history import Receipt, StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.helpers import make_repository, open_project, put_session, sm_yaml


@pytest.fixture
def asking(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> IssueSession:
    """A session whose question was put to people; no monitor is started for it."""
    repository = make_repository(tmp_path)
    forge.create(tmp_path / "forge", repository.bare)
    project = open_project(sm_yaml(tmp_path))
    monkeypatch.setattr(monitors, "ensure", lambda _: None)
    issue = project.forge.issues.add("Mend it", author="ada").number
    session = put_session(project, issue, phase="PHASE:escalate\nReason: which colour?\n")
    write = see(session).facts.write
    asked = Receipt(time.time(), f"escalate:{write}", "escalate", write, verb=StepVerb.NOTIFY)
    plan.add_receipt(session.dir, asked)
    return session


def see(session: IssueSession) -> Observation:
    return recall(session, snapshot(session.project, newer_than=time.time()))


def try_reply(project: Project, issue: IssueId, author: str) -> str:
    try:
        reply.reply(project, issue, author, f"{author}'s colour")
    except AnsweredError as error:
        return error.message
    return ""


def test_of_two_replies_at_once_the_agent_gets_one(asking: IssueSession) -> None:
    project, issue = asking.project, asking.issue
    people = ["ann", "bob", "cem"]
    with ThreadPoolExecutor(3) as at_once:
        said = list(at_once.map(lambda one: try_reply(project, issue, one), people))
    [first] = [one for one, refused in zip(people, said, strict=True) if not refused]
    assert [one.author for one in see(asking).replies] == [first]
    for refused in filter(None, said):
        assert f"{first} answered first, " in refused
        assert f"('{first}'s colour')" in refused


def test_who_answers_behind_a_comment_is_told_of_it(asking: IssueSession) -> None:
    project, issue = asking.project, asking.issue
    project.forge.issues.comment(issue, "Blue.", author="ann")
    assert "ann answered first" in try_reply(project, issue, "bob")
    assert answers.find_last(asking.dir) is None


def test_a_comment_behind_an_answer_is_not_told_as_a_second_one(asking: IssueSession) -> None:
    reply.reply(asking.project, asking.issue, "ann", "Blue.")
    asking.project.forge.issues.comment(asking.issue, "Red.", author="bob")
    assert [one.author for one in see(asking).replies] == ["ann"]
    [first, second] = asking.project.forge.issues.read(asking.issue).comments
    assert (first.body, second.body) == ("ann answered:\n\nBlue.", "Red."), "bob sees who was first"


def test_who_comes_after_the_answer_was_taken_is_told_who_was_first(asking: IssueSession) -> None:
    reply.reply(asking.project, asking.issue, "ann", "Blue.")
    given = see(asking).facts
    told = Receipt(time.time(), f"reply:{given.reply}", "reply", given.write, verb=StepVerb.INJECT)
    plan.add_receipt(asking.dir, told)
    asking.root.phase(asking.record.project, asking.issue).write_text("PHASE:working\n")
    said = try_reply(asking.project, asking.issue, "bob")
    assert "has asked nothing since: ann answered first" in said


def ask_again(session: IssueSession) -> None:
    """The agent has taken the answer, goes on, and asks the next thing."""
    given = see(session).facts
    told = Receipt(time.time(), f"reply:{given.reply}", "reply", given.write, verb=StepVerb.INJECT)
    plan.add_receipt(session.dir, told)
    file = session.root.phase(session.record.project, session.issue)
    file.write_text("PHASE:escalate\nReason: which size?\n")
    write = see(session).facts.write
    asked = Receipt(time.time(), f"escalate:{write}", "escalate", write, verb=StepVerb.NOTIFY)
    plan.add_receipt(session.dir, asked)


def test_an_answer_that_comes_again_is_none_to_the_next_question(asking: IssueSession) -> None:
    project, issue = asking.project, asking.issue
    assert reply.reply(project, issue, "ann", "Blue.", key="1.0-ab")
    ask_again(asking)
    assert see(asking).facts.escalated
    assert not reply.reply(project, issue, "ann", "Blue.", key="1.0-ab")
    assert see(asking).replies == ()
    assert [one.body for one in project.forge.issues.read(issue).comments] == [
        "ann answered:\n\nBlue."
    ]
    assert reply.reply(project, issue, "ann", "Blue.", key="2.0-ab"), "said anew it is an answer"
