"""What a node tells is entered at home once, whatever happens in between."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import ValidationError, json, structs

from sm.plugins.cost.ledger.entries import CostLedger, EntryOwner, open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.records.record import MOST
from sm.plugins.cost.ledger.sums import SumGroup, read_sums, read_sums_of_sessions
from sm.plugins.cost.sync import wire
from sm.plugins.cost.sync.home import hear, read_known
from sm.plugins.cost.sync.node import account
from sm.plugins.cost.sync.wire import Inquiry, LedgerReport
from tests.plugins.cost.ledger.test_entries import check_sums
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer

HOME, NODE, HOST = "home.db", "node.db", "box"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CostLedger]:
    with open_ledger(tmp_path / HOME) as ledger:
        yield ledger
        check_sums(ledger)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CostLedger]:
    with open_ledger(tmp_path / NODE) as ledger:
        yield ledger


@pytest.fixture(autouse=True)
def private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)


def spend(
    node: CostLedger, folder: Path, *requests: str, owner: EntryOwner = OWNER, output: int = 20
) -> None:
    path = folder / f"{owner.session}.jsonl"
    enter(node, add_lines(path, [write_answer(one, output) for one in requests]), owner)


def ask(home: CostLedger, host: str = HOST) -> Inquiry:
    known = read_known(home, host)
    after = {name: known.after.get(name, 0) for name in ("", "shop")}
    return Inquiry(home="h", ledger=known.ledger, after=after)


def exchange(home: CostLedger, node: CostLedger, host: str = HOST) -> int:
    """Ask until there is no more; every word goes through the bytes that are sent."""
    count = 0
    while True:
        asked = ask(home, host)
        said = json.decode(json.encode(account(node, asked)), type=LedgerReport)
        count += hear(home, host, asked, said)
        if not said.more:
            return count


def sums(ledger: CostLedger) -> list[object]:
    return [
        structs.replace(one, by_client=None)
        for by in (SumGroup.ISSUE, SumGroup.MODEL, SumGroup.PROJECT, SumGroup.AGENT, SumGroup.DAY)
        for one in read_sums(ledger, by)
    ]


def test_home_has_what_the_node_has_and_says_where(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1", "r2")
    spend(node, tmp_path, "r3", owner=EntryOwner("s-00000001", client="claude"))
    spend(node, tmp_path, "r4", owner=structs.replace(OWNER, project="other", session="o"))
    price_pending(node)
    assert exchange(home, node) == 3, "another project is nobody's business here"
    assert [(one.name, one.requests) for one in read_sums(home, SumGroup.HOST)] == [("box", 3)]
    assert [(one.name, one.requests) for one in read_sums(home, SumGroup.PROJECT)] == [
        ("", 1),
        ("shop", 2),
    ]
    of_node = next(one for one in read_sums(node, SumGroup.ISSUE) if one.name == "shop")
    assert next(one for one in read_sums(home, SumGroup.ISSUE) if one.name == "shop") == of_node
    assert of_node.price > 0
    assert exchange(home, node) == 0, "nothing has changed since"


def test_what_changes_later_or_goes_again_does_so_at_home(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1")
    begun = {"type": "api-request", "timestamp": write_answer("")["timestamp"], "id": "b1"}
    enter(node, add_lines(tmp_path / f"{OWNER.session}.jsonl", [begun]))
    exchange(home, node)
    assert [one.unknown for one in read_sums(home, SumGroup.ISSUE)] == [1]
    settled = write_answer("r2", requestRef="b1")
    enter(node, add_lines(tmp_path / f"{OWNER.session}.jsonl", [settled, write_answer("r1", 99)]))
    price_pending(node)
    exchange(home, node)
    assert sums(home) == sums(node)


def test_an_answer_that_comes_twice_or_late_counts_once(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1")
    asked = ask(home)
    early = account(node, asked)
    spend(node, tmp_path, "r2")
    late = account(node, asked)
    assert hear(home, HOST, asked, late) == 2
    assert hear(home, HOST, asked, late) == 0
    assert hear(home, HOST, asked, early) == 0, "it is older than what is known"
    exchange(home, node)
    assert sums(home) == sums(node)


def test_a_kill_before_it_is_entered_loses_and_doubles_nothing(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1", "r2")
    child = os.fork()
    if not child:
        os.environ["SM_CRASH_AT"] = "node:heard"
        with open_ledger(tmp_path / HOME) as ours, open_ledger(tmp_path / NODE) as theirs:
            exchange(ours, theirs)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert read_sums(home, SumGroup.HOST) == []
    spend(node, tmp_path, "r3")
    assert exchange(home, node) == 3
    assert sums(home) == sums(node)


def test_much_comes_in_pieces(
    home: CostLedger, node: CostLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.plugins.cost.sync.node.ROOM", 2_000)
    spend(node, tmp_path, *(f"r{number}" for number in range(50)))
    said = account(node, ask(home))
    assert said.more
    assert not said.totals
    assert len(json.encode(said)) < 3_000
    assert exchange(home, node) == 50
    assert sums(home) == sums(node)


def test_a_ledger_that_is_made_anew_or_copied_counts_nothing_twice(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1", "r2")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        node.connection.backup(copy)
    exchange(home, node)
    spend(node, tmp_path, "r3")
    exchange(home, node)
    (tmp_path / "copy.db").chmod(0o600)
    with open_ledger(tmp_path / "copy.db") as put_back:
        spend(put_back, tmp_path / "..", "r4", owner=structs.replace(OWNER, session="late"))
        assert put_back.read_identity() == node.read_identity()
        exchange(home, put_back)
    with open_ledger(tmp_path / "anew.db") as anew:
        enter(anew, tmp_path / f"{OWNER.session}.jsonl")  # all of it is read again
        exchange(home, anew)
        exchange(home, anew, "oak")  # and by another name
    assert [one.requests for one in read_sums(home, SumGroup.ISSUE)] == [4]
    assert [one.name for one in read_sums(home, SumGroup.HOST)] == [HOST]


def test_another_ledger_is_heard_from_its_beginning(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    with open_ledger(tmp_path / "other.db") as other:
        spend(other, tmp_path, "r1")
        account(other, ask(home))  # others have asked it earlier, so its numbers are lower
        spend(node, tmp_path, "r2", owner=structs.replace(OWNER, session="late"))
        exchange(home, node)
        assert exchange(home, other) == 1
    assert [one.requests for one in read_sums(home, SumGroup.ISSUE)] == [2]


def test_a_node_can_change_nothing_that_it_was_not_heard_of_first(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(home, tmp_path, "r1")
    mine = sums(home)
    forged = account(node, ask(home))
    (told,) = account(home, ask(home)).changes["shop"]
    assert told.request
    request = structs.replace(told.request, input=10**12)
    changes = (wire.EntryChange(1, "r1", request), wire.EntryChange(2, "r1"))
    said = structs.replace(forged, changes={"shop": changes, "secret": changes})
    hear(home, HOST, ask(home), said)
    assert sums(home) == mine


def test_no_sum_of_what_a_node_may_make_up_overflows(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1")
    said = account(node, ask(home))
    (told,) = said.changes["shop"]
    assert told.request
    most = dict.fromkeys(("input", "output", "cache_read", "cache_write_5m", "searches"), MOST)
    request = structs.replace(told.request, price=10**12, **most)
    made_up = tuple(wire.EntryChange(number, f"r{number}", request) for number in range(1, 1001))
    said = json.decode(
        json.encode(structs.replace(said, changes={"shop": made_up})), type=LedgerReport
    )
    hear(home, HOST, ask(home), said)
    [found] = read_sums(home, SumGroup.ISSUE)
    assert found.requests == 1000
    assert 1000 * 10**12 * 9000 < 1 << 63, "nine million of them"
    for column, value in (("price", 10**12 + 1), ("input", MOST + 1)):
        dear = structs.replace(request, **{column: value})
        with pytest.raises(ValidationError):
            json.decode(json.encode(dear), type=wire.WireEntry)


def test_a_session_there_is_none_here_of_the_same_name(
    home: CostLedger, node: CostLedger, tmp_path: Path
) -> None:
    spend(node, tmp_path, "r1", owner=EntryOwner("s-00000001", client="claude"))
    exchange(home, node)
    assert read_sums_of_sessions(home, ["s-00000001"]) == {}
    used = home.connection.execute("SELECT scope FROM used").fetchall()
    assert ("session",) not in used
    assert ("day",) in used


def test_without_anybody_who_asks_no_change_is_noted(node: CostLedger, tmp_path: Path) -> None:
    spend(node, tmp_path, "r1")
    assert node.connection.execute("SELECT * FROM changes").fetchall() == []
