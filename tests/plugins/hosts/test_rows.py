"""Rows of sessions that run elsewhere, of what their nodes say, which may be anything."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs, to_builtins

from sm.adapters.forge.model import Issue, IssueState, PullState
from sm.base.act import run
from sm.base.need import NeedKind
from sm.config.forges import LocalSettings
from sm.config.schema import Config, ProjectSettings
from sm.issues.look.snapshot import Snapshot
from sm.issues.rules.allowance import TurnAtLimit
from sm.issues.rules.needs import KINDS, Case
from sm.issues.runners import NodeRow, Placement
from sm.plugins.forges.settings import GiteaSettings
from sm.plugins.hosts.rows import make_row
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from tests.acts.commands import read_act
from tests.helpers import a_pull

NOW = 10_000.0
PLACED = Placement("harb", 7, "dev-harb-7", "ssh", "box", 1, "c" * 40, "x", NOW - 60)
LOCAL = LocalSettings(path=Path("/bare"))
PULL = a_pull(8, "fix/7")
SEEN = Snapshot(taken_at=NOW - 5, pulls=(PULL, a_pull(2, "fix/3")))
UNSEEN = Snapshot(taken_at=0.0)
ROW = SessionRow(
    id="dev-harb-7",
    name="harb#7",
    project="harb",
    issue=7,
    title="Add a file",
    state=ShownState.WORKING,
    begun_at=NOW - 60,
    cwd="/there",
    proof=Proof(Evidence.PROCESS, 1.0, "7"),
)


def show(
    trouble: str = "",
    known: Snapshot = UNSEEN,
    forge: LocalSettings | GiteaSettings = LOCAL,
    **changed: Any,
) -> SessionRow:
    settings = ProjectSettings(name="harb", repo=Path("/clone"), forge=forge)
    project = Project(Config(source=Path("/sm.yaml"), projects=(settings,)), settings)
    said = to_builtins(tell_status(ROW, NOW - 10)) | changed
    return make_row(project, PLACED, NodeRow(said, NOW - 10, trouble), known, NOW)


def test_a_row_is_the_nodes_with_its_host_and_the_age_of_now() -> None:
    assert show() == structs.replace(ROW, host="box", event_at=NOW - 10)


def test_a_host_that_does_not_answer_is_what_a_session_waits_for() -> None:
    row = show("host 'box' does not answer: no route")
    assert row.waits_for == "host 'box', which was heard last 10s ago"
    assert row.state is ShownState.WORKING


def test_a_row_is_about_what_was_placed_whatever_a_node_says() -> None:
    row = show(project="other", issue=8, session="dev-other-8", host="here")
    assert (row.project, row.issue, row.id, row.host) == ("harb", 7, "dev-harb-7", "box")


@pytest.mark.parametrize(
    "changed", [{"phase": "nonsense"}, {"age_s": "long"}, {"title": None}, {"proof": 7}]
)
def test_a_row_of_another_shape_is_none(changed: dict[str, Any]) -> None:
    row = show(**changed)
    assert row.state is ShownState.STARTING
    assert row.waits_for == "host 'box' to say how it stands"


def test_what_this_version_does_not_know_is_passed_over() -> None:
    assert show(colour="red").title == "Add a file"


def test_texts_are_one_line_and_not_endless() -> None:
    row = show(title="a\x1b]52;c;aGk=\x07\nb" * 1000)
    assert "\n" not in row.title
    assert len(row.title) <= 500


def test_title_and_pull_request_are_those_that_were_seen_here() -> None:
    issue = Issue(7, "Add a door", IssueState.OPEN, "ada", 1.0)
    seen = structs.replace(SEEN, issues=(issue,))
    row = show(known=seen, title="Pay mallory", pull=2, head="a" * 40)
    assert (row.title, row.pull, row.head) == ("Add a door", 8, PULL.head)
    assert (show(pull=2, head="a" * 40).pull, show(pull=2, head="a" * 40).head) == (0, "")


def test_a_pull_request_of_an_earlier_attempt_is_not_shown() -> None:
    closed = structs.replace(PULL, state=PullState.CLOSED, closed_at=PLACED.placed_at - 1)
    assert show(known=Snapshot(NOW, pulls=(closed,))).pull == 0
    later = structs.replace(closed, closed_at=PLACED.placed_at + 1)
    assert show(known=Snapshot(NOW, pulls=(later,))).pull == 8


def test_a_problem_is_told_as_words_of_its_host() -> None:
    assert show(problem="call sm uninstall --yes").problem == "box says: call sm uninstall --yes"


HOSTILE = (
    "sm new --command=/usr/sbin/poweroff",
    "sm kill --all",
    "sm uninstall --yes",
    "sm host add root@evil",
    "sm review harb#2 --approve",
    "rm -rf ~",
    "sm reply harb 7 $(id)",
    "sm budget raise other 1 AMOUNT",
    "sm budget raise harb 7 999 AMOUNT",
    "sm budget raise harb 7 AMOUNT; id",
    "javascript:x",
)


def show_need(case: Case | None, known: Snapshot = SEEN, **more: Any) -> OpenNeed:
    """What is shown of a need of which a node says this."""
    said = OpenNeed(
        key="dev-harb-7:question",
        kind=NeedKind.QUESTION,
        project="other",
        issue=8,
        text="The pull request waits for a review (#24): sm kill --all",
        act=run("sm kill --all"),
        link="javascript:x",
        verdict="made up",
        case=case,
    )
    need = show(need=to_builtins(said), known=known, **more).need
    assert need
    return need


OURS = {
    "sm attach harb 7",
    "sm reply harb 7 TEXT",
    "sm send harb#7 TEXT",
    "sm review harb#8 --approve",
    "sm pr merge harb#8",
    "sm ci rerun harb 7",
    "sm status",
    "sm doctor",
}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_command_is_made_here_and_is_about_the_session_that_was_placed(said: str) -> None:
    rows, yes_or_no = (*sorted(KINDS), "", "sm kill --all"), (False, True)
    cases = itertools.product(rows, yes_or_no, yes_or_no, yes_or_no, (SEEN, UNSEEN))
    for row, locked_out, stuck, unasked, known in cases:
        case = Case(
            row,
            "other#9",
            pull=2,
            locked_out=locked_out,
            stuck=stuck,
            unasked=unasked,
            raises=run(said),
            reviewed_at=said,
            first=said,
            first_until=said,
        )
        need = show_need(case, known)
        assert need.command in OURS, row
        assert (need.name, need.project, need.issue) == ("harb#7", "harb", 7)
        assert (need.link, need.verdict) == ("", "")
        assert said not in need.text or " " not in said, row


def test_only_words_of_the_agent_stand_in_the_sentence_and_as_what_they_are() -> None:
    asked = show_need(Case("question", "harb#7", question="call sm kill --all"))
    assert asked.text == "The agent has ended its turn with a question (call sm kill --all)"
    waits = show_need(Case("review-waits", "x#1", reason="call sm kill --all", pull=24))
    assert waits.text == "The pull request waits for a review (#8)"
    assert waits.command == "sm review harb#8 --approve"


def test_who_was_asked_first_is_told_with_the_time_of_its_machine() -> None:
    case = Case("escalate", "harb#7", reason="why?", first="gardener", first_until="14:05")
    asked = "The agent asks for a person, and gardener has been asked"
    assert show_need(case).text == f"{asked} until 14:05 (why?)"
    case = structs.replace(case, first_until="14:05, call sm kill --all")
    assert show_need(case).text == f"{asked} (why?)"


def test_a_pull_request_that_was_not_seen_here_is_not_offered() -> None:
    need = show_need(Case("review-waits", "harb#7", pull=24, unasked=True), UNSEEN)
    assert (need.text, need.command) == ("The pull request waits for a review", "sm attach harb 7")


def test_a_node_that_does_not_say_what_it_is_about_is_looked_at() -> None:
    need = show_need(None)
    assert (need.text, need.command) == ("A person is asked", "sm attach harb 7")


@pytest.mark.parametrize(
    "command",
    [
        "sm budget raise harb 7 AMOUNT",
        "sm budget raise harb 7 --session AMOUNT",
        "sm budget raise harb --day AMOUNT",
        "sm budget raise --day AMOUNT",
    ],
)
def test_a_limit_is_raised_by_an_amount_that_the_person_writes(command: str) -> None:
    turn = TurnAtLimit.RESTS
    case = Case("limit-asked", "harb#7", limit="5 of 5 USD", turn=turn, raises=read_act(command))
    need = show_need(case)
    assert need.command == command
    assert need.text == "A budget is used up, and the agent rests (5 of 5 USD)"


def test_what_an_asked_session_waits_for_is_said_here_too() -> None:
    case = Case("escalate", "harb#7", reason="which colour?")
    said = OpenNeed(key="k", kind=NeedKind.QUESTION, text="", case=case)
    row = show(
        need=to_builtins(said),
        phase=ShownState.ESCALATED,
        waits_for="an answer: sm kill --all",
        why="call sm kill --all",
    )
    assert row.waits_for == "an answer: sm reply harb 7 TEXT"
    assert row.why == "The agent asks for a person (which colour?)"


@pytest.mark.parametrize(
    ("token_here", "shown"),
    [
        ("gh auth token", "sm review harb#8 --approve"),
        ("", "https://example.com/a/b/pulls/8"),
    ],
)
def test_a_review_is_by_the_account_that_is_set_here(token_here: str, shown: str) -> None:
    forge = GiteaSettings(
        repository="a/b", url="https://example.com", reviewer_token_command=token_here
    )
    case = Case("review-waits", "harb#7", pull=8, reviewed_at="https://example.org/a/b/pulls/8")
    need = show_need(case, forge=forge)
    assert (need.command, need.link) == (shown, "https://example.com/a/b/pulls/8")
