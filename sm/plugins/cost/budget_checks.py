"""What `sm doctor` checks of budgets."""

from __future__ import annotations

from collections.abc import Iterator

from sm.config.shapes import read_section
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger.amount import Unit
from sm.plugins.cost.ledger.prices import name_source
from sm.plugins.cost.ledger.progress import list_lags
from sm.plugins.cost.ledger.records.record import find_reader
from sm.sessions.project import Project
from sm.setup.finding import Check, Finding, ok, warn
from sm.store.paths import prefix_sessions


def check_budget(project: Project) -> Iterator[Finding]:
    """Check whether what the project's agents use can be known, if it is limited."""
    own = read_section(project.settings, Budget)
    limits = [one.amount for one in (own.issue, own.session, own.day, own.project) if one]
    if not limits or own.allows_unknown:
        return
    for name, lag in list_lags(project.root):
        if name.startswith(prefix_sessions(project.name)):
            yield warn(
                f"what '{name}' uses was not read for {lag:.0f} s: it is held",
                "see 'sm events' for why that fails",
            )
    client = project.profile.name
    if find_reader(project.profile.spending) is None:
        yield warn(
            f"a budget is set, and what '{client}' uses is in no record: no issue is begun",
            "set 'budget.unknown' to 'allow', or use an agent CLI that docs/COST.md names",
        )
    elif not name_source() and any(limit.unit is Unit.USD for limit in limits):
        yield warn(
            "a budget is in money, and no prices are known: its agents are stopped",
            "install 'genai-prices' into the environment of sm, or count tokens",
        )
    else:
        yield ok("what its agents use is limited: 'sm budget' shows it")


CHECK = Check(project=check_budget)
