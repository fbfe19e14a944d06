"""What each issue has cost, by the ledger of sm."""

from __future__ import annotations

from cast import NAME
from stage import Stage

from sm.base.issue_id import IssueId
from sm.plugins.cost.display import format_cost
from sm.plugins.cost.ledger.sums import SumGroup
from sm.plugins.cost.report import read_report
from sm.plugins.cost.settings import find_ledger


def read_costs(stage: Stage) -> dict[IssueId, str]:
    """What `sm cost` says of each issue: tokens, if the model has no price."""
    path = find_ledger(stage.project.config)
    found = read_report(path, SumGroup.ISSUE, "", NAME, lambda _: None)
    return {one.issue: format_cost(one) for one in found}
