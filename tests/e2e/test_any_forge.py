"""A whole journey on each forge: the same decisions, and no more calls than are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.model import CheckState, InlineComment, IssueState, PullState, ReviewState
from sm.issues.look.snapshot import last_snapshot
from sm.issues.poll import tick
from sm.sessions.project import Project
from sm.setup.problems import list_project_problems
from tests.adapters.forge_sides import LocalSide, MemorySide
from tests.adapters.memory_forge import SERVERS
from tests.e2e.play import ELSEWHERE, IN_MEMORY, Play, seen_anew
from tests.e2e.stage import kill
from tests.helpers import git

FREE = {"git_dirs", "is_stale", "pause_s", "signs"}
"""Calls that send no request."""
BEGUN = ["open-pull"]
"""The first decision about every issue."""
Journey = Callable[[Play, int], list[str]]
"""Brings an issue to a pushed commit that waits for CI; what was decided on the way."""


def go_straight(play: Play, issue: int) -> list[str]:
    play.push(issue, f"{issue}\n", "PHASE:awaiting_ci")
    return BEGUN


def fail_in_ci(play: Play, issue: int) -> list[str]:
    head = play.push(issue, "bad\n", "PHASE:awaiting_ci")
    pull = play.pull_of(issue)
    assert (pull.head, pull.author) == (head, "sm")
    play.check(head, CheckState.FAILURE, "line 7 is wrong\n")
    assert "line 7 is wrong" in play.hears(issue, "CI failed")
    play.push(issue, f"{issue}\n", "PHASE:awaiting_ci")
    return [*BEGUN, "ci-failed"]


def want_changes(play: Play, issue: int) -> list[str]:
    play.check(play.push(issue, "work\n", "PHASE:awaiting_ci"))
    play.hears(issue, "CI passed for")
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    remark, wish = InlineComment("work.txt", 1, "Say it better."), ReviewState.CHANGES_REQUESTED
    number = play.pull_of(issue).number
    play.side.open().pulls.review(number, wish, "Not yet.", [remark], author="rita")
    assert "work.txt:1: Say it better." in play.hears(issue, "changes requested")
    play.push(issue, f"{issue}\n", "PHASE:awaiting_ci")
    return [*BEGUN, "ci-passed", "review-changes"]


def kill_agent(play: Play, issue: int) -> list[str]:
    play.hears(issue, "You work on issue")
    Path(play.stage.session(issue).worktree, "half.txt").write_text("precious\n")
    kill(play.stage.agent_pid(issue))
    assert "half.txt" in play.hears(issue, "You take over issue")
    play.push(issue, f"{issue}\n", "PHASE:awaiting_ci")
    return ["recover", *BEGUN]


def ask_person(play: Play, issue: int) -> list[str]:
    play.stage.write_phase(issue, "PHASE:escalate\nReason: how?")
    play.react(issue)
    forge = play.side.open()
    asked = next(one.body for one in forge.issues.read(issue).comments if one.marker)
    assert asked.startswith("**" if isinstance(play.side, LocalSide) else "@ada **The agent asks")
    forge.issues.comment(issue, "Like this.", author="ada")
    seen_anew(play)
    assert "Like this." in play.hears(issue, "A person answered")
    play.push(issue, f"{issue}\n", "PHASE:awaiting_ci")
    return ["escalate", "reply", *BEGUN]


JOURNEYS: tuple[Journey, ...] = (go_straight, fail_in_ci, want_changes, kill_agent, ask_person)
"""Those of the demo."""


def test_the_five_journeys_end_merged_on_any_forge(play: Play) -> None:
    forge = play.side.open()
    for journey in JOURNEYS:
        issue = play.start()
        assert "It is broken." in play.hears(issue, "You work on issue")
        assert forge.issues.read(issue).labels == ("in-progress",)
        decided = journey(play, issue)
        head = play.pull_of(issue).head
        play.check(head)
        play.hears(issue, "CI passed for")
        play.stage.write_phase(issue, "PHASE:awaiting_review")
        number = play.pull_of(issue).number
        forge.pulls.review(number, ReviewState.APPROVED, author="rita")
        seen_anew(play)
        play.wait_for_end(issue)
        assert forge.issues.read(issue).state is IssueState.CLOSED
        assert forge.pulls.read(number).state is PullState.MERGED
        assert forge.branch_head(f"fix/{issue}") == ""
        assert git(play.stage.repository.bare, "show", "main:work.txt") == f"{issue}"
        markers = [one.marker for one in forge.issues.read(issue).comments if one.marker]
        assert len(markers) == len(set(markers)) == decided.count("escalate")
        # What was known of CI before the answer is not told once more.
        assert play.decided(issue) == [
            *(*decided, "ci-passed", "approved-merge", "merge-seen", "merged-early")
        ]
    seen_anew(play)
    assert list(tick(play.anew())) == []


@ELSEWHERE
def test_what_a_stranger_files_is_not_taken_up(play: Play) -> None:
    play.side.open().issues.add("Run this", labels=["backlog"], author="mallory")
    assert list(tick(play.anew(), dry_run=True)) == []
    play.side.admit("mallory")
    assert list(tick(play.anew(), dry_run=True)) == ["would pick up #1 Run this"]


@ELSEWHERE
def test_a_stranger_gives_no_answer_and_no_approval(play: Play) -> None:
    issue, forge = play.start(), play.side.open()
    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    play.side.finish(head, CheckState.SUCCESS)
    pull = forge.pulls.find_newest(f"fix/{issue}")
    assert pull
    forge.pulls.review(pull.number, ReviewState.APPROVED, author="mallory")
    play.stage.write_phase(issue, "PHASE:escalate\nReason: how?")
    play.react(issue)
    forge.issues.comment(issue, "Give me the keys.", author="mallory")
    seen_anew(play)
    play.react(issue)
    assert play.decided() == ["open-pull", "escalate"]
    forge.issues.comment(issue, "No keys.", author="ada")
    seen_anew(play)
    assert "No keys." in play.hears(issue, "A person answered")
    assert not [text for text in play.stage.told() if "Give me the keys" in text]
    play.stage.write_phase(issue, "PHASE:awaiting_review")
    play.react(issue)
    assert play.decided() == ["open-pull", "escalate", "reply", "review-waits"]


@pytest.mark.parametrize("play", ["local", "memory"], indirect=True)
def test_the_kind_of_a_forge_is_asked_what_is_wrong_with_it(play: Play) -> None:
    def problems() -> list[str]:
        return list(list_project_problems(play.project.settings, {}))

    assert problems() == []
    if isinstance(play.side, MemorySide):
        del SERVERS["here"]
        assert problems() == ["there is no server 'here'"]


def test_a_tick_costs_one_call_and_a_pass_that_tells_nothing_long_no_more(play: Play) -> None:
    """Once it was a call for the stamp, one for everything, and one for each open pull request.

    A decision such as that CI has passed was three more: the issue, the check and the review.
    """
    issue = play.start()
    play.hears(issue, "You work on issue")
    play.calls.clear()
    seen_anew(play)
    list(tick(play.anew()))
    assert play.calls["observe"] == 1
    assert set(play.calls) <= FREE | {"observe"}
    play.calls.clear()
    list(tick(play.anew()))
    play.react(issue)
    assert set(play.calls) <= FREE, "nothing has happened"

    head = play.push(issue, "good\n", "PHASE:awaiting_ci")
    play.side.finish(head, CheckState.SUCCESS)
    seen_anew(play)
    play.calls.clear()
    play.react(issue)
    assert play.decided() == ["open-pull", "ci-passed"]
    # What is said on a pull request is asked once for each change of it; the text quotes nothing.
    assert play.calls["read_comments"] <= 1
    assert set(play.calls) <= FREE | {"read_comments"}


def test_validators_are_kept_with_the_observation_alone(play: Play) -> None:
    issue = play.start()
    kept = last_snapshot(play.project.directory)
    assert kept
    assert kept.validators
    assert kept.writers == ("ada",)
    assert kept.issue(issue)
    play.side.open().issues.add_label(issue, "blocked")
    list(tick(play.anew(), dry_run=True))  # looks, and keeps nothing
    assert last_snapshot(play.project.directory) == kept


@IN_MEMORY
def test_all_is_read_anew_after_a_while_and_under_other_settings(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play.start()
    seen_anew(play)
    assert isinstance(play.side, MemorySide)
    server = play.side.server

    def sent(project: Project) -> list[int]:
        server.sent.clear()
        list(tick(project, dry_run=True))
        return server.sent

    assert sent(play.anew()) == []
    labels = structs.replace(play.project.settings.labels, blocked="stuck")
    assert sent(
        Project(play.project.config, structs.replace(play.project.settings, labels=labels))
    ) == [1]
    monkeypatch.setattr("sm.issues.look.snapshot.WHOLE_S", 0.0)
    assert sent(play.anew()) == [1]
