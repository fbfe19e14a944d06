"""Messages to and about sessions that work on issues, beside those that work on none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.sessions.agent import load
from sm.store.lock import is_held
from sm.store.paths import Root
from tests.company import SM, Company, make_company
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import HANG_S, kill_monitor, wait_for


@pytest.fixture
def company(stage_of: Callable[..., object], tmp_path: Path, root: Root) -> Iterator[Company]:
    made = make_company(tmp_path, root)
    yield made
    made.end()


def at_work(stage_of: MakeStage) -> Stage:
    stage = stage_of(auto=False)
    stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    return stage


def test_a_session_of_an_issue_is_reached_by_its_number(
    stage_of: MakeStage, company: Company
) -> None:
    stage = at_work(stage_of)
    said = stage.sm("send", "harb#1", "Hello.", "--wait", str(HANG_S)).stdout
    assert said == "typed to harb#1 (its client cannot confirm)\n"
    wait_for(lambda: "Hello." in stage.told(), "the message")
    company.new("ann")
    company.send_from("ann", "harb#1", "And hello from me.")
    wait_for(
        lambda: "[sm] message from ann:\nAnd hello from me." in stage.told(), "the other message"
    )
    assert "harb#1" in stage.sm("children").stdout
    assert "for no issue: 1 session" in stage.sm("status").stdout


def look_through(stage: Stage) -> str:
    """Have a person look through the terminal's history, so nothing is typed; returns the pane."""
    known = load(stage.session(1).dir)
    assert known
    stage.project.tmux.command("copy-mode", "-t", known.pane_id)
    return known.pane_id


def test_what_waits_for_a_session_of_an_issue_is_handed_over_by_its_monitor(
    stage_of: MakeStage, company: Company
) -> None:
    stage = at_work(stage_of)
    pane = look_through(stage)
    said = stage.sm("send", "harb#1", "Hello.").stdout
    assert said.startswith("queued for harb#1: a person looks through its history")
    stage.project.tmux.command("send-keys", "-t", pane, "-X", "cancel")
    wait_for(lambda: "Hello." in stage.told(), "the message")


def test_who_waits_for_a_turn_hears_that_a_person_is_asked_first(
    stage_of: MakeStage, company: Company
) -> None:
    stage = at_work(stage_of)
    company.new("ann")
    look_through(stage)
    company.send_from("ann", "harb#1", "Well?", "--notify-on-stop")
    stage.write_phase(1, "PHASE:escalate")
    assert company.hears("ann", "[sm] harb#1") == "[sm] harb#1 waits for a person (escalate)"


def test_a_session_of_an_issue_is_ended_by_its_number_and_tells_who_waits(
    stage_of: MakeStage, company: Company
) -> None:
    stage = at_work(stage_of)
    company.new("ann")
    look_through(stage)
    company.send_from("ann", "harb#1", "Well?", "--notify-on-stop")
    refused = company.run_in("ann", f"{SM} kill harb#1")
    assert "may end only itself" in refused
    assert "issue #1 is labelled blocked" in stage.sm("kill", "harb#1").stdout
    assert company.hears("ann", "[sm] harb#1").startswith("[sm] harb#1 has ended (")
    assert not stage.sessions()


def test_a_parent_is_told_once_when_its_child_dies(stage_of: MakeStage, company: Company) -> None:
    stage = stage_of(auto=False)
    company.new("ann")
    company.run_in("ann", f"{SM} new --provider peer --name kid")
    company.wait("kid")
    kid = company.session("kid")
    known = load(kid.dir)
    assert known
    os.kill(known.pid, signal.SIGKILL)
    assert company.hears("ann", "[sm] kid") == "[sm] kid has died"
    wait_for(lambda: not is_held(kid.dir.monitor_lock), "the end of its monitor")
    assert "'kid' has died" in company.sm("send", "kid", "Hello?", code=1).stderr
    assert "kid" not in stage.poll().stdout  # it is not begun again
    company.run_in("ann", "true")  # whatever else waits for ann comes with it
    assert [text for text in company.noted("ann") if "[sm] kid" in text] == ["[sm] kid has died"]


def test_dev_poll_starts_the_monitor_of_a_session_without_an_issue_again(
    stage_of: MakeStage, company: Company
) -> None:
    stage = stage_of(auto=False)
    company.new("ann")
    session = company.session("ann")
    kill_monitor(session)
    assert "restart the monitor of ann" in stage.poll().stdout
    wait_for(lambda: is_held(session.dir.monitor_lock), "another monitor")
    assert "restart the monitor" not in stage.poll().stdout


def test_what_has_ended_is_forgotten_after_a_week(stage_of: MakeStage, company: Company) -> None:
    stage = stage_of(auto=False)
    company.new("ann")
    company.sm("send", "ann", "leave:")
    over = company.session("ann").dir.over
    wait_for(over.exists, "its end to be noted")
    assert "forget" not in stage.poll().stdout
    os.utime(over, (1000, 1000))
    assert "forget ann, which ended a week ago" in stage.poll().stdout
    assert "ann" not in stage.sm("children", check=False).stdout


def test_what_the_terminal_of_a_killed_session_showed_is_found_by_its_id(company: Company) -> None:
    ident = company.new("ann")
    company.sm("send", "ann", "Work.")
    company.hears("ann", "Work.")
    company.sm("kill", "ann")
    assert "working" in company.sm("logs", ident).stdout
    assert "terminal log: " in company.sm("trace", ident).stdout
