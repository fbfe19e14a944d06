"""What is read: all at first, then the sessions in which something has happened."""

from __future__ import annotations

import pytest

from sm.adapters.forge.model import CheckState
from sm.plugins.top import feed as feeding
from sm.plugins.top.feed import Feed, Seen
from sm.sessions import registry
from sm.sessions.history import Verb
from sm.sessions.project import Project
from sm.store import events, journal
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
    made = Feed(project.machine, [project])
    assert made.is_due()
    seen = made.read()
    assert seen.whole
    assert [row.issue for row in seen.rows] == [7, 8]
    assert not made.is_due()
    return made


def state_of(seen: Seen, issue: int) -> str:
    return next(str(row.state) for row in seen.rows if row.issue == issue)


def ask(project: Project, issue: int) -> None:  # noqa: F811
    project.root.phase("harb", issue).write_text("PHASE:escalate\nRed or blue?\n")


def test_an_event_has_its_session_read_and_no_other(
    feed: Feed,
    project: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for issue in (7, 8):
        ask(project, issue)
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    assert feed.is_due()
    seen = feed.read()
    assert not seen.whole
    assert seen.changed == {"dev-harb-8"}
    assert state_of(seen, 8) == "escalated"
    assert state_of(seen, 7) != "escalated"
    assert next(row for row in seen.rows if row.issue == 8).event == "monitor started"
    assert not feed.is_due()


def test_a_file_that_a_hook_writes_is_seen_without_an_event(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    session.dir.usage.write_text("1.0 - 41.5 200000 - - - - 83000\n")
    assert feed.is_due()
    assert feed.read().changed == {"dev-harb-7"}
    assert not feed.is_due()


def test_a_new_session_has_all_read(feed: Feed, project: Project) -> None:  # noqa: F811
    feed._soonest = 0.0  # else it waits for a moment, as looks that come thick and fast cost
    put_session(project, 9)
    project.record(events.Claimed(session="dev-harb-9", how="won"))
    seen = feed.read()
    assert seen.whole
    assert [row.issue for row in seen.rows] == [7, 8, 9]


def test_looks_at_all_come_no_faster_than_they_can_be_afforded(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    feed._soonest = feed._whole_at = 1e9
    project.record(events.Paused(what="harb"))
    assert not feed.read().whole
    assert feed._whole_at == 1e9
    assert not feed.is_due()


def test_a_session_that_ends_is_gone_and_it_is_known_how(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    for event in (
        events.Decided(session=session.name, row="merged"),
        events.StepDone(session=session.name, verb=str(Verb.FORGET), row="merged"),
    ):
        project.record(event)
    registry.forget(project.root, session)
    seen = feed.read()
    assert [row.issue for row in seen.rows] == [8]
    assert feed.find_outcome("dev-harb-7") == "merged"


def test_a_new_look_at_the_forge_has_all_read(feed: Feed, project: Project) -> None:  # noqa: F811
    feed._after_news = 0.0  # else it waits, as such looks may come each second
    pull = a_pull(11, registry.load_for(project, 8).record.branch, CheckState.FAILURE)
    put_snapshot(project, an_issue(8), pull)
    assert feed.is_due()
    assert next(row.ci for row in feed.read().rows if row.issue == 8) == "failed"
    assert not feed.is_due()


def test_half_a_line_in_the_journal_is_looked_at_once(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    with project.root.journal.open("ab") as file:
        file.write(b'{"kind": "mon')
    assert feed.is_due()
    feed.read()
    assert not feed.is_due()


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
    assert feed.is_due()
    assert "dev-harb-8" in feed.read().changed


def test_a_damaged_session_stays_and_the_others_go_on(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    session = registry.load_for(project, 7)
    session.dir.identity.write_text("no JSON\n")
    project.record(events.Monitor(session=session.name, state="started"))
    assert [row.issue for row in feed.read().rows] == [7, 8]


def test_what_a_session_needs_is_among_all_needs_at_once(
    feed: Feed,
    project: Project,  # noqa: F811
) -> None:
    pull = a_pull(11, registry.load_for(project, 8).record.branch, CheckState.SUCCESS)
    put_snapshot(project, an_issue(8), pull)
    project.root.phase("harb", 8).write_text("PHASE:awaiting_review\n")
    project.record(events.Monitor(session="dev-harb-8", state="started"))
    assert [need.issue for need in feed.read().needs] == [8]
