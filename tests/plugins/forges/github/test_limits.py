"""A limit of GitHub's is never taken for another answer, and never answered by more requests."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.model import BOT, CheckState
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.rest.reader import RestReader
from sm.plugins.forges.web.errors import LimitedError
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, github_of, opened
from tests.forges.state import Run

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."
"""docs.github.com, "Rate limits for the REST API": 403 or 429, and points are left."""


def limit(part: str, method: str = "GET", **headers: str) -> Fault:
    """A limit for bursts, of which a request is told."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    told = {"Retry-After": "60", "X-RateLimit-Remaining": "4120", **names}
    return Fault(part, method, reply=Reply(403, {"message": SECONDARY}, told))


def the_forge(side: RemoteSide) -> RestForge[RestReader]:
    made = side.open_as(BOT)
    assert isinstance(made, RestForge)
    return made


@pytest.mark.parametrize("part", ["/branches/main", "/rules/branches/main"])
def test_a_limit_hides_no_required_check(side: RemoteSide, part: str) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.protected = ["security-scan"]
    side.site.faults = [limit(part)]
    with pytest.raises(LimitedError):
        the_forge(side).checks.rules("main", anew=True)
    side.site.faults = []
    (side.folder / "quota.json").unlink()  # the minute is over
    assert the_forge(side).checks.rules("main", anew=True).checks == ("security-scan",)
    assert the_forge(side).checks.read(head).state is CheckState.PENDING


def test_a_limit_makes_no_check_of_a_fork_one_of_ours(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.runs = [Run(1, head, "build", "success", time.time(), of_fork=True)]
    side.site.faults = [limit("/actions/runs")]
    with pytest.raises(LimitedError):
        the_forge(side).checks.read(head)


def test_a_limit_is_told_as_one_where_ci_is_to_run_again(side: RemoteSide) -> None:
    _, head = opened(side)
    side.site.faults = [limit("/actions/runs")]
    with pytest.raises(LimitedError, match="takes no more requests until"):
        side.open().checks.rerun(head)


def test_a_limit_for_bursts_of_graphql_leads_to_no_burst_over_rest(side: RemoteSide) -> None:
    for name in ("fix/1", "fix/2", "fix/3"):
        opened(side, name)
    side.site.faults = [limit("/graphql", "POST", X_RateLimit_Resource="graphql")]
    with pytest.raises(LimitedError):
        side.open().observe()
    before = len(side.site.asked)
    with pytest.raises(LimitedError):
        side.open().observe()
    assert side.site.lines(before) == [], "nothing is asked until the minute is over"


def test_the_same_limit_in_an_answer_of_200_leads_to_none_either(side: RemoteSide) -> None:
    opened(side)
    fault = {"type": "RATE_LIMIT", "message": SECONDARY}
    told = {"Retry-After": "60"}
    side.site.faults = [Fault("/graphql", reply=Reply(200, {"errors": [fault]}, told))]
    with pytest.raises(LimitedError):
        side.open().observe()


def test_with_an_empty_bucket_of_graphql_a_look_waits_and_writing_goes_on(side: RemoteSide) -> None:
    opened(side)
    issue = side.open().issues.add("a", author="ada").number
    empty = {"X-RateLimit-Resource": "graphql", "X-RateLimit-Remaining": "0"}
    empty |= {"X-RateLimit-Limit": "5000", "X-RateLimit-Reset": str(int(time.time()) + 900)}
    side.site.faults = [Fault("/graphql", reply=Reply(403, {"message": "API rate limit"}, empty))]
    with pytest.raises(LimitedError):
        side.open().observe()
    before = len(side.site.asked)
    with pytest.raises(LimitedError, match="GraphQL takes no more queries until"):
        side.open().observe()
    assert side.site.lines(before) == []
    assert 800 < side.open().pause_s() <= 900
    side.open().issues.add_label(issue, "x")


def test_with_few_points_left_for_graphql_looks_become_rarer(side: RemoteSide) -> None:
    number, _ = opened(side)
    github_of(side).used["graphql"] = 4_000
    assert [pull.number for pull in side.open().observe().pulls] == [number]
    assert side.open().pause_s() > 0
    github_of(side).used["graphql"] = 4_990
    side.open().observe()
    assert side.open().pause_s() > 1700, "the last points are for what was begun"
    assert side.open().pulls.read(number).number == number


def test_a_comment_that_came_too_quickly_is_sent_later(side: RemoteSide) -> None:
    entry = side.state.add("a", "", "ada")
    said = {"resource": "IssueComment", "code": "custom", "message": "was submitted too quickly"}
    refusal = Reply(422, {"message": "Validation Failed", "errors": [said]})
    side.site.faults = [Fault("/comments", "POST", reply=refusal)]
    with pytest.raises(LimitedError):
        side.open().issues.comment(entry.number, "a word", author=BOT, marker="m1")
