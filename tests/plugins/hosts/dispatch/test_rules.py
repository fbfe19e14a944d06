from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from sm.issues.runners import Standing
from sm.plugins.hosts.dispatch.rules import PLACE_FOR_S, Case, Deed, Holder, judge

RUNS = Case(Holder.OURS, Standing.RUNNING)


@pytest.mark.parametrize(
    ("case", "deed"),
    [
        (RUNS, Deed.LEAVE),
        (replace(RUNS, is_workable=False), Deed.LEAVE),  # the node ends it itself
        (replace(RUNS, standing=Standing.SILENT), Deed.LEAVE),
        (replace(RUNS, standing=None), Deed.LEAVE),
        (replace(RUNS, standing=Standing.LOST), Deed.MOVE),
        (replace(RUNS, standing=Standing.LOST, is_workable=False), Deed.LET_GO),
        (replace(RUNS, standing=Standing.LOST, is_paused=True), Deed.LEAVE),
        (replace(RUNS, standing=Standing.OVER), Deed.MOVE),
        (replace(RUNS, standing=Standing.OVER, is_workable=False), Deed.LET_GO),
        (replace(RUNS, standing=Standing.WAITING), Deed.LEAVE),
        (replace(RUNS, standing=Standing.WAITING, is_workable=False), Deed.WITHDRAW),
        (Case(Holder.OURS, is_placed=False), Deed.PLACE),
        (Case(Holder.OURS, is_placed=False, is_paused=True), Deed.LEAVE),
        (Case(Holder.OURS, is_placed=False, is_workable=False), Deed.WITHDRAW),
        (Case(Holder.OURS, is_placed=False, tried_for_s=PLACE_FOR_S), Deed.MOVE),
        (Case(Holder.OURS, Standing.REFUSED, is_placed=False), Deed.MOVE),
        (Case(Holder.OURS, Standing.REFUSED, is_placed=False, is_paused=True), Deed.LEAVE),
        (Case(Holder.OURS, Standing.UNFIT, is_placed=False, tried_for_s=9999.0), Deed.PLACE),
        (replace(RUNS, holder=Holder.OTHERS), Deed.DROP),
        (Case(Holder.OTHERS, Standing.LOST), Deed.FORGET),  # there is nobody to be told
        (replace(RUNS, holder=Holder.LATER), Deed.ADOPT),
        (replace(RUNS, holder=Holder.NOBODY), Deed.LEAVE),  # it is about to end
        (Case(Holder.NOBODY, Standing.OVER), Deed.FORGET),
        (Case(Holder.NOBODY, Standing.SILENT), Deed.FORGET),
        (Case(Holder.NOBODY, Standing.WAITING), Deed.DROP),
        (Case(Holder.NOBODY, is_placed=False), Deed.FORGET),
    ],
)
def test_what_is_done_about_work_elsewhere(case: Case, deed: Deed) -> None:
    assert judge(case) is deed


def test_an_issue_is_begun_again_only_where_its_claim_is_ours_and_nothing_is_known_to_run() -> None:
    beginning = {Deed.MOVE, Deed.PLACE}
    booleans = (False, True)
    for holder, standing, placed, work, paused in product(
        Holder, (None, *Standing), booleans, booleans, booleans
    ):
        case = Case(holder, standing, placed, work, paused, tried_for_s=PLACE_FOR_S)
        if judge(case) in beginning:
            assert holder is Holder.OURS
            assert work
            assert not paused
            assert not placed or standing in (Standing.LOST, Standing.OVER)
