"""Faults of a forge over HTTP on the way of an issue: it ends right, or a person is told."""

from __future__ import annotations

import time

import pytest
from msgspec import structs

from sm.adapters.forge.model import BOT, IssueState, PullState, ReviewState
from sm.base.errors import TemporaryError
from sm.issues.act.problem import read_problem, write_problem
from sm.issues.poll import tick
from sm.sessions import registry
from tests.e2e.play import GITHUB, Play, seen_anew
from tests.forges.server import Fault, Reply
from tests.forges.sides import KINDS, RemoteSide
from tests.helpers import git

OVER_HTTP = pytest.mark.parametrize("play", KINDS, indirect=True)
HOUR_S = 3600.0


def side_of(play: Play) -> RemoteSide:
    """The forge over HTTP."""
    assert isinstance(play.side, RemoteSide)
    return play.side


def set_clock(side: RemoteSide, ahead_s: float) -> None:
    """Have the forge's clock be wrong, or ours: which of them is, makes no difference."""
    side.state.clock = lambda: time.time() + ahead_s


def in_the_way(play: Play, issue: int) -> str:
    """What `sm status` says that the session waits for."""
    found = read_problem(registry.load_for(play.project, issue).dir)
    return found.sentence if found else ""


def marks(play: Play, issue: int) -> list[str]:
    """The marks of our comments on the issue."""
    return [one.marker for one in play.side.open().issues.read(issue).comments if one.marker]


@OVER_HTTP
def test_a_journey_ends_merged_through_the_faults_of_its_forge(play: Play) -> None:
    side = side_of(play)
    side.admit("otto")
    set_clock(side, HOUR_S)
    issue, forge = play.start(), side.open()
    play.hears(issue, "You work on issue")

    # The answer to our question is lost, and what was said before it is no answer to it.
    forge.issues.comment(issue, "Soon.", author="ada")
    saying = "/notes" if side.kind == "gitlab" else "/comments"
    side.site.faults = [Fault(part=saying, method="POST", drop=True, after=True)]
    play.stage.write_phase(issue, "PHASE:escalate\nReason: how?")
    play.react(issue)
    assert side.site.faults[0].times == 0
    seen_anew(play)
    play.react(issue)
    assert play.decided(issue) == ["escalate"]
    assert len(marks(play, issue)) == 1
    forge.issues.comment(issue, "Like this.", author="ada")
    seen_anew(play)
    assert "Like this." in play.hears(issue, "A person answered")

    # The token is revoked while the branch is offered.
    [(token, _)] = [one for one in side.state.tokens.items() if one[1] == BOT]
    del side.state.tokens[token]
    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    assert "does not accept the token" in in_the_way(play, issue)
    with pytest.raises(TemporaryError, match="does not accept the token"):
        seen_anew(play)
    side.state.tokens[token] = BOT

    # Errors of the forge's own, then an answer that is cut in half.
    side.site.faults = [Fault(times=8, reply=Reply(503)), Fault(method="POST", garble=True)]
    play.react(issue)
    assert in_the_way(play, issue)
    for _ in range(3):
        play.react(issue)
    side.site.faults = []
    assert len(list(side.state.pulls())) == 1
    play.check(head)
    play.hears(issue, "CI passed for")

    # The repository gets another name.
    side.configured = side.state.name
    side.state.name = "harbour/new"
    play.project.directory.snapshot.unlink()
    said = list(tick(play.anew()))
    assert any("is called 'harbour/new' now" in one for one in said), said

    # Two reviewers disagree, and the branch is pushed anew by force.
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    number = play.pull_of(issue).number
    forge.pulls.review(number, ReviewState.CHANGES_REQUESTED, "No.", author="otto")
    forge.pulls.review(number, ReviewState.APPROVED, author="rita")
    assert "No." in play.hears(issue, "changes requested")
    assert forge.pulls.read(number).state is PullState.OPEN
    worktree = play.stage.session(issue).worktree
    git(worktree, "commit", "-q", "--amend", "-m", "anew")
    git(worktree, "push", "-q", "--force", "origin", "HEAD")
    head = git(worktree, "rev-parse", "HEAD")
    side.begin(head)
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    play.check(head)
    forge.pulls.review(number, ReviewState.APPROVED, author="otto")
    assert forge.pulls.read(number).head == head
    seen_anew(play)
    play.wait_for_end(issue)
    assert forge.pulls.read(number).state is PullState.MERGED
    assert forge.issues.read(issue).state is IssueState.CLOSED
    assert len(marks(play, issue)) == len(set(marks(play, issue))) == 1


