"""Rules of budgets: from limits, sums and raises, how far a limit is used up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sm.base.act import Act
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.plugins.cost.ledger.amount import LARGEST, Amount, AmountUnit, show, show_requests
from sm.plugins.cost.ledger.scopes import Scope

NEAR = 80
"""Percent of a limit at which the agent is told."""
RESERVE, SHARED_RESERVE = 5, 20
"""Percent of a limit that a handoff may take beyond it, and those of many sessions together."""
TURN = 6
"""Requests as large as the largest so far that the reserve has room for at least: those until the
turn ends that broke the limit, what is not known of the last one, and two that write the handoff.
With Claude Code one or two were measured until then (tests/real/test_budget.py)."""
ENOUGH = 5
"""Issues that are over, after which their median is what the next one is expected to use."""
PRICES_S = 5.0
"""Prices are looked up so often at least, if any request waits for one."""


Name = Annotated[str, Meta(max_length=300)]
Words = Annotated[str, Meta(max_length=300)]
Number = Annotated[int, Meta(ge=0, le=1 << 53)]


class ModelUse(Struct, frozen=True):
    """Use of the requests to one model together, as `scopes.py` tells."""

    model: str
    known: int = 0
    tokens: int = 0
    price: int = 0
    unclear: int = 0
    pending: int = 0
    unpriced: int = 0
    largest_tokens: int = 0
    largest_price: int = 0


ADDED = ("known", "tokens", "price", "unclear", "pending", "unpriced")
SIZES = ("largest_tokens", "largest_price")


def merge(rows: Iterable[ModelUse], less: Iterable[ModelUse] = ()) -> list[ModelUse]:
    """Return one row for each model; `less` is taken away, but for what is the largest."""
    found: dict[str, ModelUse] = {}
    for sign, each in ((1, rows), (-1, less)):
        for row in each:
            known = found.get(row.model, ModelUse(row.model))
            sums = {name: getattr(known, name) + sign * getattr(row, name) for name in ADDED}
            sizes = {name: max(getattr(known, name), getattr(row, name)) for name in SIZES}
            found[row.model] = ModelUse(row.model, **sums, **sizes)
    return list(found.values())


class LimitUse(Struct, frozen=True):
    """Use of a limit's requests, in its unit.

    `bound` is what those may have used at most of which nobody knows it; they are `unclear`.
    Of money, `unpriced` requests have no known price, and those that are `pending` were not looked
    up yet. `largest` is the largest request; `is_bounded` says that one of each model is known.
    """

    known: int = 0
    bound: int = 0
    unclear: int = 0
    unpriced: int = 0
    pending: int = 0
    largest: int = 0
    is_bounded: bool = True

    @property
    def at_most(self) -> int:
        """The whole use, if each request of which nobody knows it was as large as any."""
        return self.known + self.bound


class BudgetLimit(Struct, frozen=True):
    """A limit that somebody has set, and what it was raised by since.

    Its sums have that name; those of days go on to `last_name`, as clocks may have been set back.
    `words` say what it is for; `act` is what raises it. `ends_at` is when it begins anew, in
    seconds since 1970. `sharers` are the sessions that may write a handoff from its reserve.
    If it `allows_unknown`, what nobody knows does not count. One that another installation has set
    for its sessions here `is_told`: its `elsewhere` is what was used of it on other machines. What
    was used of one that `is_placed` only the machine of its session knows.
    """

    scope: Scope
    name: str
    amount: Amount
    last_name: str = ""
    raised: int = 0
    words: str = ""
    act: Act | None = None
    ends_at: float | None = None
    sharers: int = 1
    allows_unknown: bool = False
    is_told: bool = False
    is_placed: bool = False
    elsewhere: tuple[ModelUse, ...] = ()

    @property
    def height(self) -> int:
        """The amount that may be used."""
        return max(0, self.amount.count + self.raised)

    @property
    def is_shared(self) -> bool:
        """Whether many sessions use it together."""
        return self.scope not in (Scope.ISSUE, Scope.SESSION)

    @property
    def key(self) -> str:
        """A key that stays as long as it is this limit at this height."""
        return f"budget:{self.scope}:{self.name}:{self.amount.unit}:{self.height}"


class SumSpan(Struct, frozen=True, array_like=True):
    """Sums that a limit looks at: those of a scope, by their names."""

    scope: Scope
    first: Name
    last: Name


OF_SESSION = SumSpan(Scope.SESSION, "", "")
"""The sums of whichever session it is about; only its node knows their name."""


class RemoteLimit(Struct, frozen=True):
    """A limit of another installation for its sessions on this node, as it is told.

    Of its `height` that installation knows that `rows` were used, everywhere. In them is what the
    node's ledger had in the `span` when it answered last, `heard`; what is in its span beyond that
    is not. `project` '' is any, `issue` 0 any. Of a day, `rows` are void when it `ends_at`.
    `command` raises it, `named` are the words in it that name the limit; '' from an older sm.
    """

    span: SumSpan
    project: Name
    issue: Number
    unit: AmountUnit
    height: Annotated[int, Meta(ge=0, lt=LARGEST)]
    words: Words
    command: Words
    ends_at: float | None = None
    allows_unknown: bool = False
    rows: tuple[ModelUse, ...] = ()
    heard: tuple[ModelUse, ...] = ()
    named: Words = ""


def add_up(rows: Iterable[ModelUse], limit: BudgetLimit) -> LimitUse:
    """Add up what the requests have used, in the unit of a limit.

    A request of which nobody knows what it has used counts as the largest of the same limit and
    model, else of any model. So does one whose price was not looked up yet. None of them counts if
    there is no other yet: the first answer corrects that. Of a limit that many sessions share only
    one counts like that, and each further one as the average: there are many in time, and most are
    failed tries that cost nothing.
    """
    found, is_money = merge(rows), limit.amount.unit is AmountUnit.USD
    sizes = {one.model: _find_sizes(one, is_money=is_money) for one in found}
    any_size = max(sizes.values(), default=NOTHING)
    bound, unclear = 0, 0
    for one in found:
        count = one.unclear + (one.pending if is_money else 0)
        size = sizes[one.model] if sizes[one.model].largest else any_size
        bound += _bound(count, size, limit)
        unclear += count
    counts_unknown = not limit.allows_unknown
    return LimitUse(
        known=sum(one.price if is_money else one.tokens for one in found),
        bound=bound if counts_unknown else 0,
        unclear=unclear if counts_unknown else 0,
        unpriced=sum(one.unpriced for one in found) if counts_unknown and is_money else 0,
        pending=sum(one.pending for one in found) if is_money else 0,
        largest=any_size.largest,
        is_bounded=all(sizes[one.model].largest for one in found if one.pending),
    )


class RequestSize(NamedTuple):
    """Size of the requests to a model: the largest, and the average."""

    largest: int
    average: int


NOTHING = RequestSize(0, 0)


def _find_sizes(row: ModelUse, *, is_money: bool) -> RequestSize:
    if is_money:
        priced = row.known - row.pending - row.unpriced
        return RequestSize(row.largest_price, row.price // priced if priced > 0 else 0)
    return RequestSize(row.largest_tokens, row.tokens // row.known if row.known else 0)


def _bound(count: int, size: RequestSize, limit: BudgetLimit) -> int:
    """Return what requests may have used of which nobody knows."""
    if not count:
        return 0
    return size.largest + (count - 1) * (size.average if limit.is_shared else size.largest)


def weigh(limit: BudgetLimit, used: LimitUse) -> Allowance:
    """Weigh how far the limit is used up."""
    if used.unpriced:
        return Allowance(
            LimitStage.OVER,
            f"{limit.key}:unpriced",
            f"{show_requests(used.unpriced)} without a known price {limit.words}, whose limit "
            "is in money: set it in tokens, or budget.unknown to allow",
            until=limit.ends_at,
        )
    return Allowance(
        _find_stage(limit, used),
        limit.key,
        describe(limit, used),
        until=limit.ends_at,
        act=limit.act,
    )


def _find_stage(limit: BudgetLimit, used: LimitUse) -> LimitStage:
    if used.at_most >= limit.height + find_reserve(limit, used):
        return LimitStage.SPENT
    if used.at_most >= limit.height:
        return LimitStage.OVER
    if used.at_most * 100 >= limit.height * NEAR:
        return LimitStage.NEAR
    return LimitStage.FREE


def find_reserve(limit: BudgetLimit, used: LimitUse) -> int:
    """Find what may be used beyond the limit, to write a handoff document: one turn at least.

    It is never more than the limit once more.
    """
    turn = min(TURN * used.largest, limit.height)
    of_all = min(turn * limit.sharers, limit.height * SHARED_RESERVE // 100)
    return max(limit.height * RESERVE // 100, turn, of_all, 1)


def describe(limit: BudgetLimit, used: LimitUse) -> str:
    """`$8.20 of $10.00 for this issue`, and how much of that is a guess."""
    unit = limit.amount.unit
    if limit.is_placed:
        return f"{show(unit, limit.height)} {limit.words}: its machine knows what it has used"
    guess = f" (up to {show(unit, used.bound)} of it is not known)" if used.bound else ""
    return f"{show(unit, used.at_most)} of {show(unit, limit.height)} {limit.words}{guess}"


def needs_prices(stage: LimitStage, used: LimitUse, since_s: float) -> bool:
    """Whether prices are to be looked up now, which was done last so many seconds ago.

    It takes 0.2 s of processor time. Meanwhile a request counts as the largest of its model, if one
    has a price; so it waits a moment as long as nothing depends on it.
    """
    if not used.pending:
        return False
    return not used.is_bounded or stage is not LimitStage.FREE or not 0 <= since_s < PRICES_S


# One more issue


class Expected(Struct, frozen=True):
    """Expected use of a limit by the open issues, and by one more."""

    for_one: int
    for_open: int = 0


def estimate(past: Sequence[int], told: int | None, at_most: int) -> int:
    """Estimate what an issue will use: the median of those that are over.

    Before there are enough of them it is what a person has `told`; else the median of what there
    is, and of nothing what an issue may use `at_most`.
    """
    if len(past) >= ENOUGH or (told is None and past):
        return _find_median(past)
    return at_most if told is None else told


def _find_median(numbers: Sequence[int]) -> int:
    ordered, half = sorted(numbers), len(numbers) // 2
    return (ordered[half] + ordered[-half - 1]) // 2  # statistics takes 10 ms to import


def expect(for_one: int, of_open: Iterable[tuple[int, int]]) -> Expected:
    """Return what is still to come, from the estimate of each open issue and what it has used."""
    return Expected(for_one, sum(max(0, each - used) for each, used in of_open))


def admit(limit: BudgetLimit, used: LimitUse, expected: Expected) -> Allowance | None:
    """Find what is against one more issue; None if what it is expected to use still fits."""
    weighed = weigh(limit, used)
    if weighed.stage in (LimitStage.OVER, LimitStage.SPENT):
        return weighed
    left = limit.height - used.at_most - expected.for_open
    if 0 < left >= expected.for_one:
        return None
    unit = limit.amount.unit
    of_open = f", {show(unit, expected.for_open)} for open issues" if expected.for_open else ""
    return Allowance(
        LimitStage.HELD,
        f"{limit.key}:admit",
        f"no room for an issue of about {show(unit, expected.for_one)}: "
        f"{describe(limit, used)}{of_open}",
        until=limit.ends_at,
        act=limit.act,
    )
