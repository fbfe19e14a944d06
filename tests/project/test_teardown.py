"""The end of a test leaves no monitor, and bears a session that ends by itself meanwhile."""

from __future__ import annotations

from tests.company import Company
from tests.helpers import monitor_of, wait_for
from tests.teardown import end_session


def test_a_session_that_has_ended_meanwhile_is_passed_over(company: Company) -> None:
    session = company.session(company.new("ann"))
    company.sm("kill", "ann")
    end_session(session)
    assert not session.dir.path.exists()


def test_the_monitor_has_ended_when_its_session_is_ended(company: Company) -> None:
    session = company.session(company.new("ann"))
    wait_for(lambda: monitor_of(session), "the monitor")
    end_session(session)
    assert monitor_of(session) is None
