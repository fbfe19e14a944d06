from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from sm.adapters.forge.errors import (
    AtWorkError,
    BaseMovedError,
    ChecksNotPassedError,
    ConflictError,
    HeadMovedError,
    NotApprovedError,
    PullClosedError,
)
from sm.adapters.forge.model import PullState, ReviewState
from sm.base.act_guard import OvertakenError, guard_acts
from sm.base.errors import SmError
from tests.helpers import HANG_S, git, refuse_act
from tests.hub import Hub, make_hub

CI = "test ! -e bad"

pytestmark = pytest.mark.usefixtures("root")


def parents(hub: Hub, commit: str) -> list[str]:
    return git(hub.repository.bare, "rev-list", "--parents", "-1", commit).split()[1:]


def test_merge_is_a_commit_with_both_parents(hub: Hub) -> None:
    head, base = hub.push("fix/1"), hub.main()
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "Mend it", author="sm")
    merged = forge.pulls.merge(1, author="Eve Ning", head=head)
    assert (merged.state, merged.merged_as) == (PullState.MERGED, hub.main())
    assert parents(hub, "main") == [base, head]
    said = git(hub.repository.bare, "log", "-1", "--format=%an %cn %s %b", "main")
    assert said == "Eve Ning Eve Ning Merge branch 'fix/1' (#1) Mend it"
    assert hub.open().pulls.read(1) == merged


