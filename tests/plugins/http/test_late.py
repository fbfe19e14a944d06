"""Readings over HTTP while a context is replaced: they name no context, and may come late."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from sm.context import health_log, rotation_files, usage
from sm.store import lock
from tests.company import Company
from tests.helpers import wait_for
from tests.serving import Served, serving


@pytest.fixture
def served(company: Company) -> Iterator[Served]:
    with serving(company.folder, env={"SM_CONFIG": str(company.config)}) as found:
        yield found


def report(served: Served, session: str, percentage: float) -> str:
    """Send a reading; why it was passed over, '' where it was not."""
    body = {"session_id": session, "used_percentage": percentage, "context_window_size": 200000}
    said = served.post("/hooks/context-usage", body).body
    assert said["status"] == "ok"
    return str(said.get("reason", ""))


def begun(company: Company) -> int:
    """How many handoff documents the agent was asked for."""
    return sum("Create handoff document now" in text for text in company.noted("ann"))


def test_readings_of_the_old_context_begin_no_second_cycle(
    company: Company, served: Served
) -> None:
    """Sent as fast as a server takes them, until the new context works."""
    ann = company.new("ann")
    company.sm("send", "ann", "Work.\ngauge: 90")
    wait_for(functools.partial(begun, company), "a cycle to begin")

    def resumed() -> bool:
        report(served, ann, 90)
        return any("and resume work" in text for text in company.noted("ann"))

    wait_for(resumed, "the new context to be told")
    report(served, ann, 90)
    directory = company.session("ann").dir
    wait_for(lambda: not rotation_files.is_wanted(directory), "the cycle to end")
    company.sm("send", "ann", "Go on.")
    company.hears("ann", "Go on.")
    assert begun(company) == 1
    assert [one.status for one in health_log.read_recent(company.root, ann)] == ["confirmed"]


def test_a_reading_right_after_a_context_began_is_passed_over(
    company: Company, served: Served
) -> None:
    """Nobody has looked at the new context yet, so nothing but its beginning tells of it."""
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    event = {"session_id": "c0ffee00-1", "session_manager_id": ann, "source": "startup"}
    served.post("/hooks/claude", event | {"hook_event_name": "SessionStart"})
    assert report(served, ann, 90).startswith("passed over: its context has just begun")
    assert usage.read(directory) is None

    def later() -> bool:
        report(served, ann, 9)
        return usage.read(directory) is not None

    wait_for(later, "a reading to be believed")


def test_an_agent_with_a_status_line_of_its_own_is_not_spoken_for(
    company: Company, served: Served
) -> None:
    ann = company.new("ann")
    directory = company.session("ann").dir
    assert "the status line of sm tells" in report(served, ann, 90)
    assert usage.read(directory) is None


def test_a_reading_while_a_handoff_waits_is_passed_over(company: Company, served: Served) -> None:
    ann = company.new("ann", provider="mute")
    directory = company.session("ann").dir
    with lock.hold(directory.lock, timeout_s=60):  # a pass removes a hold without a wish
        directory.hold.write_text("\n")
        directory.hold.chmod(0o600)
        said = report(served, ann, 90)
        assert said == "passed over: its context is being replaced"
        assert usage.read(directory) is None
    directory.hold.unlink()
    report(served, ann, 42)
    found = usage.read(directory)
    assert found
    assert found.percent == 42
