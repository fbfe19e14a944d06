"""Amounts as people write them in files and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.__main__ import run
from sm.plugins.cost.ledger.amount import Amount, AmountUnit, find_round, parse, show, spell

USD, TOKENS = AmountUnit.USD, AmountUnit.TOKENS


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("$10", Amount(USD, 10 * 10**9)),
        (" $0.50 ", Amount(USD, 5 * 10**8)),
        ("10.25 USD", Amount(USD, 10_250_000_000)),
        ("10USD", Amount(USD, 10 * 10**9)),
        ("$1k", Amount(USD, 10**12)),
        ("2M tokens", Amount(TOKENS, 2_000_000)),
        ("1.5M tokens", Amount(TOKENS, 1_500_000)),
        ("250ktokens", Amount(TOKENS, 250_000)),
        ("2_000_000 tokens", Amount(TOKENS, 2_000_000)),
        ("1 token", Amount(TOKENS, 1)),
    ],
)
def test_what_an_amount_means(text: str, amount: Amount) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        *("", "10", "2M", "10 EUR", "$", "$-1", "-1 USD", "$0", "0 tokens", "0.4 tokens"),
        *("$3 tokens", "2m tokens", "1e6 tokens", "$1,000", "١ USD", "$9999999999", "2M tokens a"),
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="Expected an amount such as"):
        parse(text)


def test_the_unit_of_a_limit_goes_without_saying() -> None:
    assert parse("10", USD) == parse("$10")
    assert parse("2M", TOKENS) == parse("2M tokens")
    assert parse("$2", TOKENS).unit is USD


@pytest.mark.parametrize(
    ("unit", "count", "shown"),
    [
        (USD, 8_200_000_000, "$8.20"),
        (USD, 4_200_000, "$0.0042"),
        (USD, 0, "$0.00"),
        (USD, -1_500_000_000, "-$1.50"),
        (TOKENS, 1, "1 token"),
        (TOKENS, 1_250_000, "1.2M tokens"),
    ],
)
def test_how_people_read_it(unit: AmountUnit, count: int, shown: str) -> None:
    assert show(unit, count) == shown


@pytest.mark.parametrize("value", ["10", "10 EUR", "[1]", "''", "true"])
def test_a_wrong_one_in_a_file_is_told_with_its_place(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"projects: []\nbudget:\n  day: {value}\n")
    assert run(["--config", str(file), "config", "show"]) == 2
    said = capsys.readouterr().err
    assert f"wrong value for 'budget.day' in '{file}' (line 3): expected an amount such" in said


def test_it_is_shown_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("projects: []\nbudget: {issue: $10, day: 20 USD, project: 2M tokens}\n")
    assert run(["--config", str(file), "config", "show"]) == 0
    shown = capsys.readouterr().out
    assert "issue: $10\n" in shown
    assert "day: 20 USD\n" in shown
    assert "project: 2M tokens\n" in shown


@pytest.mark.parametrize(
    ("unit", "count", "spelled"),
    [
        (USD, 5 * 10**9, "5"),
        (USD, 3 * 10**9, "5"),
        (USD, 24 * 10**8, "2.5"),
        (USD, 10**7, "0.01"),
        (USD, 1_100 * 10**9, "2000"),
        (TOKENS, 400_000, "500k"),
        (TOKENS, 2_400_000, "2.5M"),
        (TOKENS, 25_000_000, "25M"),
        (TOKENS, 0, "1"),
        (TOKENS, 3, "5"),
    ],
)
def test_an_amount_to_propose_is_round_and_can_be_typed(
    unit: AmountUnit, count: int, spelled: str
) -> None:
    rounded = find_round(count)
    assert spell(unit, rounded) == spelled
    assert parse(spelled, unit) == Amount(unit, rounded)
