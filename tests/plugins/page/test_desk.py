"""What is decided about a pull request is of the commit that was shown, and of no other."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sm.adapters.forge.local import forge
from sm.adapters.forge.model import PullState, ReviewState
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import git, make_repository, open_project, sm_yaml
from tests.plugins.page.client import Browser, make_server
from tests.plugins.page.offered import look, offer, push

HEAD = re.compile(r'name="head" value="([0-9a-f]{40})"')


@pytest.fixture
def offered(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    repository = make_repository(tmp_path)
    forge.create(tmp_path / "forge", repository.bare)
    path = sm_yaml(tmp_path, merge={"by": "sm"})
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


@pytest.fixture
def browser(offered: Project) -> Browser:
    browser = Browser(make_server(offered.machine))
    browser.log_in()
    return browser


def about(project: Project, number: int, head: str) -> dict[str, str]:
    return {"project": project.name, "number": str(number), "head": head, "known": ""}


@pytest.mark.parametrize("act", ["approve", "request-changes", "merge"])
def test_a_commit_that_came_behind_the_shown_one_is_not_decided_about(
    offered: Project, browser: Browser, act: str
) -> None:
    issue, number = offer(offered)
    shown = offered.forge.pulls.read_head(number)
    for content in ("second\n", "third\n"):
        push(offered, issue, content)
    answer = browser.act(act=act, text="No.", **about(offered, number, shown))
    assert answer.status_code == 409
    assert "2 new commits in pull request" in answer.text
    assert answer.headers["hx-trigger"] == '{"sm-moved":"2 new commits"}'
    pull = offered.forge.pulls.read(number)
    assert (pull.state, pull.reviews) == (PullState.OPEN, ())


def test_changes_and_forms_are_of_one_commit(offered: Project, browser: Browser) -> None:
    issue, number = offer(offered)
    path = f"/page/session/dev-{offered.name}-{issue}"
    first = offered.forge.pulls.read_head(number)
    assert set(HEAD.findall(browser.get(path).text)) == {first}
    second = push(offered, issue, "not yet looked at\n")  # no look has seen it
    desk = browser.get(f"{path}/desk").text
    assert "<code>not yet looked at</code>" in desk
    assert set(HEAD.findall(desk)) == {second}
    assert f'data-head="{second}" data-seen="{first}"' in desk
    assert "Approve and merge" not in desk, "CI has not passed there"
    assert browser.get(f"{path}/news?head={first}").text == "1 new commit"
    assert browser.get(f"{path}/news?head={second}").text == ""


def test_what_is_not_pushed_is_shown_apart(offered: Project, browser: Browser) -> None:
    issue, _ = offer(offered)
    worktree = Path(offered.settings.worktree(issue))
    path = f"/page/session/dev-{offered.name}-{issue}"
    assert (
        "Nothing is committed that the pull request lacks" in browser.get(f"{path}/unpushed").text
    )
    (worktree / "mine.txt").write_text("kept back\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "mine")
    assert "<code>kept back</code>" in browser.get(f"{path}/unpushed").text
    assert "kept back" not in browser.get(f"{path}/desk").text
    assert "Not pushed" in browser.get(path).text


def test_a_button_that_merges_says_so(offered: Project, browser: Browser) -> None:
    _, number = offer(offered)
    page = browser.read_needs()
    assert ">Approve and merge</button>" in page
    assert f"Approves pull request {number} at" in page
    assert "and merges it: nothing else is missing" in page
    head = offered.forge.pulls.read_head(number)
    said = browser.act(act="approve", **about(offered, number, head)).text
    assert "and nothing else is missing: sm merges it now" in said


def test_of_two_verdicts_at_once_one_is_given_and_the_other_one_is_told(
    offered: Project, browser: Browser
) -> None:
    _, number = offer(offered)
    head = offered.forge.pulls.read_head(number)
    fields = about(offered, number, head) | {"text": "No."}
    others = Browser(make_server(offered.machine))
    others.log_in()
    with ThreadPoolExecutor(2) as both:
        one = both.submit(browser.act, act="approve", **fields)
        other = both.submit(others.act, act="request-changes", **fields)
        answers = [one.result(), other.result()]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    [refused] = [answer.text for answer in answers if answer.status_code == 409]
    [given] = offered.forge.pulls.read(number).reviews
    assert f"{given.author} was first: {given.state} {head[:12]}" in refused
    look(offered)
    again = browser.act(
        act="request-changes", **about(offered, number, head) | {"text": "No.", "known": given.id}
    )
    assert again.status_code == 200, "who has seen it may decide otherwise"
    assert offered.forge.pulls.read(number).reviews[-1].state is ReviewState.CHANGES_REQUESTED
