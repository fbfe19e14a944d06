"""When starts that have ended at once are the machine's fault, and when the next try is."""

from __future__ import annotations

import pytest

from sm.sessions import false_starts
from sm.sessions.false_start import PAUSE_S, RESUMED, WINDOW_S, FalseStart, StartFault
from sm.store.paths import Root

NOW = 100_000.0


def put(root: Root, session: str, reason: str, at: float = NOW - 1) -> None:
    false_starts.note(root, session, FalseStart(at, reason))


def test_one_session_alone_proves_nothing(root: Root) -> None:
    assert false_starts.list_faults(root, NOW) == []
    put(root, "dev-harb-1", "no such file")
    put(root, "dev-harb-1", "no such file", NOW)
    assert false_starts.list_faults(root, NOW) == []
    assert false_starts.find_of_machine(root, "dev-harb-1", NOW) is None


def test_several_that_say_the_same_prove_it_whatever_numbers_they_have(root: Root) -> None:
    put(root, "dev-harb-1", "cannot open /tmp/a1b2c3d4/x (4711)")
    put(root, "dev-harb-2", "cannot open /tmp/0f9e8d7c/x (815)")
    put(root, "dev-harb-3", "its branch is gone")
    [fault] = false_starts.list_faults(root, NOW)
    assert fault == StartFault("cannot open /tmp/a1b2c3d4/x (4711)", ("dev-harb-1", "dev-harb-2"))
    assert false_starts.find_of_machine(root, "dev-harb-2", NOW)
    assert false_starts.find_of_machine(root, "dev-harb-3", NOW) is None
    false_starts.clear(root, "dev-harb-1")
    assert false_starts.list_faults(root, NOW) == []


@pytest.mark.parametrize(
    "said",
    [
        "'dev-harb-1' did not start: cannot start 'claude': no such program on PATH (/usr/bin)",
        "env: 'node': No such file or directory",
        "/usr/bin/env: /opt/claude: Text file busy",
    ],
)
def test_one_session_alone_proves_it_where_there_is_no_program_to_run(
    root: Root, said: str
) -> None:
    put(root, "dev-harb-1", said)
    [fault] = false_starts.list_faults(root, NOW)
    assert fault.sessions == ("dev-harb-1",)
    assert false_starts.find_of_machine(root, "dev-harb-1", NOW)


def test_two_clients_may_be_broken_at_once(root: Root) -> None:
    for number in (1, 2, 3):
        put(root, f"dev-harb-{number}", "no such file")
    for number in (4, 5):
        put(root, f"dev-harb-{number}", "not logged in")
    found = [one.reason for one in false_starts.list_faults(root, NOW)]
    assert found == ["no such file", "not logged in"]
    assert false_starts.find_of_machine(root, "dev-harb-5", NOW)


def test_what_is_long_ago_counts_no_more(root: Root) -> None:
    put(root, "dev-harb-1", "no such file", NOW - WINDOW_S - 1)
    put(root, "dev-harb-2", "no such file")
    assert false_starts.list_faults(root, NOW) == []


def test_a_damaged_file_is_none(root: Root) -> None:
    put(root, "dev-harb-1", "no such file")
    put(root, "dev-harb-2", "no such file")
    (root.false_starts / "dev-harb-1").write_text("{")
    assert false_starts.list_faults(root, NOW) == []


@pytest.mark.parametrize(
    ("tries", "pause_s"), [(1, 30), (2, 60), (4, 240), (5, PAUSE_S), (60, 300)]
)
def test_pauses_grow_up_to_a_bound(tries: int, pause_s: float) -> None:
    assert FalseStart(NOW, "", tries).find_next(30.0) == NOW + pause_s


def test_tries_are_counted_until_one_works(root: Root) -> None:
    for tries in (1, 2, 3):
        put(root, "dev-harb-1", "no such file", NOW + tries)
        known = false_starts.read(root, "dev-harb-1")
        assert known
        assert known.tries == tries
    false_starts.clear(root, "dev-harb-1")
    put(root, "dev-harb-1", "no such file")
    known = false_starts.read(root, "dev-harb-1")
    assert known
    assert known.tries == 1


def test_a_conversation_that_cannot_be_resumed_is_given_up_at_last() -> None:
    assert FalseStart(NOW, "", RESUMED - 1, resume="c1").resumable == "c1"
    assert FalseStart(NOW, "", RESUMED, resume="c1").resumable == ""
    no_program = "cannot start 'claude': no such program on PATH ()"
    assert FalseStart(NOW, no_program, RESUMED, resume="c1").resumable == "c1"
