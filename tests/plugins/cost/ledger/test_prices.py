"""Prices are those of the providers' pages that were read, and say when that was."""

from __future__ import annotations

import datetime
import time

import pytest

from sm.plugins.cost.display import make_price_table
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.prices import (
    LISTED,
    OLD,
    READ,
    ListedPrice,
    PriceProof,
    Rates,
    find_price,
    find_proof,
    find_rates,
    list_notes,
    list_prices,
)

NAMES = Rates.__struct_fields__


@pytest.mark.parametrize("listed", LISTED, ids=lambda one: one.model)
def test_the_library_has_the_price_of_the_page_that_was_read(listed: ListedPrice) -> None:
    found = find_rates(listed.model, time.time())
    assert found
    for name in NAMES:
        rate = getattr(listed.rates, name)
        assert rate is None or getattr(found, name) == rate, name


def price(model: str, **counts: int) -> float:
    found = find_price(model, 1795867200.0, dict.fromkeys(COUNTS, 0) | counts)
    assert found is not None
    return found / 10**9


def test_what_is_computed_in_the_united_states_costs_a_tenth_more() -> None:
    """Its tokens of each kind do, and fees of searches do not."""
    tokens = dict.fromkeys(("input", "output", "cache_read", "cache_write_1h"), 10**6)
    usual = price("claude-opus-5-5", **tokens)
    assert usual == pytest.approx(4 + 20 + 0.2 + 8)
    assert price("claude-opus-5-5 [us]", **tokens) == pytest.approx(1.1 * usual)
    assert price("claude-opus-5-5[1m] [us]", **tokens) == pytest.approx(1.1 * usual)
    assert price("claude-opus-5-5 [us]", searches=3) == pytest.approx(0.03)


def test_fast_mode_has_a_price_where_the_provider_lists_one() -> None:
    assert price("claude-opus-5-5 [fast]", input=10**6) == pytest.approx(8)
    assert price("claude-opus-5-5 [fast] [us]", input=10**6, searches=1) == pytest.approx(8.81)
    counts = dict.fromkeys(COUNTS, 0) | {"input": 1}
    assert find_price("claude-opus-4-5 [fast]", 1795867200.0, counts) is None
    assert find_price("claude-opus-5-5", 1795867200.0, counts | {"output": 10**13}) is None


@pytest.mark.parametrize(
    ("model", "read", "unproven"),
    [
        ("claude-opus-5-5", READ, ()),
        ("claude-opus-5-5[1m] [us]", READ, ()),
        ("claude-opus-4-5-20251101", READ, ()),
        ("claude-sonnet-5-5", READ, ("cache_read", "cache_write_5m", "cache_write_1h")),
        ("claude-opus-5-5 [fast]", None, NAMES),
        ("claude-opus-5-55", None, NAMES),
        ("gpt-5.3-codex", None, NAMES),
    ],
)
def test_it_is_known_when_a_price_was_read_and_what_was_not(
    model: str, read: datetime.date | None, unproven: tuple[str, ...]
) -> None:
    found = find_proof(model)
    assert (found.read, found.unproven) == (read, unproven)
    assert bool(found.source) == bool(read)


def test_a_price_that_is_older_than_ninety_days_is_said() -> None:
    models = ["claude-opus-5-5", "made-up", ""]
    assert list(list_notes(models, READ + OLD)) == []
    [note] = list_notes(models, READ + OLD + datetime.timedelta(days=1))
    assert note == "the price of claude-opus-5-5 was read on 2026-11-29: it may have changed since"
    assert not PriceProof().is_old(datetime.date.max)


def test_prices_are_shown_with_their_pages_and_what_is_unproven() -> None:
    header, opus, sonnet, other, unknown = make_price_table(
        list_prices(["claude-opus-5-5", "claude-sonnet-5-5", "gpt-5.3-codex", "made-up"])
    )
    assert header.split()[:3] == ["Model", "Input", "Output"]
    assert opus.split()[1:] == [
        *("$4", "$20", "$0.2", "$5", "$8", "2026-11-29"),
        "https://platform.claude.com/docs/en/models/opus-5-5/overview",
    ]
    assert sonnet.split()[1:6] == ["$2", "$10", "$0.1?", "$2.5?", "$4?"]
    assert other.split()[1] == "$1.75?"
    assert other.split()[6:8] == ["unproven", "genai-prices"]
    assert unknown.split()[1:7] == [*["unknown"] * 5, "unproven"]
    assert [one.model for one in list_prices([])] == [one.model for one in LISTED]
