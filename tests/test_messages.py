"""Messages between sessions: real tmux, real monitors, real hooks; only the model is scripted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store import journal
from sm.store.paths import Root
from tests.company import Company, make_company


@pytest.fixture
def company(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Company]:
    made = make_company(tmp_path, root)
    yield made
    for event in journal.read(root.journal):  # shown where the test has failed
        print(f"{event.at:.3f} {event.session} {event.event} {event.detail}")
    for log in root.sessions.glob("*/monitor.log"):
        print(f"--- {log}\n{log.read_text()}")
    made.end()


def test_a_message_to_an_idle_agent_is_accepted(company: Company) -> None:
    company.new("ann")
    assert company.sm("send", "ann", "Hello.").stdout == "accepted by ann\n"
    assert company.noted("ann") == ["Hello."]
