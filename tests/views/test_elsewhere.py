"""Rows of sessions that run elsewhere, of what their nodes say, which may be anything."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs, to_builtins

from sm.base.need import NeedKind
from sm.config.forges import GiteaSettings
from sm.issues.runners import Placement, Shown
from sm.sessions.activity import Evidence, Proof
from sm.views.elsewhere import make_row, take_on_review
from sm.views.open_need import OpenNeed
from sm.views.session import StatusRow
from sm.views.states import ShownState

NOW = 10_000.0
PLACED = Placement("harb", 7, "dev-harb-7", "ssh", "box", 1, "c" * 40, "x", NOW - 60)
ROW = StatusRow(
    project="harb",
    issue=7,
    title="Add a file",
    session="dev-harb-7",
    phase=ShownState.WORKING,
    age_s=50.0,
    worktree="/there",
    proof=Proof(Evidence.PROCESS, 1.0, "7"),
)


def show(trouble: str = "", **changed: Any) -> StatusRow:
    said = to_builtins(ROW) | changed
    return make_row(PLACED, Shown(said, NOW - 10, trouble), NOW)


def test_a_row_is_the_nodes_with_its_host_and_the_age_of_now() -> None:
    assert show() == structs.replace(ROW, host="box", age_s=60.0, last_event_age_s=10.0)


def test_a_host_that_does_not_answer_is_what_a_session_waits_for() -> None:
    row = show("host 'box' does not answer: no route")
    assert row.waits_for == "host 'box', which was heard last 10s ago"
    assert row.phase is ShownState.WORKING


def test_a_row_is_about_what_was_placed_whatever_a_node_says() -> None:
    row = show(project="other", issue=8, session="dev-other-8", host="here")
    assert (row.project, row.issue, row.session, row.host) == ("harb", 7, "dev-harb-7", "box")


@pytest.mark.parametrize(
    "changed", [{"phase": "nonsense"}, {"age_s": "long"}, {"title": None}, {"proof": 7}]
)
def test_a_row_of_another_shape_is_none(changed: dict[str, Any]) -> None:
    row = show(**changed)
    assert row.phase is ShownState.STARTING
    assert row.waits_for == "host 'box' to say how it stands"


def test_what_this_version_does_not_know_is_passed_over() -> None:
    assert show(colour="red").title == "Add a file"


def test_texts_are_one_line_and_not_endless() -> None:
    row = show(title="a\x1b]52;c;aGk=\x07\nb" * 1000)
    assert "\n" not in row.title
    assert len(row.title) <= 500


NEED = OpenNeed(
    key="dev-harb-7:question",
    kind=NeedKind.QUESTION,
    project="harb",
    issue=7,
    text="which colour?",
    command="sm reply harb 7 TEXT",
)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("sm reply harb 7 TEXT", "sm reply harb 7 TEXT"),
        ("sm reply harb 7 x; rm -rf ~", "sm attach harb#7"),
        ("rm -rf ~", "sm attach harb#7"),
        ("sm reply harb 7 $(id)", "sm attach harb#7"),
        ("sm reply harb 7 `id`", "sm attach harb#7"),
        ("sm send harb#7 x\nid", "sm attach harb#7"),
        ("https://example.com/a/b/pulls/8", "https://example.com/a/b/pulls/8"),
        ("https://example.com/;id", "sm attach harb#7"),
        ("javascript:x", "sm attach harb#7"),
    ],
)
def test_a_command_to_copy_is_one_of_sm(command: str, shown: str) -> None:
    need = structs.replace(NEED, command=command, project="other", issue=8, link="javascript:x")
    found = show(need=to_builtins(need)).need
    assert found
    assert (found.command, found.name, found.project, found.link) == (shown, "harb#7", "harb", "")


@pytest.mark.parametrize(
    ("page", "token_here", "shown"),
    [
        ("https://example.com/a/b/pulls/8", "gh auth token", "sm review harb#8 --approve"),
        ("https://example.com/a/b/pulls/8", "", "https://example.com/a/b/pulls/8"),
        ("https://example.org/a/b/pulls/8", "gh auth token", "https://example.org/a/b/pulls/8"),
    ],
)
def test_a_review_is_by_the_account_that_is_set_here(
    page: str, token_here: str, shown: str
) -> None:
    forge = GiteaSettings(
        repository="a/b", url="https://example.com", reviewer_token_command=token_here
    )
    need = structs.replace(NEED, kind=NeedKind.REVIEW, command=page)
    found = take_on_review(forge, show(need=to_builtins(need))).need
    assert found
    assert found.command == shown
