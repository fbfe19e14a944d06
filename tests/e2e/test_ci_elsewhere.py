"""CI and merge queues of a forge elsewhere: what fails by itself is run again, and told once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.adapters.forge.model import CheckState, PullState, ReviewState
from sm.plugins.forges.rest.convert import UNAPPROVED
from tests.e2e.play import GITHUB, Play, seen_anew
from tests.forges.gitlab import Gitlab, leave_train
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide
from tests.forges.state import Status
from tests.helpers import wait_for

LOST = "E  no test ran\n##[error]The runner has received a shutdown signal.\n"


def fails(play: Play, head: str, log: str, ago_s: float = 0.0) -> None:
    """The run of CI on that commit fails with that log."""
    play.side.finish(head, CheckState.FAILURE, "build", log)
    assert isinstance(play.side, RemoteSide)
    play.side.state.runs[-1].at -= ago_s
    seen_anew(play)
    play.react(1)


@GITHUB
def test_ci_that_failed_itself_is_run_again_once_and_then_told_to_a_person(play: Play) -> None:
    issue = play.start()
    assert isinstance(play.side, RemoteSide)
    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    fails(play, head, LOST, ago_s=60)
    play.react(issue)
    assert play.side.state.reruns == ["rerun-failed-jobs"]
    assert play.decided() == ["open-pull", "ci-rerun"]
    fails(play, head, LOST)
    assert play.side.state.reruns == ["rerun-failed-jobs"], "once for each commit"
    assert play.decided() == ["open-pull", "ci-rerun", "ci-broken"]
    [asked] = [one.body for one in play.side.open().issues.read(issue).comments if one.marker]
    assert "It was run once more by itself" in asked
    assert "shutdown signal" in asked
    assert not [text for text in play.stage.told() if "CI failed" in text]


@GITHUB
@pytest.mark.parametrize("at", ["run CI again:before", "run CI again:after"])
def test_ci_is_run_again_once_whatever_is_killed(
    play: Play, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is done or not when the process dies: the next one finds out."""

    class KilledError(BaseException):
        pass

    def die(name: str) -> None:
        if name == at:
            raise KilledError

    issue = play.start()
    assert isinstance(play.side, RemoteSide)
    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    with monkeypatch.context() as killing:
        killing.setattr("sm.issues.act.steps.crash_point", die)
        with pytest.raises(KilledError):
            fails(play, head, LOST, ago_s=60)
    play.react(issue)
    assert play.side.state.reruns == ["rerun-failed-jobs"]
    fails(play, head, "line 7 is wrong\n")
    assert "line 7 is wrong" in play.hears(issue, "CI failed")
    log = next(line for line in play.stage.told()[-1].splitlines() if "the whole log:" in line)
    assert "line 7 is wrong" in Path(log.partition("the whole log: ")[2]).read_text()


def approve_unseen(play: Play, issue: int) -> tuple[RemoteSide, str]:
    """Approve what the agent has pushed, before a session has seen its pull request; its head."""
    side = play.side
    assert isinstance(side, RemoteSide)
    head = play.push(issue, "good\n", "PHASE:awaiting_review")
    side.finish(head, CheckState.SUCCESS)
    pull = side.open().pulls.find_newest(f"fix/{issue}")
    assert pull
    side.open().pulls.review(pull.number, ReviewState.APPROVED, author="rita")
    seen_anew(play)
    return side, head


@pytest.mark.parametrize("play", ["github", "gitlab"], indirect=True)
def test_a_merge_queue_merges_and_what_it_drops_is_told_to_the_agent(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = play.start()
    assert isinstance(play.side, RemoteSide)
    play.side.state.has_queue = True
    side, _ = approve_unseen(play, issue)
    play.react(issue)
    assert play.decided() == ["open-pull", "approved-merge"]
    [(entry, found)] = side.state.pulls()
    assert found.place == 1
    if isinstance(side.dialect, Gitlab):
        leave_train(side.dialect, play.pull_of(issue).number, "failed checks")
    found.place, found.dropped = 0, "failed checks"
    seen_anew(play)
    play.react(issue)
    assert play.decided() == ["open-pull", "approved-merge"], "it may be a moment behind"
    monkeypatch.setattr("sm.issues.rules.facts.QUEUE_S", 0.0)
    assert "failed checks" in play.hears(issue, "has removed pull request")
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    play.react(issue)
    assert found.place == 1, "another write, another try"
    side.state.merge(entry, "Merge", "queue")
    seen_anew(play)

    def is_over() -> bool:
        play.react(issue)
        return not play.stage.sessions()

    wait_for(is_over, "the end of the session")


def is_merged(play: Play, issue: int) -> bool:
    """Whether it is merged after one more pass."""
    play.react(issue)
    return play.pull_of(issue).state is PullState.MERGED


@GITHUB
def test_a_merge_that_meets_another_one_is_made_later_and_nobody_is_asked(play: Play) -> None:
    issue = play.start()
    side, _ = approve_unseen(play, issue)
    words = {"message": "Base branch was modified. Review and try the merge again."}
    side.site.faults = [Fault(part="/merge", method="PUT", reply=Reply(405, words))]
    assert not is_merged(play, issue)
    assert is_merged(play, issue)
    assert not [one for one in side.open().issues.read(issue).comments if one.marker]


@GITHUB
def test_ci_that_begins_just_before_the_merge_and_fails_is_told_to_the_agent(play: Play) -> None:
    issue = play.start()
    side, head = approve_unseen(play, issue)
    side.state.run_of(head, "late")  # the last look does not know it
    assert not is_merged(play, issue)
    side.state.run_of(head, "late").word = "failure"
    seen_anew(play)
    assert not is_merged(play, issue)
    assert play.decided()[-1] == "review-red"
    assert not [one for one in side.open().issues.read(issue).comments if one.marker]


@pytest.mark.parametrize("play", ["gitea"], indirect=True)
def test_a_person_is_told_at_once_of_ci_that_waits_for_an_approval(play: Play) -> None:
    issue = play.start()
    assert isinstance(play.side, RemoteSide)
    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    word, text = UNAPPROVED
    page = "https://ci.example.com/repos/1/pipeline/4/1"
    name = "ci/woodpecker/push/test"
    play.side.state.statuses.append(Status(77, head, name, word, time.time(), text, page))
    seen_anew(play)
    for _ in range(2):
        play.react(issue)
    assert play.decided() == ["open-pull", "ci-unapproved"]
    need = play.stage.find_need("ci")
    assert need["command"] == page
    assert name in need["text"]
