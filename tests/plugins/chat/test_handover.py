"""What becomes of an entry of the chat: a message, or the answer to a question, and never both."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sm.adapters.forge.trust import Trust
from sm.base.errors import SmError
from sm.channels import people
from sm.channels.channel import Channel, Word
from sm.config.forges import LocalSettings
from sm.issues.look import answers as answered
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import snapshot
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.plugins.chat import handover, operations
from sm.plugins.chat.channel import Chat
from sm.plugins.chat.threads import bindings
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient, HandoffEntry, HandoffStatus
from sm.sessions import plan, registry
from sm.sessions.history import Escalation, Receipt, StepVerb
from sm.sessions.plan import Plan
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import journal, lock
from sm.store.files import write_atomic
from sm.store.paths import Root, name_session
from sm.testing.channel import ChannelContract, ChannelSide, make_session
from sm.views.event_words import describe, name_event
from tests.e2e.stage import make_stage
from tests.helpers import HANG_S, put_session, wait_for

HOSTILE = "red\x1b[201~\r/exit\x1b[2J\x03\x04\x9b31m\x00 text"
ASKED = "PHASE:escalate\nReason: which colour?\n"
LONG_AGO = Escalation("", "escalate", 0.0, 0.0)


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    return make_stage(tmp_path, auto=False, settings=None).project


@pytest.fixture
def session(project: Project) -> Iterator[IssueSession]:
    """A session that waits for its next phase; what it would do by itself, the test does."""
    issue = project.forge.issues.add("Mend it", body="", labels=(), author="ada").number
    made = put_session(project, issue)
    with lock.hold(made.dir.monitor_lock):
        yield made


def escalate(project: Project, session: IssueSession) -> str:
    """Have a person be asked; returns the phase write that it is about."""
    project.root.phase(session.record.project, session.issue).write_text(ASKED)
    write = recall(session, snapshot(project)).facts.write
    note(session, "escalate", write, StepVerb.NOTIFY)
    return write


def note(session: IssueSession, row: str, write: str, verb: StepVerb) -> None:
    done = Receipt(time.time(), f"{row}:{write}", row, write, verb=verb)
    plan.add_receipt(session.dir, done)


def said(project: Project, session: IssueSession, *texts: str) -> None:
    """Make a handoff with decisions, about the session's issue."""
    with open_bridge(project.config.bridge_database) as handoffs:
        ident = handoffs.create("Colours", "Decided.", client=HandoffClient.CODE).handoff.id
        for text in texts:
            handoffs.add(ident, EntryType.DECISION, text, HandoffClient.CHAT)
        bindings.bind(handoffs, ident, session.record.project, session.issue)


def queued(session: IssueSession) -> list[str]:
    return [message.text for message in queue.list_messages(session.dir, MessageFolder.WAITING)]


def answers(project: Project, session: IssueSession) -> list[str]:
    found, _ = answered.list_replies(session, None, Trust(), LONG_AGO)
    return [reply.text for reply in found]


def comments(project: Project, session: IssueSession) -> list[str]:
    return [comment.body for comment in project.forge.issues.read(session.issue).comments]


def test_no_control_character_of_the_chat_reaches_a_terminal(
    project: Project, session: IssueSession
) -> None:
    said(project, session, HOSTILE)
    Chat(session).listen()
    escalate(project, session)
    said(project, session, HOSTILE)
    Chat(session).listen()
    for text in (*queued(session), *answers(project, session), *comments(project, session)):
        assert "red\n/exit text" in text
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert (
        len(queued(session))
        == len(answers(project, session))
        == len(comments(project, session))
        == 1
    )


def test_an_answer_is_given_once_though_the_forge_was_down_meanwhile(
    project: Project, session: IssueSession, tmp_path: Path
) -> None:
    write = escalate(project, session)
    said(project, session, "Blue.", "Light blue.")
    [file] = (tmp_path / "forge" / "issues").glob("*.md")
    whole = file.read_text()
    file.write_text("no issue")
    for _ in range(2):
        with pytest.raises(SmError):
            Chat(session).listen()
    note(session, "reply", write, StepVerb.INJECT)  # with the forge in order again, but sooner
    file.write_text(whole)
    Chat(session).listen()
    assert comments(project, session) == ["chat answered:\n\nBlue."]
    [later] = queued(session)
    assert "Light blue." in later
    told = [
        describe(event)
        for event in journal.read(project.root.journal)
        if name_event(event) == "reply"
    ]
    assert told == ["chat: Blue."]