@OVER_HTTP
def test_what_a_forge_may_still_be_at_work_on_is_not_sent_again_at_once(play: Play) -> None:
    """Passes come at any time: each write has the forge looked at, and that calls for one."""
    site, issue = side_of(play).site, play.start()
    play.hears(issue, "You work on issue")
    part = "/merge_requests" if side_of(play).kind == "gitlab" else "/pulls"
    site.faults = [Fault(part, "POST", drop=True)]
    play.push(issue, "good\n", "PHASE:awaiting_ci")
    for _ in range(3):
        seen_anew(play)
        play.react(issue)
    sent = [line for line in site.lines() if line.startswith("POST") and line.endswith(part)]
    assert len(sent) == 1
    directory = registry.load_for(play.project, issue).dir
    problem = read_problem(directory)
    assert problem
    assert problem.not_before > time.time()
    since = directory.problem.stat().st_mtime
    write_problem(directory, structs.replace(problem, not_before=time.time() - 1), since)
    play.react(issue)
    assert play.pull_of(issue)
    assert in_the_way(play, issue) == ""


@OVER_HTTP
def test_what_people_take_away_on_the_forge_ends_the_work_and_is_told(play: Play) -> None:
    side = side_of(play)
    set_clock(side, -HOUR_S)
    issue, forge = play.start(), side.open()
    play.hears(issue, "You work on issue")
    play.check(play.push(issue, "good\n", "PHASE:awaiting_ci"))
    play.hears(issue, "CI passed for")
    number = play.pull_of(issue).number

    # The branch is deleted: the agent, which has the work, is asked to push it.
    git(play.stage.repository.bare, "branch", "-D", f"fix/{issue}")
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    seen_anew(play)
    play.hears(issue, "lacks your work")
    git(play.stage.session(issue).worktree, "push", "-q", "origin", "HEAD")

    # A label is renamed under us.
    side.state.labels = [one.replace("in-progress", "doing") for one in side.state.labels]
    side.state.entries[issue].labels = ["doing"]
    forge.issues.add_label(issue, "x")

    # The pull request is closed by hand.
    forge.pulls.close(number)
    seen_anew(play)
    play.wait_for_end(issue)
    assert play.decided(issue)[-1] == "pull-closed"
    assert [one.number for one in forge.pulls.find()[0]] == [number], "it is not offered again"
    assert len(marks(play, issue)) == 1
    assert "in-progress" not in forge.issues.read(issue).labels


@pytest.mark.parametrize("stops", ["closes", "blocks"])
@GITHUB
def test_a_merge_that_is_tried_again_does_not_overtake_the_person_who_stops_it(
    play: Play, stops: str
) -> None:
    side = side_of(play)
    issue, forge = play.start(), side.open()
    head = play.push(issue, "good\n", "PHASE:awaiting_review")
    play.check(head)
    number = play.pull_of(issue).number
    forge.pulls.review(number, ReviewState.APPROVED, author="rita")
    seen_anew(play)
    side.site.faults = [Fault("/merge", "PUT", times=99, reply=Reply(502))]
    play.react(issue)
    assert play.decided(issue)[-1] == "approved-merge"
    side.site.faults = []
    if stops == "closes":
        forge.issues.close(issue)
    else:
        forge.issues.add_label(issue, "blocked")
    play.wait_for_end(issue)
    assert forge.pulls.read(number).state is not PullState.MERGED
