"""How far a limit is used up, from sums and raises alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from sm.issues.rules.allowance import LimitStage
from sm.plugins.cost.budget.rules import (
    BudgetLimit,
    Expected,
    LimitUse,
    ModelUse,
    add_up,
    admit,
    estimate,
    expect,
    find_reserve,
    needs_prices,
    weigh,
)
from sm.plugins.cost.ledger.amount import Amount, AmountUnit
from sm.plugins.cost.ledger.scopes import Scope
from tests.acts.commands import read_act

DOLLAR = 10**9
MONEY = BudgetLimit(
    Scope.ISSUE,
    "shop#7",
    Amount(AmountUnit.USD, 10 * DOLLAR),
    words="for this issue",
    act=read_act("sm budget raise shop 7 AMOUNT"),
)
TOKENS = BudgetLimit(Scope.ISSUE, "shop#7", Amount(AmountUnit.TOKENS, 1000), words="for this issue")


@pytest.mark.parametrize(
    ("known", "largest", "stage"),
    [
        (0, 0, LimitStage.FREE),
        (799, 10, LimitStage.FREE),
        (800, 10, LimitStage.NEAR),
        (999, 10, LimitStage.NEAR),
        (1000, 10, LimitStage.OVER),
        (1049, 8, LimitStage.OVER),
        (1050, 8, LimitStage.SPENT),  # 5 %
        (1050, 100, LimitStage.OVER),  # at least a turn of six requests
        (1599, 100, LimitStage.OVER),
        (1600, 100, LimitStage.SPENT),
        (1999, 1999, LimitStage.OVER),  # and never more than the limit again
        (2000, 2000, LimitStage.SPENT),
    ],
)
def test_the_stages_of_a_limit(known: int, largest: int, stage: LimitStage) -> None:
    assert weigh(TOKENS, LimitUse(known=known, largest=largest)).stage is stage


def test_the_smallest_limit_has_a_reserve() -> None:
    smallest = structs.replace(TOKENS, amount=Amount(AmountUnit.TOKENS, 1))
    assert weigh(smallest, LimitUse(known=1)).stage is LimitStage.OVER


def test_the_reserve_of_a_limit_that_many_share() -> None:
    shared = structs.replace(TOKENS, sharers=3)
    assert find_reserve(shared, LimitUse(largest=1)) == 50
    assert find_reserve(shared, LimitUse(largest=10)) == 180
    assert find_reserve(structs.replace(TOKENS, sharers=100), LimitUse(largest=10)) == 200
    assert find_reserve(structs.replace(TOKENS, sharers=100), LimitUse(largest=100)) == 600


def test_it_says_what_is_used_of_what() -> None:
    found = weigh(MONEY, LimitUse(known=8_200_000_000))
    assert (found.shown, found.command) == (
        "$8.20 of $10.00 for this issue",
        "sm budget raise shop 7 AMOUNT",
    )
    guess = weigh(MONEY, LimitUse(known=8 * DOLLAR, bound=DOLLAR, unclear=2))
    assert guess.shown == "$9.00 of $10.00 for this issue (up to $1.00 of it is not known)"


def test_a_raise_makes_another_matter_and_more_requests_do_not() -> None:
    used = LimitUse(known=11 * DOLLAR)
    raised = structs.replace(MONEY, raised=5 * DOLLAR)
    assert weigh(MONEY, used).matter == weigh(MONEY, structs.replace(used, known=99)).matter
    assert weigh(raised, used).matter != weigh(MONEY, used).matter
    assert (weigh(MONEY, used).stage, weigh(raised, used).stage) == (
        LimitStage.SPENT,
        LimitStage.FREE,
    )
    lowered = structs.replace(MONEY, raised=-99 * DOLLAR)
    assert weigh(lowered, LimitUse()).stage is LimitStage.OVER


def test_a_day_ends_by_itself() -> None:
    assert weigh(structs.replace(MONEY, ends_at=5.0), LimitUse()).until == 5.0
    assert weigh(MONEY, LimitUse()).until is None


def test_a_request_of_which_nobody_knows_counts_as_the_largest_of_its_model() -> None:
    rows = [
        ModelUse("opus", tokens=500, largest_tokens=100, unclear=2),
        ModelUse("haiku", tokens=20, largest_tokens=5, unclear=1),
        ModelUse("new", unclear=1),
    ]
    used = add_up(rows, TOKENS)
    assert (used.known, used.bound, used.at_most) == (520, 2 * 100 + 5 + 100, 825)
    allowed = add_up(rows, structs.replace(TOKENS, allows_unknown=True))
    assert (allowed.at_most, allowed.unclear) == (520, 0)
    assert add_up([ModelUse("opus", unclear=3)], TOKENS).at_most == 0  # the first ones of all


def test_of_many_that_many_sessions_share_one_counts_as_the_largest() -> None:
    day = structs.replace(TOKENS, scope=Scope.DAY)
    rows = [ModelUse("opus", known=10, tokens=500, largest_tokens=100, unclear=5)]
    assert (add_up(rows, TOKENS).bound, add_up(rows, day).bound) == (5 * 100, 100 + 4 * 50)
    priced = [ModelUse("opus", known=4, unpriced=1, pending=1, price=6, largest_price=5, unclear=2)]
    money = structs.replace(MONEY, scope=Scope.PROJECT)
    assert (add_up(priced, MONEY).bound, add_up(priced, money).bound) == (3 * 5, 5 + 2 * 3)
    only = [ModelUse("opus", known=1, unpriced=1, unclear=2)]
    assert add_up(only, money).bound == 0


def test_what_has_no_price_is_over_a_limit_in_money_alone() -> None:
    rows = [ModelUse("made-up", tokens=10, unpriced=1), ModelUse("opus", price=5, tokens=1)]
    assert weigh(MONEY, add_up(rows, MONEY)).stage is LimitStage.OVER
    assert "1 request without a known price" in weigh(MONEY, add_up(rows, MONEY)).shown
    assert weigh(TOKENS, add_up(rows, TOKENS)).stage is LimitStage.FREE
    allowing = structs.replace(MONEY, allows_unknown=True)
    assert weigh(allowing, add_up(rows, allowing)).stage is LimitStage.FREE


def test_what_was_not_looked_up_yet_counts_as_the_largest() -> None:
    rows = [ModelUse("opus", tokens=10, price=DOLLAR, largest_price=DOLLAR, pending=3)]
    assert add_up(rows, MONEY).at_most == 4 * DOLLAR
    assert add_up(rows, TOKENS).at_most == 10


@pytest.mark.parametrize(
    ("stage", "used", "since_s", "needed"),
    [
        (LimitStage.FREE, LimitUse(), 99.0, False),
        (LimitStage.SPENT, LimitUse(), 99.0, False),
        (LimitStage.FREE, LimitUse(pending=1), 1.0, False),
        (LimitStage.FREE, LimitUse(pending=1), 5.0, True),
        (LimitStage.FREE, LimitUse(pending=1), -1.0, True),  # the clock was set back
        (LimitStage.NEAR, LimitUse(pending=1), 1.0, True),
        (LimitStage.FREE, LimitUse(pending=1, is_bounded=False), 1.0, True),
    ],
)
def test_when_prices_are_looked_up(
    stage: LimitStage, used: LimitUse, since_s: float, needed: bool
) -> None:
    assert needs_prices(stage, used, since_s) is needed


def test_one_of_another_model_is_no_bound() -> None:
    rows = [ModelUse("haiku", price=1, largest_price=1), ModelUse("opus", tokens=10, pending=1)]
    assert not add_up(rows, MONEY).is_bounded


@pytest.mark.parametrize(
    ("past", "told", "at_most", "expected"),
    [
        ((), None, 0, 0),
        ((), None, 10, 10),
        ((), 3, 10, 3),
        ((1, 2, 9, 9), 3, 10, 3),
        ((1, 2, 9, 9), None, 10, 5),
        ((7,), None, 10, 7),
        ((1, 2, 4, 9, 9), 3, 10, 4),
        ((9, 1, 2, 9, 4, 5), 3, 10, 4),
    ],
)
def test_what_an_issue_is_expected_to_use(
    past: Sequence[int], told: int | None, at_most: int, expected: int
) -> None:
    assert estimate(past, told, at_most) == expected


def test_an_issue_begins_only_where_it_still_fits() -> None:
    def ask(known: int, expected: Expected) -> LimitStage | None:
        found = admit(TOKENS, LimitUse(known=known), expected)
        return found.stage if found else None

    assert ask(0, Expected(1000)) is None
    assert ask(0, Expected(1001)) is LimitStage.HELD
    assert ask(600, Expected(300)) is None
    assert ask(600, Expected(300, for_open=101)) is LimitStage.HELD
    assert ask(600, Expected(0, for_open=400)) is LimitStage.HELD  # all is spoken for
    assert ask(999, Expected(0)) is None  # nobody has told what an issue uses
    assert ask(1000, Expected(0)) is LimitStage.OVER
    found = admit(TOKENS, LimitUse(known=600), Expected(300, for_open=200))
    assert found
    assert found.shown == (
        "no room for an issue of about 300 tokens: 600 tokens of 1.0k tokens for this issue, "
        "200 tokens for open issues"
    )


def test_twenty_that_begin_at_once_do_not_overrun() -> None:
    begun, used, each = 0, 100, 90
    while begun < 20:
        expected = expect(each, [(each, 0)] * begun)
        if admit(TOKENS, LimitUse(known=used), expected):
            break
        begun += 1
    assert begun == 10  # 100 + 10 × 90
    # What one has used is no longer expected of it; one that has used more takes its part.
    assert expect(each, [(each, 30), (each, 500)]) == Expected(each, 60)