def test_a_comment_that_the_forge_refuses_keeps_no_other_entry_from_the_agent(
    project: Project, session: IssueSession
) -> None:
    """It was tried every 15 seconds for ever, and the handoff could not be closed."""
    escalate(project, session)
    forge = project.settings.forge
    assert isinstance(forge, LocalSettings)
    (forge.path / "issues" / f"{session.issue:04d}.md").unlink()
    said(project, session, "Blue.")
    said(project, session, "And quickly.")
    Chat(session).listen()
    assert sorted(answers(project, session)) == ["And quickly.", "Blue."]
    events = journal.read(project.root.journal)
    problems = [describe(event) for event in events if name_event(event) == "problem"]
    assert len([one for one in problems if "does not show it" in one]) == 2


def test_a_second_decision_is_not_lost_while_the_first_waits_to_be_typed(
    project: Project, session: IssueSession
) -> None:
    write = escalate(project, session)
    said(project, session, "Blue.")
    Chat(session).listen()
    plan.save(session.dir, Plan("reply:1", "reply", write, time.time(), ()))
    said(project, session, "And bold.")
    Chat(session).listen()
    assert answers(project, session) == ["Blue."]
    [message] = queued(session)
    assert "And bold." in message


def test_what_was_decided_before_the_question_is_no_answer_to_it(
    project: Project, session: IssueSession
) -> None:
    said(project, session, "Tabs.")
    escalate(project, session)
    Chat(session).listen()
    assert answers(project, session) == []
    assert "Tabs." in queued(session)[0]


def test_a_decision_is_no_answer_while_a_dialog_is_open(tmp_path: Path, root: Root) -> None:
    project = make_stage(tmp_path, auto=False, settings={"agent": {"command": "claude"}}).project
    session = put_session(project, 1)
    escalate(project, session)
    said(project, session, "Blue.")
    write_atomic(session.dir.state, f"dialog {time.time():.3f} - -\n")
    Chat(session).listen()
    assert answers(project, session) == []
    assert "Blue." in queued(session)[0]


def test_an_entry_whose_time_is_none_is_in_nobodys_way(
    project: Project, session: IssueSession
) -> None:
    escalate(project, session)
    said(project, session, "Blue.")
    with open_bridge(project.config.bridge_database) as handoffs:
        handoffs.connection.execute("UPDATE handoff_entries SET created_at = 'now'")
    Chat(session).listen()
    assert answers(project, session) == ["Blue."]


def test_a_decision_is_handed_over_though_the_remote_is_out_of_reach(
    project: Project, session: IssueSession
) -> None:
    project.settings.repo.rename(project.settings.repo.with_name("gone"))
    said(project, session, "Tabs.")
    Chat(session).listen()
    assert "Tabs." in queued(session)[0]


def test_a_database_that_cannot_even_be_looked_for_is_a_problem_and_no_crash(
    tmp_path: Path, root: Root
) -> None:
    # As root, no folder is closed to us; the same goes for one that is.
    where = str(tmp_path / ("x" * 300))
    project = make_stage(tmp_path, auto=False, settings={"bridge_database": where}).project
    session = put_session(project, 1)
    with pytest.raises(SmError, match="File name too long"):
        Chat(session).listen()
    with pytest.raises(SmError, match="File name too long"):
        Chat(session).ask(Word("key", "Which colour?"))
    assert people.introduce(session, [Chat(session)]) == ()
    assert [name_event(event) for event in journal.read(project.root.journal)] == ["problem"]


