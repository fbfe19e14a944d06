"""The sums that limits look at are what the entries come to, whoever is killed."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from sm.plugins.cost.ledger import database, scopes
from sm.plugins.cost.ledger.entries import CostLedger, open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.scopes import ADDED, CONDITIONS, NAMES, Scope
from sm.store.sqlite import Connection, DatabaseLayout, open_shared, transaction
from tests.chance import dice
from tests.helpers import wait_for
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer


def check(connection: Connection) -> int:
    """What is kept is what the entries come to; returns how many sums there are."""
    count = 0
    for scope in Scope:
        values = ", ".join(f"sum({one.format(row='requests')})" for one in ADDED.values())
        counted = connection.execute(
            f"SELECT {NAMES[scope].format(row='requests')} AS name, model, {values} FROM requests "
            f"WHERE {CONDITIONS.get(scope, 'true').format(row='requests')} GROUP BY name, model"
        ).fetchall()
        kept = connection.execute(
            f"SELECT name, model, {', '.join(ADDED)} FROM used WHERE scope = ? "
            f"AND ({' OR '.join(ADDED)})",
            (scope,),
        ).fetchall()
        assert sorted(kept) == sorted(counted), scope
        count += len(kept)
    return count


def fill(ledger: CostLedger, folder: Path) -> None:
    begun = {"type": "api-request", "timestamp": write_answer("")["timestamp"], "id": "b1"}
    lines = [
        *(begun, write_answer("r1", output=7), write_answer("r2", model="made-up")),
        *(write_answer("r3", stop=None), write_answer("r1", output=9)),
        *(begun | {"id": "b2"}, write_answer("r4", requestRef="b2")),
        *(begun | {"id": "b3"}, begun | {"id": "b3", "params": {"model": "made-up"}}),
    ]
    enter(ledger, add_lines(folder / "one.jsonl", lines))
    other = structs.replace(OWNER, session="s-1", project="", issue=0)
    enter(ledger, add_lines(folder / "two.jsonl", [write_answer("r5")]), other)
    price_pending(ledger)


def test_each_change_of_an_entry_changes_all_of_its_sums(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "sm" / "ledger.db") as ledger:
        fill(ledger, tmp_path)
        assert check(ledger.connection) == 16
        largest = ledger.connection.execute(
            "SELECT largest_tokens FROM used WHERE scope = 'issue' AND model LIKE 'claude%'"
        ).fetchall()
        assert largest == [(10 + 30 + 20,)]


def test_a_ledger_without_budgets_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sm" / "ledger.db"
    at = database.MIGRATIONS.index(scopes.STATEMENTS)
    with open_ledger(path) as ledger:
        fill(ledger, tmp_path)
        rows = ledger.connection.execute("SELECT * FROM requests").fetchall()
        kept = sorted(ledger.connection.execute("SELECT * FROM used").fetchall())
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(
            database, "LAYOUT", DatabaseLayout(database.APPLICATION, database.MIGRATIONS[:at])
        )
        with open_shared(path, database.LAYOUT) as connection, transaction(connection):
            columns = len(connection.execute("PRAGMA table_info(requests)").fetchall())
            marks = ", ".join("?" * columns)
            for row in rows:
                connection.execute(f"INSERT INTO requests VALUES ({marks})", row[:columns])
    with open_ledger(path) as ledger:
        found = sorted(ledger.connection.execute("SELECT * FROM used").fetchall())
        check(ledger.connection)
    # When their sessions began is not known of earlier entries.
    assert [row for row in found if row[0] != "session"] == [
        row for row in kept if row[0] != "session" and any(row[3:9])
    ]


PROGRAM = """
import sys
from pathlib import Path
from sm.plugins.cost.ledger import intake
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from tests.plugins.cost.lines import enter

intake.PIECE = 4000
path, transcript = map(Path, sys.argv[1:])
with open_ledger(path) as ledger:
    enter(ledger, transcript)
    price_pending(ledger)
"""


def count(connection: Connection) -> int:
    """How many entries there are, and how many of them have a price."""
    query = "SELECT count(*) + count(price) FROM requests"
    return int(connection.execute(query).fetchone()[0])


@pytest.mark.long_lived
def test_kills_between_an_entry_and_its_sum(tmp_path: Path) -> None:
    chance, path, transcript = dice(1), tmp_path / "sm" / "ledger.db", tmp_path / "s1.jsonl"
    add_lines(transcript, [write_answer(f"r{number // 3}") for number in range(3000)])
    argv = [sys.executable, "-c", PROGRAM, str(path), str(transcript)]
    with open_ledger(path):
        pass
    for _ in range(4):
        process = subprocess.Popen(argv)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            goal = count(connection) + chance.randrange(300)

            def grown(
                connection: Connection = connection,
                goal: int = goal,
                process: subprocess.Popen[bytes] = process,
            ) -> bool:
                return count(connection) >= goal or process.poll() is not None

            wait_for(grown, "some entries", 60)
        process.kill()
        assert process.wait() in (0, -signal.SIGKILL)
        with open_ledger(path) as ledger:
            check(ledger.connection)
    subprocess.run(argv, check=True, timeout=120)
    with open_ledger(path) as ledger:
        check(ledger.connection)
        query = "SELECT tokens, pending FROM used WHERE scope = 'issue'"
        assert ledger.connection.execute(query).fetchall() == [(1000 * 60, 0)]
