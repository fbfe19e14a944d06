from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from sm.issues.runners import Standing
from sm.plugins.hosts.dispatch.rules import PLACE_FOR_S, Holder, PlacementCase, PlacementDeed, judge

RUNS = PlacementCase(Holder.OURS, Standing.RUNNING)


@pytest.mark.parametrize(
    ("case", "deed"),
    [
        (RUNS, PlacementDeed.LEAVE),
        (replace(RUNS, is_workable=False), PlacementDeed.LEAVE),  # the node ends it itself
        (replace(RUNS, standing=Standing.SILENT), PlacementDeed.LEAVE),
        (replace(RUNS, standing=None), PlacementDeed.LEAVE),
        (replace(RUNS, standing=Standing.LOST), PlacementDeed.MOVE),
        (replace(RUNS, standing=Standing.LOST, is_workable=False), PlacementDeed.LET_GO),
        (replace(RUNS, standing=Standing.LOST, is_paused=True), PlacementDeed.LEAVE),
        (replace(RUNS, standing=Standing.OVER), PlacementDeed.MOVE),
        (replace(RUNS, standing=Standing.OVER, is_workable=False), PlacementDeed.LET_GO),
        (replace(RUNS, standing=Standing.WAITING), PlacementDeed.LEAVE),
        (replace(RUNS, standing=Standing.WAITING, is_workable=False), PlacementDeed.WITHDRAW),
        (PlacementCase(Holder.OURS, is_placed=False), PlacementDeed.PLACE),
        (PlacementCase(Holder.OURS, is_placed=False, is_paused=True), PlacementDeed.LEAVE),
        (PlacementCase(Holder.OURS, is_placed=False, is_workable=False), PlacementDeed.WITHDRAW),
        (PlacementCase(Holder.OURS, is_placed=False, tried_for_s=PLACE_FOR_S), PlacementDeed.MOVE),
        (PlacementCase(Holder.OURS, Standing.REFUSED, is_placed=False), PlacementDeed.MOVE),
        (
            PlacementCase(Holder.OURS, Standing.REFUSED, is_placed=False, is_paused=True),
            PlacementDeed.LEAVE,
        ),
        (
            PlacementCase(Holder.OURS, Standing.UNFIT, is_placed=False, tried_for_s=9999.0),
            PlacementDeed.PLACE,
        ),
        (replace(RUNS, holder=Holder.OTHERS), PlacementDeed.DROP),
        (
            PlacementCase(Holder.OTHERS, Standing.LOST),
            PlacementDeed.FORGET,
        ),  # there is nobody to be told
        (replace(RUNS, holder=Holder.LATER), PlacementDeed.ADOPT),
        (replace(RUNS, holder=Holder.NOBODY), PlacementDeed.LEAVE),  # it is about to end
        (PlacementCase(Holder.NOBODY, Standing.OVER), PlacementDeed.FORGET),
        (PlacementCase(Holder.NOBODY, Standing.SILENT), PlacementDeed.FORGET),
        (PlacementCase(Holder.NOBODY, Standing.WAITING), PlacementDeed.DROP),
        (PlacementCase(Holder.NOBODY, is_placed=False), PlacementDeed.FORGET),
    ],
)
def test_what_is_done_about_work_elsewhere(case: PlacementCase, deed: PlacementDeed) -> None:
    assert judge(case) is deed


def test_an_issue_is_begun_again_only_where_its_claim_is_ours_and_nothing_is_known_to_run() -> None:
    beginning = {PlacementDeed.MOVE, PlacementDeed.PLACE}
    booleans = (False, True)
    for holder, standing, placed, work, paused in product(
        Holder, (None, *Standing), booleans, booleans, booleans
    ):
        case = PlacementCase(holder, standing, placed, work, paused, tried_for_s=PLACE_FOR_S)
        if judge(case) in beginning:
            assert holder is Holder.OURS
            assert work
            assert not paused
            assert not placed or standing in (Standing.LOST, Standing.OVER)
