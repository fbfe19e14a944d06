"""What `sm cost` shows, and what it says of what nobody knows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.config.schema import Config
from sm.plugins.cost.checks import check_ledger
from sm.plugins.cost.display import make_table
from sm.plugins.cost.ledger.client_prices import ByClient
from sm.plugins.cost.ledger.entries import EntryOwner, ReadMark, RecordFile, name_day, open_ledger
from sm.plugins.cost.ledger.prices import name_source, price_pending
from sm.plugins.cost.ledger.records.record import (
    AgentKind,
    ClientAccount,
    ClientFigure,
    LedgerEntry,
    Tokens,
)
from sm.plugins.cost.ledger.sums import Sum, SumGroup
from sm.store.paths import Root
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer

Out = pytest.CaptureFixture[str]
AT, WHOLE = 1795866852.0, Tokens(output=1000)


@pytest.fixture
def path(sealed: Path, root: Root) -> Path:
    assert root
    return sealed / ".local" / "share" / "sm" / "ledger.db"


def fill(path: Path, folder: Path) -> Path:
    """Three issues: one is known whole, one with gaps, one without a price; and one other session.

    Returns the transcript of the first.
    """
    begun = {"type": "api-request", "timestamp": "2026-11-27T10:00:00Z", "id": "b1"}
    whole = [write_answer("r1", output=1_234_567), write_answer("r2", isSidechain=True)]
    gaps = [write_answer("r3", stop=None, at="2026-11-27T10:00:00Z"), begun]
    files = {
        "one": (whole, OWNER),
        "two": (gaps, structs.replace(OWNER, issue=8)),
        "three": ([write_answer("r4", model="made-up")], structs.replace(OWNER, issue=9)),
        "four": ([write_answer("r5")], EntryOwner(session="s-1", client="claude", is_on_plan=True)),
    }
    with open_ledger(path) as ledger:
        for name, (lines, owner) in files.items():
            enter(ledger, add_lines(folder / f"{name}.jsonl", lines), owner)
        price_pending(ledger)
    return folder / "one.jsonl"


def test_a_table_of_issues_with_what_is_missing(path: Path, tmp_path: Path, capsys: Out) -> None:
    fill(path, tmp_path)
    assert run(["cost"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "Issue     Requests  Input  Cache read  Cache written  Output      Cost",
        "no issue         1     10          30              0      20  ≈$0.0006",
        "shop#7           2     20          60              0    1.2M    $30.86",
        "shop#8           2    ≥10         ≥30             ≥0     ≥20  ≥$0.0006",
        "shop#9           1     10          30              0      20   unknown",
        "Total            6    ≥50        ≥150             ≥0   ≥1.2M  ≈≥$30.87",
    ]
    assert shown.err.splitlines() == [
        "≥: what 1 request used is in no record (docs/COST.md)",
        "≥: the answer to 1 request was cut off",
        "≥: 1 request without a known price cost more",
        "≈: list price of what a subscription has paid for",
    ]


def test_other_sums_and_other_programs(path: Path, tmp_path: Path, capsys: Out) -> None:
    fill(path, tmp_path)

    def read(*arguments: str) -> list[dict[str, object]]:
        assert run(["cost", "--json", *arguments]) == 0
        found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
        return found

    assert [one["name"] for one in read("--by", "day")] == [
        name_day(1795773600.0),
        name_day(1795866852.0),
    ]
    assert {one["name"]: one["requests"] for one in read("--by", "agent")} == {
        "main": 4,
        "subagent": 1,
    }
    assert [one["issue"] for one in read("--project", "shop", "--since", name_day(1795866852))] == [
        *(7, 9)
    ]
    assert read("--since", "1h") == []
    assert run(["cost", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[1]["output"] == "1234587"
    assert (rows[2]["unknown"], rows[2]["at_least"]) == ("1", "1")


def account(
    path: Path,
    folder: Path,
    context: str,
    models: dict[str, ClientFigure],
    owner: EntryOwner,
    *extra: LedgerEntry,
) -> None:
    """A context that has ended: an answer of 1,000 tokens by each model, and what is said of it."""
    entries = [
        LedgerEntry(
            key=f"{context}-{model}",
            at=AT + number,
            context=context,
            agent=AgentKind.SUBAGENT if number else AgentKind.MAIN,
            model=model,
            tokens=WHOLE,
        )
        for number, model in enumerate(models)
    ]
    said = ClientAccount(context=context, at=AT + 60, begun=AT - 60, models=models)
    with open_ledger(path) as ledger:
        file = RecordFile(folder / f"{context}.jsonl", "claude", owner, ReadMark())
        ledger.enter(file, ReadMark(9), [*entries, *extra, said])
        price_pending(ledger)


def test_what_the_client_says_itself_stands_beside_it(
    path: Path, tmp_path: Path, capsys: Out
) -> None:
    """It says all of #7, nothing of one request of #8; of #9 it knows another number of tokens."""
    opus, whole = "claude-opus-4-5", WHOLE
    eight, nine = structs.replace(OWNER, issue=8), structs.replace(OWNER, issue=9)
    account(
        path,
        tmp_path,
        "a",
        {opus: ClientFigure(whole, 0.03), "own": ClientFigure(whole, 0.5)},
        OWNER,
    )
    later = LedgerEntry(key="b2", at=AT + 90, context="b", model=opus, tokens=whole)
    account(path, tmp_path, "b", {opus: ClientFigure(whole, 0.02)}, eight, later)
    cut = LedgerEntry(key="c2", at=AT, context="c", model=opus, tokens=whole)
    account(path, tmp_path, "c", {opus: ClientFigure(whole, 9.0)}, nine, cut)
    assert run(["cost"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "Issue   Requests  Input  Cache read  Cache written  Output    Cost  Client",
        "shop#7         2      0           0              0    2.0k  ≥$0.03   $0.53",
        "shop#8         2      0           0              0    2.0k   $0.05  ≥$0.02",
        "shop#9         2      0           0              0    2.0k   $0.05",
        "Total          6      0           0              0    6.0k  ≥$0.12  ≥$0.55",
    ]
    assert shown.err.splitlines()[-1] == (
        "Client: its own figure, for 3 of 6 requests: $0.05 where list prices make $0.05"
    )

    def read(*arguments: str) -> list[dict[str, float] | None]:
        assert run(["cost", "--json", *arguments]) == 0
        return [one.get("by_client") for one in json.loads(capsys.readouterr().out)]

    seven = {"requests": 2, "price": 0.53, "compared": 0.03, "ours": 0.025}
    assert read() == [
        seven,
        {"requests": 1, "price": 0.02, "compared": 0.02, "ours": 0.025},
        None,
    ]
    of_opus, of_own = (
        {"requests": 2, "price": 0.05, "compared": 0.05, "ours": 0.05},
        {"requests": 1, "price": 0.5, "compared": 0.0, "ours": 0.0},
    )
    assert read("--by", "model") == [of_opus, of_own]
    assert read("--by", "agent") == [of_opus, of_own], "each model was asked by one kind of agent"
    assert read("--since", name_day(AT + 86400)) == []
    assert run(["cost", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (rows[0]["client_price"], rows[0]["client_ours"]) == ("0.530000000", "0.025000000")
    assert rows[2]["client_price"] == ""


def test_it_is_compared_anew_once_more_is_known(path: Path, tmp_path: Path, capsys: Out) -> None:
    opus = "claude-opus-4-5"

    def read() -> object:
        assert run(["cost", "--json"]) == 0
        return json.loads(capsys.readouterr().out)[0].get("by_client")

    account(path, tmp_path, "a", {opus: ClientFigure(Tokens(output=3000), 0.07)}, OWNER)
    assert read() is None
    late = LedgerEntry(key="late", at=AT, context="a", model=opus, tokens=Tokens(output=2000))
    file = RecordFile(tmp_path / "a.jsonl", "claude", OWNER, ReadMark())
    with open_ledger(path) as ledger:
        ledger.enter(file, ReadMark(10), [late])
    assert read() == {"requests": 2, "price": 0.07, "compared": 0.07, "ours": 0.075}
    with open_ledger(path) as ledger:
        ledger.connection.execute("DELETE FROM requests WHERE key = 'late'")
    assert read() is None


def test_what_two_issues_or_kinds_of_one_model_share_is_said_of_neither(
    path: Path, tmp_path: Path, capsys: Out
) -> None:
    """A fast request beside a usual one has another price."""
    opus, dated = "claude-opus-4-5", "claude-opus-4-5-20251101"
    both = ClientFigure(Tokens(output=2000), 0.05)
    account(path, tmp_path, "a", {opus: both}, OWNER)
    of_eight = LedgerEntry(key="other", at=AT, context="a", model=opus, tokens=WHOLE)
    other = RecordFile(tmp_path / "b.jsonl", "claude", structs.replace(OWNER, issue=8), ReadMark())
    with open_ledger(path) as ledger:
        ledger.enter(other, ReadMark(9), [of_eight])
    account(
        path,
        tmp_path,
        "c",
        {opus: ClientFigure(WHOLE, 0.03), dated: ClientFigure(WHOLE, 0.03)},
        OWNER,
    )
    assert run(["cost", "--json"]) == 0
    assert all("by_client" not in one for one in json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("by", ["day", "agent"])
def test_what_is_of_several_is_in_no_sum_of_one(
    path: Path, tmp_path: Path, capsys: Out, by: str
) -> None:
    opus = "claude-opus-4-5"
    figure = ClientFigure(Tokens(output=2000), 0.05)
    other = LedgerEntry(
        key="other", at=AT - 86400, context="a", agent=AgentKind.SUBAGENT, model=opus, tokens=WHOLE
    )
    account(path, tmp_path, "a", {opus: figure}, OWNER, other)
    with open_ledger(path) as ledger:
        said = ClientAccount(context="a", at=AT + 61, begun=AT - 90_000, models={opus: figure})
        ledger.enter(RecordFile(tmp_path / "a", "claude", OWNER, ReadMark()), ReadMark(9), [said])
    assert run(["cost", "--json", "--by", by]) == 0
    assert all("by_client" not in one for one in json.loads(capsys.readouterr().out))
    assert run(["cost", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["by_client"]["price"] == 0.05


def test_in_a_narrow_terminal_it_goes_before_names_are_cut() -> None:
    said = ByClient(requests=2, price=0.5, compared=0.5, ours=0.5)
    sums = [Sum("shop", issue=7, requests=2, price=0.5, by_client=said)]
    for width, is_there in ((None, True), (80, True), (60, False)):
        table = make_table(SumGroup.ISSUE, sums, width)
        header, line = table.lines
        assert ("Client" in header) == is_there
        assert any(note.startswith("Client") for note in table.notes) == is_there
        assert line.startswith("shop#7 ")


def test_what_was_written_since_is_read_first(path: Path, tmp_path: Path, capsys: Out) -> None:
    add_lines(fill(path, tmp_path), [write_answer("r9", output=1_000_000)])
    assert run(["cost", "--json", "--project", "shop"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tokens"]["output"] == 2_234_587


@pytest.mark.usefixtures("path")
def test_without_a_ledger_nothing_is_known_and_none_is_made(path: Path, capsys: Out) -> None:
    assert run(["cost"]) == 0
    assert capsys.readouterr().err == "no requests are known\n"
    assert not path.exists()


def test_a_damaged_ledger_is_told_of(path: Path, capsys: Out) -> None:
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"x" * 9000)
    path.chmod(0o600)
    assert run(["cost"]) != 0
    assert f"'{path}' is damaged" in capsys.readouterr().err


@pytest.mark.usefixtures("path")
def test_a_day_that_is_none_is_refused(capsys: Out) -> None:
    assert run(["cost", "--since", "soon"]) == 2
    assert "expected a day until today such as" in capsys.readouterr().err


def test_it_is_found_and_kept_when_sm_goes(path: Path, tmp_path: Path, capsys: Out) -> None:
    fill(path, tmp_path)
    assert run(["uninstall", "--dry-run"]) == 0
    assert f"what agents have used: {path}" in capsys.readouterr().out


def test_the_doctor_names_the_ledger_and_the_prices(path: Path, root: Root, tmp_path: Path) -> None:
    config = Config(state_root=root.path, projects=(), source=tmp_path)
    assert next(one.what for one in check_ledger(config)).startswith(f"'{path}' is made with")
    fill(path, tmp_path)
    found = [(one.level, one.what) for one in check_ledger(config)]
    assert found == [
        ("ok", f"what agents use is in '{path}'"),
        ("ok", f"prices: {name_source()}"),
    ]


def test_nothing_that_a_transcript_says_reaches_the_terminal_as_it_is(
    path: Path, tmp_path: Path, capsys: Out
) -> None:
    with open_ledger(path) as ledger:
        lines = [write_answer("r1", model="\x1b]0;owned\x07=1+1")]
        enter(ledger, add_lines(tmp_path / "t.jsonl", lines))
    for arguments in ((), ("--csv",), ("--json",)):
        assert run(["cost", "--by", "model", *arguments]) == 0
        assert "\x1b" not in (shown := capsys.readouterr().out)
        assert "=1+1" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("--since", "2026-02-30"),
        ("--since", "2026-13-01"),
        ("--since", "2999-01-01"),
        ("--since", "9999999999999d"),
        ("-p", "shpo"),
    ],
    ids="-".join,
)
def test_a_wrong_day_or_project_is_an_error_and_no_empty_answer(
    path: Path, tmp_path: Path, capsys: Out, words: tuple[str, ...]
) -> None:
    fill(path, tmp_path)
    for more in ((), ("--json",), ("--csv",), ("--prices",)):
        assert run(["cost", *words, *more]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert words[1] in shown.err
    assert run(["cost", "-p", "shop", "--json"]) == 0


def test_the_prices_of_what_was_used_are_shown(path: Path, tmp_path: Path, capsys: Out) -> None:
    fill(path, tmp_path)
    assert run(["cost", "--prices", "--json"]) == 0
    found = {one["model"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(found) == {"claude-opus-4-5", "made-up"}
    assert found["claude-opus-4-5"]["rates"]["output"] == 25
    assert found["claude-opus-4-5"]["read"] == "2026-11-29"
    assert found["made-up"]["rates"] is None
    assert run(["cost", "--prices"]) == 0
    assert "2026-11-29" in capsys.readouterr().out
