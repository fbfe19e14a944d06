"""What GitHub takes for the same, and what it says that leads further."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.errors import AtWorkError, RefusedError
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.model import BOT, CheckState, InlineComment, IssueState, ReviewState
from sm.adapters.forge.protocol import Accounted
from sm.base.foreign import tidy_name
from sm.config.load import load
from sm.plugins.doctor.project import check_forge
from sm.sessions.project import Project
from sm.setup.finding import Level
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, opened

# Labels


def test_a_label_in_another_spelling_is_the_same(side: RemoteSide) -> None:
    side.state.labels = ["Backlog", "In-Progress"]
    made = kind_of(side.project.forge).prepare(side.project.forge, side.hub.project.repo)
    assert made == ["made the label 'blocked' in 'harbor/harb'"]
    entry = side.state.add("a", "", "ada")
    side.state.label(entry, ["Backlog", "Other"], "ada")
    issues = side.open().issues
    assert [one.labels for one in side.open().observe().issues] == [("backlog", "Other")]
    assert [one.number for one in issues.find(IssueState.OPEN, ["backlog"])[0]] == [entry.number]
    assert issues.read_source(entry.number).labelled["backlog"].by == "ada"
    assert issues.remove_label(entry.number, "backlog").labels == ("Other",)
    assert entry.labels == ["Other"]


def test_a_label_that_another_process_has_made_meanwhile_is_there(side: RemoteSide) -> None:
    side.state.labels = ["blocked", "in-progress"]
    taken = [{"resource": "Label", "code": "already_exists", "field": "name"}]
    said = Reply(422, {"message": "Validation Failed", "errors": taken})
    side.site.faults = [Fault("/labels", "POST", reply=said)]
    made = kind_of(side.project.forge).prepare(side.project.forge, side.hub.project.repo)
    assert made == ["made the label 'backlog' in 'harbor/harb'"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\U0001f469\u200d\U0001f4bb backlog", "\U0001f469\u200d\U0001f4bb backlog"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),
        ("back\u200dlog", "back\u200dlog\N{REPLACEMENT CHARACTER}"),
        ("\u200d\U0001f4bb", "\u200d\U0001f4bb\N{REPLACEMENT CHARACTER}"),
        ("back\u202elog", "back\u202elog\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_emoji_may_be_joined_and_nothing_else_may_hide(name: str, shown: str) -> None:
    assert tidy_name(name) == shown


# An app


def test_an_app_comments_more_than_once(side: RemoteSide) -> None:
    """Its token may not ask for its user, and GraphQL tells its name."""
    entry = side.state.add("a", "", "ada")
    forge = side.open_as("helper[bot]")
    assert forge.issues.comment(entry.number, "one", author=BOT, marker="m1")
    assert forge.issues.comment(entry.number, "two", author=BOT, marker="m2")
    assert not forge.issues.comment(entry.number, "two", author=BOT, marker="m2")
    assert isinstance(forge, Accounted)
    assert forge.find_account() == "helper[bot]"


# Refusals


def test_the_address_at_which_a_token_is_authorised_is_shown(side: RemoteSide) -> None:
    said = Reply(
        403,
        {"message": "Resource protected by organization SAML enforcement."},
        {
            "X-GitHub-SSO": "required; url=https://github.com/orgs/harbor/sso?authorization_request=A"
        },
    )
    side.site.faults = [Fault("/repos/harbor/harb", times=9, reply=said)]
    [problem] = kind_of(side.project.forge).find_problems(side.project, "")
    assert "SAML enforcement. Do that at https://github.com/orgs/harbor/sso?auth" in problem


def test_ci_that_runs_already_is_waited_for(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE)
    said = Reply(403, {"message": "This workflow is already running"})
    side.site.faults = [Fault("/rerun", "POST", reply=said)]
    with pytest.raises(AtWorkError):
        side.open().checks.rerun(head)


# A mention of oneself


def test_doctor_says_that_a_question_names_the_account_that_writes_it(
    side: RemoteSide, tmp_path: Path
) -> None:
    """As with a token of the person's own, who then files the issues, too."""
    config = load(side.hub.config, os.environ, tmp_path)

    def warnings(**escalation: object) -> list[str]:
        changed = structs.replace(side.project.escalation, **escalation)
        project = structs.replace(side.project, escalation=changed)
        found = check_forge(Project(config, project))
        return [one.what for one in found if one.level is Level.WARN]

    side.state.add("a", "", "ada")
    assert warnings() == []
    side.state.add("b", "", BOT)
    [said] = warnings()
    assert f"'{BOT}' hears of a question by other channels alone" in said
    assert warnings(mention=("ada",)) == []
    assert len(warnings(mention=("ada", BOT))) == 1


# A remark outside the diff


def test_a_remark_outside_the_diff_stands_in_the_text_and_the_others_stay(side: RemoteSide) -> None:
    number, _ = opened(side)
    remarks = [
        InlineComment("fix-1.txt", 1, "here"),
        InlineComment("fix-1.txt", 40, "far away"),
        InlineComment("other.txt", 2, "elsewhere"),
    ]
    side.open().pulls.review(
        number, ReviewState.CHANGES_REQUESTED, "Not yet.", remarks, author="rita"
    )
    [found] = side.open().pulls.read(number).reviews
    assert found.body == "Not yet.\n\n`fix-1.txt:40`: far away\n\n`other.txt:2`: elsewhere"
    assert [(one.path, one.line, one.body) for one in found.comments] == [("fix-1.txt", 1, "here")]


def test_another_refusal_of_a_review_is_one(side: RemoteSide) -> None:
    number, _ = opened(side)
    said = Reply(422, {"message": "Unprocessable Entity", "errors": ["Body is too long"]})
    side.site.faults = [Fault("/reviews", "POST", reply=said)]
    with pytest.raises(RefusedError, match="too long"):
        side.open().pulls.review(
            number,
            ReviewState.COMMENTED,
            "a",
            [InlineComment("fix-1.txt", 1, "here")],
            author="rita",
        )
