"""When it is read again, and what is known of it then."""

from __future__ import annotations

from typing import Any

import pytest

from sm.adapters.forge.model import CheckState
from sm.base.errors import StateError
from sm.plugins.top import feed as feeding
from sm.plugins.top.feed import Feed, Seen
from sm.sessions import registry
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, journal
from sm.views import board as board_module
from sm.views.board import WatchedBoard
from sm.views.projects import ProjectsReader
from sm.views.session import make_rows
from sm.views.session_row import SessionRow
from tests.helpers import a_pull, an_issue, put_session, put_snapshot
from tests.views.test_session import project  # noqa: F401 - the fixture


@pytest.fixture
def feed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Feed:  # noqa: F811
    """Of two sessions, read once; from now on nothing is read again by the clock alone."""
    monkeypatch.setattr(feeding, "AGAIN_S", 1e6)
    monkeypatch.setattr(feeding, "STAMPS_S", 0.0)
    monkeypatch.setattr(feeding, "STAMPS_OF_ONE_S", 0.0)
    put_snapshot(project, an_issue(7), an_issue(8))
    for issue in (7, 8):
        put_session(project, issue)
    project.record(events.Claimed(session="dev-harb-7", how="won"))
    made = Feed(project.machine, ProjectsReader(project.machine, [project]))
    assert made.is_due()
    seen = made.read()
    assert [row.issue for row in seen.rows] == [7, 8]
    assert not is_due_after_a_pause(made)
    return made


def is_due_after_a_pause(feed: Feed) -> bool:
    """Whether it is once the pause is over that follows each reading."""
    feed._soonest = 0.0
    return feed.is_due()


def state_of(seen: Seen, issue: int) -> str:
    return next(str(row.state) for row in seen.rows if row.issue == issue)


def ask(project: Project, issue: int) -> None:  # noqa: F811
    project.root.phase("harb", issue).write_text("PHASE:escalate\nRed or blue?\n")


def test_an_event_has_its_session_read_and_no_other(
    feed: Feed,
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def note(
        project: Project,
        now: float,
        sessions: list[IssueSession],
        *more: Any,
    ) -> list[SessionRow]:
        made.extend(one.name for one in sessions)
        return make_rows(project, now, sessions, *more)

    monkeypatch.setattr(board_module, "make_rows", note)
    ask(project, 8)
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    assert is_due_after_a_pause(feed)
    seen = feed.read()
    assert seen.changed == {"dev-harb-8"}
    assert state_of(seen, 8) == "escalated"
    assert next(row for row in seen.rows if row.issue == 8).event == "monitor started"
    assert made == ["dev-harb-8"]
    assert not is_due_after_a_pause(feed)
    assert not feed.read().changed


def test_a_file_that_a_hook_writes_is_seen_without_an_event(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    session.dir.usage.write_text("1.0 - 41.5 200000 - - - - 83000\n")
    assert is_due_after_a_pause(feed)
    assert feed.read().changed == {"dev-harb-7"}
    assert not is_due_after_a_pause(feed)


def test_a_new_session_comes_with_its_event(feed: Feed, project: Project) -> None:  # noqa: F811
    put_session(project, 9)
    project.record(events.Claimed(session="dev-harb-9", how="won"))
    assert is_due_after_a_pause(feed)
    assert [row.issue for row in feed.read().rows] == [7, 8, 9]


def test_it_is_read_no_more_often_than_can_be_afforded(
    feed: Feed,
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeding, "BUSY_PART", 1e6)
    feed.read()
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    registry.load_for(project, 7).dir.usage.write_text("1.0 - 41.5 200000 - - - - 83000\n")
    assert not feed.is_due()
    assert is_due_after_a_pause(feed)
    assert feed.read().changed == {"dev-harb-7", "dev-harb-8"}


def test_what_cannot_be_read_is_not_tried_again_at_once(
    feed: Feed,
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise StateError("no")

    monkeypatch.setattr(WatchedBoard, "read", fail)
    feed._again_at = 0.0
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    with pytest.raises(StateError):
        feed.read()
    assert not is_due_after_a_pause(feed)


def test_a_session_that_ends_is_gone_and_it_is_known_how(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    for event in (
        events.Decided(session=session.name, row="merged"),
        events.StepDone(session=session.name, verb=str(StepVerb.FORGET), row="merged"),
    ):
        project.record(event)
    registry.forget(project.root, session)
    seen = feed.read()
    assert [row.issue for row in seen.rows] == [8]
    assert feed.find_outcome("dev-harb-7") == "merged"


def test_a_new_look_at_the_forge_is_read(feed: Feed, project: Project) -> None:  # noqa: F811
    feed._after_news = 0.0  # else it waits, as such looks may come each second
    pull = a_pull(11, registry.load_for(project, 8).record.branch, CheckState.FAILURE)
    put_snapshot(project, an_issue(8), pull)
    assert is_due_after_a_pause(feed)
    assert next(row.ci for row in feed.read().rows if row.issue == 8) == "failed"
    assert not is_due_after_a_pause(feed)


def test_half_a_line_in_the_journal_is_looked_at_once(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    with project.root.journal.open("ab") as file:
        file.write(b'{"kind": "mon')
    assert is_due_after_a_pause(feed)
    feed.read()
    assert not is_due_after_a_pause(feed)


def test_a_journal_that_is_begun_anew_loses_no_event(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    for _ in range(3):
        project.record(events.Monitor(session="dev-harb-7", state="started"))
    feed.read()
    path = project.root.journal
    path.rename(journal.name_previous(path))
    project.record(events.Monitor(session="dev-harb-8", state="ended"))
    assert is_due_after_a_pause(feed)
    assert "dev-harb-8" in feed.read().changed


def test_a_damaged_session_stays_and_the_others_go_on(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    session.dir.identity.write_text("no JSON\n")
    project.record(events.Monitor(session=session.name, state="started"))
    for _ in range(2):
        seen = feed.read()
        assert {row.issue for row in seen.rows} == {7, 8}
        assert any("dev-harb-7" in problem for problem in seen.problems)


def test_what_a_session_needs_is_among_all_needs_at_once(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    pull = a_pull(11, registry.load_for(project, 8).record.branch, CheckState.SUCCESS)
    put_snapshot(project, an_issue(8), pull)
    project.root.phase("harb", 8).write_text("PHASE:awaiting_review\n")
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    assert [need.issue for need in feed.read().needs] == [8]
