"""What an issue has cost stands beside it, in its story, and in JSON."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.cli.status import draw_status
from sm.plugins.cost.ledger import database
from sm.plugins.cost.ledger.entries import EntryOwner, open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.report import FIGURES
from sm.plugins.cost.settings import find_ledger
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.paths import Root
from sm.views.figures import Subject
from sm.views.project import read_overview
from tests.helpers import make_repository, open_project, put_session, sm_yaml
from tests.plugins.cost.ledger.test_entries import check_sums
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer

Out = pytest.CaptureFixture[str]


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


def spend(project: Project, folder: Path) -> None:
    """Issues: known whole, with gaps, of a subscription, without a price, without a request."""
    begun = {"type": "api-request", "timestamp": write_answer("")["timestamp"], "id": "b1"}
    lines = {
        1: [write_answer("r1", output=100_000), write_answer("r2", output=9_000, isSidechain=True)],
        2: [write_answer("r3", output=100_000, stop=None)],
        3: [write_answer("r4", output=100_000)],
        4: [write_answer("r5", output=1_234_000, model="made-up"), begun],
    }
    for issue in (*lines, 5):
        put_session(project, issue)
    with open_ledger(find_ledger(project.config)) as ledger:
        for issue, said in lines.items():
            path = add_lines(folder / f"{issue}.jsonl", said)
            owner = structs.replace(OWNER, project=project.name, issue=issue)
            owner = structs.replace(owner, session=f"dev-harb-{issue}", is_on_plan=issue == 3)
            enter(ledger, path, owner)
        price_pending(ledger)


def test_a_column_has_what_each_issue_has_cost(
    project: Project, tmp_path: Path, capsys: Out
) -> None:
    spend(project, tmp_path)
    assert run(["status", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)[0]["sessions"]
    shown = [row["figures"]["cost"]["shown"] if row["figures"] else "" for row in rows]
    assert shown == ["$2.73", "≥$2.50", "≈$2.50", "≥1.2M tok", ""]
    values = rows[0]["figures"]["cost"]["values"]
    assert (values["requests"], values["tokens"]["output"]) == (2, 109_000)
    assert run(["cost", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == values
    assert run(["status"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()[1:]
    assert header.index("COST") == first.index("$2.73")


def test_where_there_is_no_ledger_none_is_made(project: Project, capsys: Out) -> None:
    put_session(project, 1)
    journal.record(project.root.journal, events.Started(session="dev-harb-1"))
    for words in (("status",), ("trace", "1")):
        assert run([*words, "--json"]) == 0
    assert "cost" not in capsys.readouterr().out
    assert not find_ledger(project.config).exists()


def test_a_session_without_an_issue_has_its_own(project: Project, tmp_path: Path) -> None:
    spend(project, tmp_path)
    with open_ledger(find_ledger(project.config)) as ledger:
        enter(
            ledger,
            add_lines(tmp_path / "ann.jsonl", [write_answer("r9")]),
            EntryOwner(session="s-1"),
        )
    [(name, found)] = FIGURES.read(
        project.config, [Subject(session="s-1", project="", issue=0)]
    ).items()
    assert (name, found.shown) == ("s-1", "60 tok")


def test_it_is_there_in_a_narrow_terminal_and_not_without_figures(
    project: Project, tmp_path: Path, capsys: Out
) -> None:
    from rich.console import Console

    def draw(width: int) -> str:
        console = Console(width=width, force_terminal=False)
        console.print(draw_status([read_overview(project, time.time())], width))
        return capsys.readouterr().out

    put_session(project, 1)
    assert "Cost" not in draw(80)
    spend(project, tmp_path)
    for width in (80, 200):
        assert "Cost" in draw(width)
        assert "≈$2.50" in draw(width)
    assert "Cost" not in draw(36), "there it would leave no room for words"


def test_a_story_says_it_by_kind_of_agent(project: Project, tmp_path: Path, capsys: Out) -> None:
    spend(project, tmp_path)
    for issue in (1, 4, 5):
        journal.record(project.root.journal, events.Started(session=f"dev-harb-{issue}"))
    assert run(["trace", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "cost: $2.73 for 109.1k tokens in 2 requests (main agent $2.50, subagents $0.23)"
    )
    assert run(["trace", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "cost: ≥1.2M tokens in 2 requests"
    assert run(["trace", "5"]) == 0
    assert "cost" not in capsys.readouterr().out
    assert run(["trace", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"][0].startswith("cost: $2.73")


def test_a_ledger_that_cannot_be_read_is_named_and_all_else_is_shown(
    project: Project, capsys: Out
) -> None:
    put_session(project, 1)
    path = find_ledger(project.config)
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"x" * 9000)
    path.chmod(0o600)
    assert run(["status", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)[0]
    assert [row["issue"] for row in seen["sessions"]] == [1]
    assert f"plugin 'cost' has no figures: '{path}' is damaged" in seen["problems"][0]


def test_the_sums_of_an_older_ledger_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch(0o600)
    row = "('r1', 1.0, '1970-01-01', 'shop', 7, 'dev-shop-7', 1, 's1', 'main', 'claude', 'm', 0, "
    row += "10, 20, 30, 0, 0, 0, 0, 'transcript', '', 5, 'USD', 'p')"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in (
            *database.FIRST,
            f"INSERT INTO requests VALUES {row}",
            f"PRAGMA application_id = {database.APPLICATION}",
            "PRAGMA user_version = 1",
        ):
            connection.execute(statement)
        connection.commit()
    with open_ledger(path) as ledger:
        check_sums(ledger)
        enter(ledger, add_lines(tmp_path / "t.jsonl", [write_answer("r3")]))
        check_sums(ledger)
        found = ledger.connection.execute("SELECT session, sum(requests) FROM sums").fetchall()
        assert found == [("dev-shop-7", 2)]
