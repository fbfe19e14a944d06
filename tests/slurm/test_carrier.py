"""Which jobs are brought what was seen of the forge: each takes a step in its job."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import own_start
from sm.adapters.forge.model import Issue, IssueState
from sm.base.issue_id import IssueId
from sm.issues.look.forge_view import Snapshot
from sm.issues.look.look_share import LookShare
from sm.issues.runners import Placement
from sm.plugins.hosts.slurm import carrier
from sm.plugins.hosts.slurm.carrier import Carried, Load, digest, list_due
from sm.store.files import read_json
from sm.store.paths import Root
from tests.e2e.stage import make_stage

NOW = 1_000_000.0


def placement(issue: int, attempt: int = 1) -> Placement:
    return Placement("harb", issue, f"dev-harb-{issue}", "slurm", "n1", attempt, "c" * 40, "17")


def share(issue: IssueId, title: str = "a", taken_at: float = NOW) -> LookShare:
    seen = Snapshot(taken_at, (Issue(issue, title, IssueState.OPEN, author="ada", at=1.0),))
    covers = {str(issue): (f"fix/{issue}", "main")}
    return LookShare(seen=seen, covers=covers, basis="b", account="sm", lasts_s=120.0)


def test_a_job_is_brought_what_is_new_to_it_and_soon_what_it_counts_on() -> None:
    placed = [placement(number) for number in range(1, 6)]
    carrier = {one.session: share(one.issue) for one in placed}
    known = {
        one.session: Carried(1, digest(share(one.issue, taken_at=NOW - 30)), NOW - 30)
        for one in placed[1:]
    }
    known["dev-harb-3"] = structs.replace(known["dev-harb-3"], digest="another")
    known["dev-harb-4"] = structs.replace(known["dev-harb-4"], at=NOW - 61)
    known["dev-harb-5"] = structs.replace(known["dev-harb-5"], attempt=2)
    assert [one.issue for one in list_due(placed, carrier, known, NOW)] == [1, 3, 4, 5]


def test_no_job_waits_for_a_look_that_it_wishes_for(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing hears a job: it looks by itself as soon as its agent has written a phase."""
    assert root.path
    monkeypatch.setattr(own_start, "start", lambda *words, **how: None)
    project = make_stage(tmp_path, auto=False).project

    def make(issues: Collection[IssueId]) -> LookShare:
        [issue] = issues
        return structs.replace(share(issue), wait_s=20.0)

    carrier.bring(project, [placement(7)], make)
    load = read_json(carrier._locate(project, "to-bring"), Load)
    assert load
    assert [one.wait_s for one in load.shares.values()] == [0.0]
