"""The ledger counts each request once, whatever is read again, killed, or full."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.base.errors import StateError, TemporaryError
from sm.plugins.cost.ledger import database, intake, progress
from sm.plugins.cost.ledger.database import COUNTS, GROUPS
from sm.plugins.cost.ledger.entries import CostLedger, name_day, open_ledger
from sm.plugins.cost.ledger.prices import name_source, price_pending
from sm.plugins.cost.ledger.records.record import find_reader
from sm.plugins.cost.ledger.sums import Sum, SumGroup, read_sums
from sm.store.sqlite import DatabaseLayout, check_shared
from tests.chance import dice
from tests.disks import fill, small_disk
from tests.helpers import wait_for
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sm" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[CostLedger]:
    with open_ledger(path) as ledger:
        yield ledger
        check_sums(ledger)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"


def check_sums(ledger: CostLedger) -> None:
    """What is kept of sums is what the entries come to."""
    groups = ", ".join(GROUPS)
    counts = ", ".join(f"sum({count})" for count in COUNTS)
    query = f"SELECT {groups}, sum(certainty < 2), {counts}, sum(coalesce(price, 0)) FROM requests"
    counted = ledger.connection.execute(f"{query} GROUP BY {groups}").fetchall()
    kept = ledger.connection.execute(
        f"SELECT {groups}, requests, {', '.join(COUNTS)}, price FROM sums WHERE requests OR unknown"
    ).fetchall()
    assert sorted(kept) == sorted(counted)


def total(ledger: CostLedger) -> Sum:
    (one,) = read_sums(ledger, SumGroup.PROJECT)
    return one


def test_what_is_read_again_changes_nothing(ledger: CostLedger, transcript: Path) -> None:
    add_lines(transcript, [write_answer("r1"), write_answer("r1"), write_answer("r2")])
    assert enter(ledger, transcript) == 3
    before = total(ledger)
    assert (before.requests, before.tokens.output) == (2, 40)
    assert enter(ledger, transcript) == 0
    ledger.connection.execute("DELETE FROM files")  # as if nothing had been noted
    assert enter(ledger, transcript) == 3
    assert total(ledger) == before


def test_of_lines_that_differ_the_largest_counts(ledger: CostLedger, transcript: Path) -> None:
    lines = [write_answer("r1", output=1, stop=None), write_answer("r1", output=500)]
    enter(ledger, add_lines(transcript, lines))
    enter(ledger, add_lines(transcript, [write_answer("r1", output=3)]))
    enter(ledger, add_lines(transcript, [write_answer("r1", output=3, input_=11)]))
    assert (total(ledger).tokens.output, total(ledger).tokens.input) == (500, 11)
    assert total(ledger).is_complete


def test_a_fork_and_another_session_count_nothing_twice(
    ledger: CostLedger, transcript: Path
) -> None:
    enter(ledger, add_lines(transcript, [write_answer("r1")]))
    fork = transcript.with_name("s2.jsonl")
    add_lines(fork, [write_answer("r1", sessionId="s2"), write_answer("r2", sessionId="s2")])
    enter(ledger, fork, structs.replace(OWNER, session="dev-shop-8", issue=8))
    found = {one.issue: one.requests for one in read_sums(ledger, SumGroup.ISSUE)}
    assert found == {7: 1, 8: 1}


def test_what_was_asked_for_before_the_session_is_not_its_own(
    ledger: CostLedger, transcript: Path
) -> None:
    lines = [write_answer("r1", at="2026-11-28T10:00:00Z"), write_answer("r2")]
    owner = structs.replace(OWNER, since=1795863600.0)  # 11:00
    enter(ledger, add_lines(transcript, lines), owner)
    assert total(ledger).requests == 1


def test_a_clock_that_was_set_back_loses_and_hides_nothing(
    ledger: CostLedger, transcript: Path
) -> None:
    """What seems to be of tomorrow is today's, so that a limit of today has it."""
    ledger.note_starts([("s1", 1795863000.0, "startup")])
    lines = [
        write_answer("r1", at="2026-11-28T10:00:00Z"),
        write_answer("r2", at="2999-01-01T00:00:00Z"),
    ]
    owner = structs.replace(OWNER, since=1795863600.0)  # 11:00
    enter(ledger, add_lines(transcript, lines), owner)
    assert total(ledger).requests == 2
    assert max(one.name for one in read_sums(ledger, SumGroup.DAY)) == name_day(time.time())