def test_closing_is_not_held_up_by_a_session_that_ends_meanwhile(
    project: Project, session: IssueSession
) -> None:
    said(project, session, "Late.")
    faults: list[Exception] = []

    def hand_over() -> None:
        try:
            handover.hand_over_now(session.machine, session.record.project, session.issue)
        except SmError as error:
            faults.append(error)

    other = threading.Thread(target=hand_over)
    with lock.hold(session.dir.lock):
        other.start()
        wait_for(lambda: openings(session.dir.lock) == 2, "the other to wait for the lock")
        registry.forget(project.root, session)
    other.join(HANG_S)
    assert not faults


def openings(path: Path) -> int:
    """How often this process has the file open."""
    return [link.resolve() for link in Path("/proc/self/fd").iterdir()].count(path)


def test_what_the_chat_adds_while_it_closes_is_handed_over_too(
    project: Project, session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(project, session, "First.")
    with open_bridge(project.config.bridge_database) as handoffs:
        [binding] = bindings.list_about_issue(handoffs, session.record.project, session.issue)
    once = handover.hand_over_now

    def interrupted(*args: Any) -> None:
        # The instant between the two transactions cannot be met from outside.
        monkeypatch.setattr(handover, "hand_over_now", once)
        once(*args)
        with open_bridge(project.config.bridge_database) as handoffs:
            handoffs.add(binding.handoff_id, EntryType.TASK, "Second.", HandoffClient.CHAT)

    monkeypatch.setattr(handover, "hand_over_now", interrupted)
    operations.close(session.machine, binding.handoff_id)
    texts = queued(session)
    assert len(texts) == 2
    assert "Second." in texts[1]


def test_a_handoff_that_cannot_be_bound_is_not_begun(
    project: Project, session: IssueSession
) -> None:
    said(project, session)
    refusal = "BEGIN SELECT RAISE(ABORT, 'no room'); END"
    about = {"project": session.record.project, "issue": session.issue}
    with contextlib.closing(sqlite3.connect(project.config.bridge_database)) as connection:
        connection.execute(f"CREATE TRIGGER full BEFORE INSERT ON handoff_bindings {refusal}")
        with pytest.raises(SmError):
            operations.create(session.machine, "t", "c", **about, client=HandoffClient.CHAT)
        assert connection.execute("SELECT count(*) FROM handoffs").fetchone() == (1,)


def test_a_session_of_another_project_with_the_same_name_is_told_nothing(
    project: Project, session: IssueSession
) -> None:
    machine, other = session.machine, name_session("h.rb", session.issue)
    assert other == name_session("h_rb", session.issue)
    identity = session.dir.identity.read_text().replace('"harb"', '"h.rb"')
    session.dir.path.rename(project.root.session(other).path)
    project.root.session(other).identity.write_text(identity.replace(session.name, other))
    with open_bridge(project.config.bridge_database) as handoffs:
        ident = handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id
        bindings.bind(handoffs, ident, "h_rb", session.issue)
    assert operations.close(machine, ident).status is HandoffStatus.COMPLETED
    assert queue.list_messages(project.root.session(other), MessageFolder.WAITING) == []


class ChatSide(ChannelSide):
    place: ClassVar[str] = "in the chat"

    def open(self) -> Channel:
        return Chat(self.session)

    def read(self) -> list[str]:
        return [one.content for one in self.entries() if one.type is EntryType.QUESTION]

    def answer(self, text: str) -> None:
        with open_bridge(self.session.project.config.bridge_database) as handoffs:
            ident = self.entries()[0].handoff_id
            handoffs.add(ident, EntryType.DECISION, text, HandoffClient.CHAT)

    def entries(self) -> list[HandoffEntry]:
        project, record = self.session.project, self.session.record
        with open_bridge(project.config.bridge_database) as handoffs:
            [one] = bindings.list_about_issue(handoffs, record.project, record.issue)
            return list(handoffs.entries(one.handoff_id))


class TestChat(ChannelContract):
    @pytest.fixture
    def side(self, tmp_path: Path, root: Root) -> Iterator[ChannelSide]:
        session = make_session(make_stage(tmp_path, auto=False).project)
        said(session.project, session)
        with lock.hold(session.dir.monitor_lock):  # no monitor is started for the answer
            yield ChatSide(session)
