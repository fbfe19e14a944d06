"""What keeps a forge from merging is named before a merge is tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.forge.errors import BaseMovedError, BehindError, MergeRefusedError
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import BOT, CheckState, Hold, PullRequest
from sm.adapters.forge.protocol import Limited
from sm.config.schema import ProjectSettings
from sm.plugins.forges.rest.forge import RestForge
from tests.forges.gitea import Gitea
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, github_of, opened, remote_side
from tests.hub import make_hub

GITEAS = ("forgejo", "gitea")
RULE: dict[str, Any] = {
    "dismiss_stale_reviews_on_push": False,
    "require_code_owner_review": False,
    "require_last_push_approval": False,
    "required_approving_review_count": 0,
    "required_review_thread_resolution": False,
}
"""What a rule for pull requests on GitHub has at least."""


@pytest.fixture
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        side.state.labels = ["backlog", "in-progress", "blocked"]
        yield side


def on(*kinds: str) -> pytest.MarkDecorator:
    """Test each of these forges."""
    return pytest.mark.parametrize("side", kinds, indirect=True)


def gitea_of(side: RemoteSide) -> Gitea:
    assert isinstance(side.dialect, Gitea)
    return side.dialect


def configure(side: RemoteSide, **keys: Any) -> ProjectSettings:
    """The project with these keys of its forge."""
    project = side.project
    return structs.replace(project, forge=structs.replace(project.forge, **keys))


def list_problems(side: RemoteSide, **keys: Any) -> list[str]:
    """What doctor says of the project with these keys of its forge."""
    project = configure(side, **keys)
    return list(kind_of(project.forge).find_problems(project, ""))


def list_limits(side: RemoteSide, **keys: Any) -> list[str]:
    forge = open_forge(configure(side, **keys), None, side.folder)
    assert isinstance(forge, Limited)
    return list(forge.find_limits())


def look_at(side: RemoteSide) -> set[PullRequest]:
    """The pull request as a look anew, one after it, and a single question show it."""
    since = side.open().observe()
    [pull], [again] = since.pulls, side.open().observe(since).pulls
    found = side.open().pulls.read(pull.number)
    return {
        structs.replace(one, check=pull.check, reviews=(), body="", comments=(), touched="")
        for one in (pull, again, found)
    }


def held(side: RemoteSide) -> tuple[Hold, str]:
    [pull] = {structs.replace(one, merged_as="") for one in look_at(side)}
    return pull.hold, pull.held


# How it may be merged


@pytest.mark.parametrize(
    ("side", "flags", "method", "ways"),
    [
        ("github", {"allow_merge_commit": False, "allow_rebase_merge": False}, "merge", "squash"),
        (
            "gitea",
            {"allow_merge_commits": False, "allow_rebase_explicit": False},
            "merge",
            "fast-forward-only, rebase, squash",
        ),
        (
            "forgejo",
            {"allow_rebase": False},
            "rebase",
            "fast-forward-only, merge, rebase-merge, squash",
        ),
        (
            "gitea",
            {"allow_fast_forward_only_merge": None},
            "fast-forward-only",
            "merge, rebase, rebase-merge, squash",
        ),
        ("gitlab", {"squash_option": "never"}, "squash", "merge, rebase"),
    ],
    indirect=["side"],
)
def test_doctor_names_a_method_that_the_repository_does_not_allow(
    side: RemoteSide, flags: dict[str, Any], method: str, ways: str
) -> None:
    assert list_problems(side, merge_method=method) == []
    side.state.flags = flags
    [said] = list_problems(side, merge_method=method)
    assert f"does not allow forge.merge_method '{method}' for 'main' (allowed: {ways})" in said


@on("github")
@pytest.mark.parametrize(
    "rules",
    [
        [{"type": "pull_request", "parameters": RULE | {"allowed_merge_methods": ["squash"]}}],
        [{"type": "required_linear_history"}],
    ],
)
def test_doctor_names_a_method_that_a_ruleset_does_not_allow(
    side: RemoteSide, rules: list[dict[str, Any]]
) -> None:
    side.state.rules = rules
    [said] = list_problems(side)
    assert "does not allow forge.merge_method 'merge'" in said
    assert list_problems(side, merge_method="squash") == []


@on("github", *GITEAS, "gitlab")
def test_doctor_names_an_archived_repository(side: RemoteSide) -> None:
    side.state.flags = {"archived": True}
    assert [one for one in list_problems(side) if "is archived" in one]


# What holds it


@on("github")
def test_a_draft_is_held_on_github(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    pull = side.state.entries[number].pull
    assert pull
    pull.is_draft = True
    since = side.open().observe()
    assert (since.pulls[0].hold, since.pulls[0].held) == (
        Hold.BLOCKED,
        "it is a draft: mark it as ready",
    )


@on(*GITEAS)
@pytest.mark.parametrize("title", ["WIP: a", "[wip] a", "wip: a"])
def test_a_draft_is_held_on_gitea_and_forgejo(side: RemoteSide, title: str) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.entries[number].title = title
    assert held(side) == (Hold.BLOCKED, "it is a draft: mark it as ready")


@on(*GITEAS)
@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("WIP: a new parser", "a new parser"),
        ("[WIP] wip: a new parser", "a new parser"),
        ("wipe: a new parser", "wipe: a new parser"),
        ("WIP:", "WIP:"),
    ],
)
def test_what_sm_offers_is_no_draft(side: RemoteSide, title: str, shown: str) -> None:
    side.push("fix/1")
    assert side.open().pulls.open("fix/1", "main", title, author=BOT).title == shown


@on(*GITEAS)
def test_an_account_that_may_not_merge_is_named(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    assert held(side) == (Hold.NONE, "")
    gitea_of(side).may_merge = False
    side.open().observe()
    assert held(side) == (Hold.BLOCKED, "the account of the token may not merge into 'main'")
    assert "may not merge into 'main'" in list_problems(side)[0]


@on(*GITEAS)
def test_a_branch_that_is_behind_is_held_once_the_forge_has_refused_it(side: RemoteSide) -> None:
    """They tell the rule to administrators alone, so the first refusal tells it."""
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.runs.clear()
    side.push("main", "more.txt")
    side.finish(head, CheckState.SUCCESS)
    gitea_of(side).is_strict = True
    assert held(side) == (Hold.NONE, "")
    with pytest.raises(BehindError, match="rebase it and push"):
        open_unreviewed(side).pulls.merge(number, head=head, author=BOT)
    assert held(side) == (Hold.BEHIND, "the branch is behind 'main'")


def open_unreviewed(side: RemoteSide) -> RestForge[Any]:
    """The forge of a project that asks for no review."""
    project = side.project
    review = structs.replace(project.review, required=False)
    made: object = open_forge(structs.replace(project, review=review), None, side.folder)
    assert isinstance(made, RestForge)
    return made


@on("github")
@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        # JSONbored/loopover#5042 has met it.
        ("Merge already in progress", BaseMovedError, "cannot be merged yet"),
        # akuity/kargo#6490 shows the words.
        ("Squash merges are not allowed on this repository.", MergeRefusedError, "are not allowed"),
    ],
)
def test_githubs_words_at_a_merge_lead_to_what_helps(
    side: RemoteSide, words: str, kind: type[Exception], said: str
) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.site.faults = [Fault("/merge", "PUT", reply=Reply(405, {"message": words}))]
    with pytest.raises(kind, match=said):
        open_unreviewed(side).pulls.merge(number, head=head, author=BOT)


# Who pushes


LAST_PUSH = RULE | {"required_approving_review_count": 1, "require_last_push_approval": True}


@on("github")
def test_doctor_says_that_the_approval_of_who_pushes_does_not_count(side: RemoteSide) -> None:
    side.push("main", "first.txt")
    assert not [one for one in list_limits(side) if "last push" in one]
    side.state.rules = [{"type": "pull_request", "parameters": LAST_PUSH}]
    kept = side.folder / "rules.json"
    kept.unlink(missing_ok=True)
    assert [one for one in list_limits(side) if "'main' wants the last push approved" in one]
    assert not [one for one in list_limits(side, git_access="agents") if "last push" in one]


@on("github")
def test_what_is_held_says_that_somebody_else_has_to_approve(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.rules = [{"type": "pull_request", "parameters": LAST_PUSH}]
    pull = side.state.entries[number].pull
    assert pull
    pull.merge_state, pull.decision = "BLOCKED", "REVIEW_REQUIRED"
    assert "somebody who has not made the last push" in held(side)[1]


@on("github")
def test_doctor_says_that_a_classic_token_may_push_no_workflow(side: RemoteSide) -> None:
    github_of(side).scopes = "repo, read:org"
    [said] = list_limits(side, git_access="agents")
    assert "no scope 'workflow'" in said
    assert list_limits(side) == [], "git has another one"
    github_of(side).scopes = "repo, workflow"
    assert list_limits(side, git_access="agents") == []
    github_of(side).scopes = ""
    assert list_limits(side, git_access="agents") == [], "a fine-grained one does not say"