def test_a_ledger_of_before_is_brought_up_to_date(path: Path, transcript: Path) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setattr(database, "LAYOUT", DatabaseLayout(database.APPLICATION, [database.FIRST]))
        with open_ledger(path) as ledger:
            assert not ledger.connection.execute(
                "SELECT 1 FROM sqlite_schema WHERE name = 'own'"
            ).fetchall()
    with open_ledger(path) as ledger:
        enter(ledger, add_lines(transcript, [write_answer("r1")]))
        assert total(ledger).requests == 1
        assert ledger.list_own() == []


def test_a_request_under_way_and_one_that_was_never_answered(
    ledger: CostLedger, transcript: Path
) -> None:
    begun = {"type": "api-request", "timestamp": write_answer("")["timestamp"], "id": "b1"}
    enter(ledger, add_lines(transcript, [begun, begun | {"id": "b2"}]))
    assert (total(ledger).requests, total(ledger).unknown) == (0, 2)
    enter(ledger, add_lines(transcript, [write_answer("r1", requestRef="b1")]))
    assert (total(ledger).requests, total(ledger).unknown) == (1, 1)
    # In a fork the answer comes before the line of its request.
    enter(
        ledger, add_lines(transcript, [write_answer("r3", requestRef="b3"), begun | {"id": "b3"}])
    )
    assert (total(ledger).requests, total(ledger).unknown) == (2, 1)


def test_half_a_line_is_left_for_the_next_time(ledger: CostLedger, transcript: Path) -> None:
    whole = add_lines(transcript, [write_answer("r1")]).read_bytes()
    transcript.write_bytes(whole[:-40])
    assert enter(ledger, transcript) == 0
    transcript.write_bytes(whole)
    assert enter(ledger, transcript) == 1


def test_a_transcript_that_is_another_now_is_read_from_its_beginning(
    ledger: CostLedger, transcript: Path
) -> None:
    enter(ledger, add_lines(transcript, [write_answer("r1"), write_answer("r2")]))
    transcript.unlink()
    enter(ledger, add_lines(transcript, [write_answer("r3")]))
    assert total(ledger).requests == 3


def test_a_line_without_end_takes_no_memory(
    ledger: CostLedger, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "LONGEST", 1000)
    transcript.write_text("x" * 5000 + "\n")
    add_lines(transcript, [write_answer("r1")])
    with transcript.open("a") as file:
        file.write("y" * 5000)
    assert enter(ledger, transcript) == 2
    assert (total(ledger).requests, total(ledger).unknown) == (1, 1)
    assert enter(ledger, transcript) == 0


@pytest.mark.parametrize("how", ["shorter", "other"])
def test_a_record_that_was_cut_leaves_an_unknown(
    ledger: CostLedger, transcript: Path, how: str
) -> None:
    """What was added and taken away before it was read is lost; what was read stays."""
    enter(ledger, add_lines(transcript, [write_answer("r1"), write_answer("r2")]))
    before = transcript.read_text()
    transcript.unlink()
    if how == "shorter":
        add_lines(transcript, [write_answer("r1")])
    else:
        assert len(before.replace("r2", "r9")) == len(before)
        transcript.write_text(before.replace("r2", "r9"))
        add_lines(transcript, [write_answer("r4")])
    enter(ledger, transcript)
    assert (total(ledger).requests, total(ledger).unknown) == (2 if how == "shorter" else 4, 1)
    enter(ledger, add_lines(transcript, [write_answer("r5")]))
    assert total(ledger).unknown == 1