def test_merged_one_is_returned_and_not_merged_again(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    first = forge.pulls.merge(1, author="x", message="Mine\n")
    assert forge.pulls.merge(1, author="x", head=head) == first
    assert git(hub.repository.bare, "log", "-1", "--format=%s", "main") == "Mine"


def test_conflict_is_refused_with_its_files(hub: Hub) -> None:
    hub.push("fix/1", "README.md", "mine\n")
    hub.open().pulls.open("fix/1", "main", "T", author="sm")
    git(hub.repository.clone, "checkout", "-q", "main")
    before = hub.repository.commit("README.md", "theirs\n")
    with pytest.raises(ConflictError, match="'fix/1' conflicts with 'main' in 'README"):
        hub.open().pulls.merge(1, author="x")
    assert hub.main() == before


def test_moved_head_is_refused(hub: Hub) -> None:
    head, before = hub.push("fix/1"), hub.main()
    hub.open().pulls.open("fix/1", "main", "T", author="sm")
    hub.push("fix/1", content="unreviewed\n")
    with pytest.raises(HeadMovedError, match=f"and not at {head[:12]} any more"):
        hub.open().pulls.merge(1, author="x", head=head)
    assert hub.main() == before


def test_closed_one_is_refused(hub: Hub) -> None:
    hub.push("fix/1")
    hub.open().pulls.open("fix/1", "main", "T", author="sm")
    hub.edit("pulls/0001.md", "state: open", "state: closed")
    with pytest.raises(PullClosedError):
        hub.open().pulls.merge(1, author="x")


def test_red_and_unfinished_checks_are_refused(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=CI)
    head, before = hub.push("fix/1", "bad"), hub.main()
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    with pytest.raises(AtWorkError, match="CI has not finished"):
        forge.pulls.merge(1, author="x")
    assert hub.checked(head) == "failure"
    with pytest.raises(ChecksNotPassedError, match="CI failed on"):
        forge.pulls.merge(1, author="x")
    assert hub.main() == before


def test_green_check_is_merged(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, ci=CI)
    head = hub.push("fix/1")
    hub.open().pulls.open("fix/1", "main", "T", author="sm")
    assert hub.checked(head) == "success"
    assert hub.open().pulls.merge(1, author="x").state is PullState.MERGED


def test_approval_is_needed_and_only_of_the_last_commit(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, review=True)
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    with pytest.raises(NotApprovedError, match="is not approved at"):
        forge.pulls.merge(1, author="x")
    forge.pulls.review(1, ReviewState.APPROVED, author="eve")
    hub.push("fix/1", content="more\n")
    with pytest.raises(NotApprovedError, match="is not approved at"):
        forge.pulls.merge(1, author="x")
    forge.pulls.review(1, ReviewState.CHANGES_REQUESTED, "no", author="bob")
    forge.pulls.review(1, ReviewState.APPROVED, author="eve")
    with pytest.raises(NotApprovedError, match="'bob' wants changes"):
        forge.pulls.merge(1, author="x")
    forge.pulls.review(1, ReviewState.APPROVED, author="bob")
    assert forge.pulls.merge(1, author="x").state is PullState.MERGED


def _merge(hub: Hub, number: int, ends: multiprocessing.SimpleQueue[str]) -> None:
    try:
        ends.put(hub.open().pulls.merge(number, author="x").merged_as)
    except Exception as error:
        ends.put(f"error: {error}")


def test_merges_at_the_same_time_all_get_in(hub: Hub) -> None:
    forge = hub.open()
    heads = [hub.push(f"fix/{n}", f"file{n}") for n in range(1, 5)]
    for n in range(1, 5):
        forge.pulls.open(f"fix/{n}", "main", "T", author="sm")
    context = multiprocessing.get_context("fork")
    ends: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    # Each of them twice, as two reactors would.
    numbers = [1, 1, 2, 2, 3, 3, 4, 4]
    runs = [context.Process(target=_merge, args=(hub, number, ends)) for number in numbers]
    for run in runs:
        run.start()
    merged = [ends.get() for _ in runs]
    for run in runs:
        run.join(HANG_S)
    assert len(set(merged)) == 4, merged
    log = git(hub.repository.bare, "rev-list", "--merges", "main").split()
    assert sorted(log) == sorted(set(merged))
    assert all(forge.repository.contains("main", head) for head in heads)
    assert {pull.merged_as for pull in forge.pulls.find(PullState.MERGED)[0]} == set(merged)
    # None was made that another one had to be made in place of.
    assert "commit" not in git(hub.repository.bare, "fsck", "--unreachable", "--no-progress")


def test_branch_that_moves_in_the_midst_of_a_merge_stops_it(hub: Hub) -> None:
    old, base = hub.push("fix/1"), hub.main()
    new = hub.push("fix/1", content="more\n")
    repository = hub.open().repository
    with pytest.raises(BaseMovedError, match="has moved"):
        repository.advance("main", new, base, "fix/1", old)
    with pytest.raises(BaseMovedError, match="has moved"):
        repository.advance("main", new, old, "fix/1", new)
    assert hub.main() == base


def test_a_merge_of_an_attempt_that_is_overtaken_by_then_moves_nothing(hub: Hub) -> None:
    head, base = hub.push("fix/1"), hub.main()

    with guard_acts(refuse_act), pytest.raises(OvertakenError):
        hub.open().repository.advance("main", head, base, "fix/1", head)
    assert hub.main() == base


def test_git_that_is_too_old_is_told(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.push("fix/1")
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    real = shutil.which("git")
    old.write_text(f'#!/bin/sh\ncase $* in *merge-tree*) exit 129 ;; esac\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(SmError, match=r"needs git 2\.38 or later"):
        hub.open().pulls.open("fix/1", "main", "T", author="sm")


@pytest.mark.parametrize("point", ["forge.before-merge", "forge.after-merge"])
def test_merge_that_was_killed_is_finished_by_the_next(
    hub: Hub, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    monkeypatch.setenv("SM_CRASH_AT", point)
    child = os.fork()
    if child == 0:
        hub.open().pulls.merge(1, author="x")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    monkeypatch.delenv("SM_CRASH_AT")
    merged = forge.pulls.merge(1, author="x")
    assert merged.merged_as == hub.main()
    assert len(git(hub.repository.bare, "rev-list", "--merges", "main").split()) == 1
