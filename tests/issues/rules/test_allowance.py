from __future__ import annotations

from sm.issues.rules.allowance import Allowance, LimitStage, find_strictest


def _make(stage: LimitStage, until: float | None = None) -> Allowance:
    return Allowance(stage, f"{stage}:{until}", "as much", until)


def test_no_limit_leaves_everything() -> None:
    assert find_strictest([]) is None


def test_the_strictest_counts_whatever_the_order() -> None:
    all_stages = [_make(stage) for stage in LimitStage]
    for stage, found in zip(
        LimitStage, (all_stages[: end + 1] for end in range(len(LimitStage))), strict=True
    ):
        for ordered in (found, found[::-1]):
            strictest = find_strictest(ordered)
            assert strictest
            assert strictest.stage is stage


def test_of_equals_the_one_that_ends_last_counts() -> None:
    ends, ends_later, stays = (_make(LimitStage.HELD, until) for until in (10.0, 20.0, None))
    assert find_strictest([ends_later, ends]) is ends_later
    assert find_strictest([ends, stays, ends_later]) is stays