@pytest.mark.parametrize("how", ["fifo", "folder", "other"])
def test_only_plain_files_of_ones_own_are_opened(
    ledger: CostLedger, transcript: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of them is waited for."""
    reader = find_reader("claude")
    assert reader
    beside = transcript.with_name("agent-x.jsonl")
    if how == "fifo":
        os.mkfifo(beside)
    elif how == "folder":
        beside.mkdir()
    else:
        add_lines(beside, [write_answer("r1")])
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert enter(ledger, beside) == 0
    assert progress.find_size(beside) is None
    if how != "other":
        assert list(reader.list_files(transcript, "s1")) == [transcript]


def test_prices_are_kept_with_their_source_and_what_has_none_is_unknown(
    ledger: CostLedger, transcript: Path
) -> None:
    lines = [
        write_answer("r1"),
        write_answer("r2", model="claude-opus-4-5[1m]"),
        write_answer("r3", model="no-such-model"),
    ]
    enter(ledger, add_lines(transcript, lines))
    price_pending(ledger)
    rows = ledger.connection.execute(
        "SELECT key, price, currency, priced_by FROM requests ORDER BY key"
    ).fetchall()
    # 10 × $5 + 30 × $0.50 + 20 × $25, for a million: cache reads are beside the input.
    source = name_source()
    assert rows == [
        ("r1", 565_000, "USD", source),
        ("r2", 565_000, "USD", source),
        ("r3", None, "", source),
    ]
    assert (total(ledger).price, total(ledger).unpriced) == (0.00113, 1)
    # A larger count is priced again.
    enter(ledger, add_lines(transcript, [write_answer("r1", output=40)]))
    price_pending(ledger)
    assert total(ledger).price == 0.00163


PROGRAM = """
import sys
from pathlib import Path
from sm.plugins.cost.ledger import intake
from sm.plugins.cost.ledger.entries import open_ledger
from tests.plugins.cost.lines import enter

intake.PIECE = 4000
path, transcript = map(Path, sys.argv[1:])
with open_ledger(path) as ledger:
    enter(ledger, transcript)
"""


@pytest.mark.long_lived
def test_two_readers_of_which_some_are_killed(path: Path, transcript: Path) -> None:
    chance = dice(0)
    add_lines(transcript, [write_answer(f"r{number // 3}") for number in range(6000)])
    argv = [sys.executable, "-c", PROGRAM, str(path), str(transcript)]
    for _ in range(3):
        running = [subprocess.Popen(argv) for _ in range(2)]
        wait_for(path.exists, "the ledger")
        for process in running:
            with open_ledger(path) as ledger:
                goal = len(ledger.connection.execute("SELECT 1 FROM requests").fetchall())
                goal = min(goal + chance.randrange(300), 2000)

                def grown(ledger: CostLedger = ledger, goal: int = goal) -> bool:
                    (count,) = ledger.connection.execute("SELECT count(*) FROM requests").fetchone()
                    return int(count) >= goal

                wait_for(grown, "some entries", 60)
            process.kill()
            assert process.wait() in (0, -signal.SIGKILL)
    subprocess.run(argv, check=True, timeout=120)
    with open_ledger(path) as ledger:
        assert (total(ledger).requests, total(ledger).tokens.output) == (2000, 40_000)
        check_sums(ledger)
        assert ledger.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_full_disk_loses_nothing_that_is_read_later(tmp_path: Path, transcript: Path) -> None:
    add_lines(transcript, [write_answer(f"r{number}") for number in range(2000)])
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, "2m"):
        path = disk / "sm" / "ledger.db"
        with open_ledger(path) as ledger:
            enter(ledger, add_lines(tmp_path / "s0.jsonl", [write_answer("first")]))
        ballast = fill(disk, but_for=8)
        with pytest.raises(TemporaryError, match="no space left"), open_ledger(path) as ledger:
            enter(ledger, transcript)
        ballast.unlink()
        with open_ledger(path) as ledger:
            assert total(ledger).requests == 1
            enter(ledger, transcript)
            assert total(ledger).requests == 2001
            check_sums(ledger)


def test_what_is_not_ours_is_left_alone(path: Path) -> None:
    with open_ledger(path):
        pass
    check_shared(path, database.LAYOUT)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match="newer sm"), open_ledger(path):
        pass
    other = path.with_name("other.db")
    with contextlib.closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE theirs (x)")
    other.chmod(0o600)
    with pytest.raises(StateError, match="another program"), open_ledger(other):
        pass
    other.write_bytes(b"x" * 5000)
    with pytest.raises(StateError, match="damaged"), open_ledger(other):
        pass
