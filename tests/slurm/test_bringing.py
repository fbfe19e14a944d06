"""Which jobs are brought what was seen of the forge: each takes a step in its job."""

from __future__ import annotations

from msgspec import structs

from sm.adapters.forge.model import Issue, IssueState
from sm.issues.look.brought import Share
from sm.issues.look.seen import Snapshot
from sm.issues.runners import Placement
from sm.plugins.hosts.slurm.bringing import Carried, digest, list_due

NOW = 1_000_000.0


def placement(issue: int, attempt: int = 1) -> Placement:
    return Placement("harb", issue, f"dev-harb-{issue}", "slurm", "n1", attempt, "c" * 40, "17")


def share(issue: int, title: str = "a", taken_at: float = NOW) -> Share:
    seen = Snapshot(taken_at, (Issue(issue, title, IssueState.OPEN, author="ada", at=1.0),))
    covers = {issue: (f"fix/{issue}", "main")}
    return Share(seen=seen, covers=covers, basis="b", account="sm", lasts_s=120.0)


def test_a_job_is_brought_what_is_new_to_it_and_soon_what_it_counts_on() -> None:
    placed = [placement(number) for number in range(1, 6)]
    shares = {one.session: share(one.issue) for one in placed}
    known = {
        one.session: Carried(1, digest(share(one.issue, taken_at=NOW - 30)), NOW - 30)
        for one in placed[1:]
    }
    known["dev-harb-3"] = structs.replace(known["dev-harb-3"], digest="another")
    known["dev-harb-4"] = structs.replace(known["dev-harb-4"], at=NOW - 61)
    known["dev-harb-5"] = structs.replace(known["dev-harb-5"], attempt=2)
    assert [one.issue for one in list_due(placed, shares, known, NOW)] == [1, 3, 4, 5]
