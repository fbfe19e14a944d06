"""What proves that an account works, and what of a fault is kept."""

from __future__ import annotations

import pytest

from sm.sessions import account_faults
from sm.store.paths import Root, SessionDir

AT = 1_796_000_000.0


@pytest.fixture
def directory(root: Root) -> SessionDir:
    found = root.session("ann")
    found.path.mkdir(parents=True, mode=0o700)
    return found


def find(directory: SessionDir, *events: tuple[float, str]) -> float:
    lines = [f"{AT + at:.6f} {event}\n" for at, event in events]
    directory.events.write_text("".join(lines))
    directory.events.chmod(0o600)
    return account_faults.find_success(directory, AT) - AT


NEVER = -AT


def test_an_answer_proves_it_if_its_request_was_sent_afterwards(directory: SessionDir) -> None:
    asked, used, ended = "UserPromptSubmit c1 -", "PostToolUse c1 Bash", "Stop c1 -"
    assert find(directory, (1, asked), (9, ended)) == 9
    assert find(directory, (1, used), (9, used)) == 9
    assert find(directory, (-5, asked), (9, ended)) == NEVER, "it was sent before"
    assert find(directory, (-5, asked), (1, used)) == NEVER
    assert find(directory, (1, asked), (9, "StopFailure c1 rate_limit")) == NEVER
    assert find(directory, (1, asked), (9, "Stop c2 -")) == NEVER, "in another context"
    assert find(directory, (1, asked), (9, "Stop c1 stale")) == NEVER
    assert find(directory, (-9, asked), (-5, ended)) == NEVER
    assert account_faults.find_success(SessionDir(directory.path / "none"), AT) == 0.0


def test_a_damaged_file_is_no_fault(root: Root) -> None:
    root.account_faults.mkdir(parents=True, mode=0o700)
    (root.account_faults / "0123").write_text("{")
    (root.account_faults / "0123").chmod(0o600)
    assert account_faults.list_faults(root) == []
