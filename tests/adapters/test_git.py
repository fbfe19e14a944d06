from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.git import Git
from sm.adapters.git_call import (
    GitLockedError,
    NoSuchBranchError,
    NoSuchRemoteError,
    NotARepositoryError,
    RemoteUnreachableError,
    make_environment,
)
from sm.adapters.git_push import ABSENT, PushRefusedError, RefExistsError, RefMovedError, Update
from tests.helpers import Repository, create_refs, git


@pytest.fixture
def clone(repository: Repository) -> Git:
    return Git(repository.clone)


def refuse(bare: Path, words: str) -> None:
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho '{words}'\nexit 1\n")
    hook.chmod(0o755)


def test_environment_keeps_settings_and_drops_what_leads_elsewhere() -> None:
    env = {
        "PATH": "/bin",
        "GIT_DIR": "/x",
        "GIT_WORK_TREE": "/x",
        "GIT_INDEX_FILE": "/x",
        "GIT_TRACE": "1",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_COMMITTER_DATE": "now",
    }
    seen = make_environment(Path("/repo/clone"), env)
    assert {n for n in seen if n in env} == {"PATH", "GIT_SSH_COMMAND", "GIT_COMMITTER_DATE"}
    assert (seen["GIT_TERMINAL_PROMPT"], seen["LC_ALL"]) == ("0", "C")


def test_a_hooks_git_dir_does_not_redirect(
    clone: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = clone.rev_parse("HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere.git"))
    assert clone.rev_parse("HEAD") == head is not None


def test_missing_revision_is_none(clone: Git) -> None:
    assert clone.rev_parse("refs/heads/nope") is None
    assert clone.rev_parse("--help") is None


def test_folder_inside_a_repository_is_not_that_repository(clone: Git) -> None:
    inner = clone.repo / "inner"
    inner.mkdir()
    for folder in (inner, clone.repo / "missing"):
        with pytest.raises(NotARepositoryError, match=f"'{folder}' cannot be used"):
            Git(folder).status()


def test_unknown_remote_is_named(clone: Git) -> None:
    with pytest.raises(NoSuchRemoteError, match="has no remote 'upstream'"):
        clone.ls_remote("upstream")


def test_remote_that_is_gone_is_unreachable(repository: Repository, clone: Git) -> None:
    repository.bare.rename(repository.bare.with_name("away.git"))
    with pytest.raises(
        RemoteUnreachableError, match=r"cannot reach remote 'origin'.*hub\.git"
    ) as e:
        clone.ls_remote("origin")
    assert e.value.exit_code == 4
    with pytest.raises(RemoteUnreachableError):
        create_refs(clone, {"refs/heads/x": clone.rev_parse("HEAD") or ""})


def test_credentials_of_a_remote_are_not_in_the_message(clone: Git) -> None:
    git(clone.repo, "remote", "add", "web", "http://ada:hunter22@127.0.0.1:1/x.git")
    with pytest.raises(RemoteUnreachableError) as error:
        clone.ls_remote("web")
    assert "hunter22" not in error.value.message


def test_fetch_of_a_missing_branch_says_which(clone: Git) -> None:
    with pytest.raises(NoSuchBranchError, match="refs/heads/nope"):
        clone.fetch_branch("origin", "nope")


def test_fetch_leaves_the_users_refs_alone(repository: Repository, clone: Git) -> None:
    git(clone.repo, "config", "fetch.prune", "true")
    git(clone.repo, "update-ref", "refs/remotes/origin/gone", "HEAD")
    head = git(repository.bare, "rev-parse", "main")
    git(repository.bare, "tag", "v1", "main")
    assert clone.fetch_branch("origin", "main") == head
    assert clone.rev_parse("refs/remotes/origin/gone") == head
    assert clone.rev_parse("refs/tags/v1") is None
    assert not (clone.repo / ".git/FETCH_HEAD").exists()


def test_a_branch_that_is_known_as_the_remote_has_it_is_not_fetched(
    repository: Repository, clone: Git, tmp_path: Path
) -> None:
    head = clone.fetch_branch("origin", "main")
    away = repository.bare.rename(tmp_path / "away.git")
    assert clone.fetch_branch("origin", "main", at=head) == head
    away.rename(repository.bare)
    assert clone.fetch_branch("origin", "main", at="1" * 40) == head  # it is looked


def test_which_commit_contains_which_is_asked_once(repository: Repository, clone: Git) -> None:
    first = clone.rev_parse("HEAD") or ""
    second = repository.commit("b", "b")
    assert clone.ancestry(first, second)
    assert not clone.is_ancestor(second, first)
    assert clone.ancestry("1" * 40, first) is None
    (clone.repo / ".git").rename(clone.repo / "away")
    assert clone.ancestry(first, second)
    assert not clone.is_ancestor(second, first)


def test_a_branch_has_its_settings_also_beside_another_with_the_same(clone: Git) -> None:
    for key, value in (("remote", "origin"), ("merge", "refs/heads/fix/7")):
        git(clone.repo, "config", f"branch.my.fix/7.{key}", value)
    git(clone.repo, "config", "--add", "branch.fix/7.pushRemote", "elsewhere")
    for _ in range(2):
        clone.track("fix/7", "origin")
        assert clone.setting("branch.fix/7.remote") == "origin"
        assert clone.setting("branch.fix/7.merge") == "refs/heads/fix/7"
        assert clone.setting("branch.fix/7.pushRemote") == "origin"


def test_ls_remote_maps_names_to_commits(clone: Git) -> None:
    assert clone.ls_remote("origin", "refs/heads/*") == {"refs/heads/main": clone.rev_parse("HEAD")}
    assert clone.ls_remote("origin", "refs/nope/*") == {}


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\u009b", "\u202e"])
def test_branch_name_that_looks_like_two_lines_is_one(clone: Git, character: str) -> None:
    name = f"refs/heads/evil{character}2J"
    git(clone.repo, "push", "-q", "origin", f"HEAD:{name}")
    assert set(clone.ls_remote("origin", "refs/heads/*")) == {"refs/heads/main", name}
    bare = BareRepository(Path(git(clone.repo, "remote", "get-url", "origin")))
    assert set(bare.heads()) == {"main", name.removeprefix("refs/heads/")}


def test_push_creates_all_or_nothing(clone: Git) -> None:
    head = clone.rev_parse("HEAD") or ""
    assert create_refs(clone, {"refs/a/1": head}) == {"refs/a/1"}
    other = clone.write_object("commit", clone.commit_text(head).encode() + b"more\n")
    with pytest.raises(RefExistsError, match="'refs/a/1' exists on remote 'origin' already"):
        create_refs(clone, {"refs/a/1": other, "refs/heads/new": head})
    assert "refs/heads/new" not in clone.ls_remote("origin")


def test_push_of_what_is_there_changes_nothing(clone: Git) -> None:
    head = clone.rev_parse("HEAD") or ""
    assert create_refs(clone, {"refs/heads/main": head}) == frozenset()


def test_update_needs_the_expected_value(clone: Git) -> None:
    head = clone.rev_parse("HEAD") or ""
    other = clone.write_object("commit", clone.commit_text(head).encode() + b"more\n")
    with pytest.raises(RefMovedError, match="'refs/heads/main' on remote 'origin' has changed"):
        clone.push("origin", Update("refs/heads/main", other, other))
    assert clone.push("origin", Update("refs/heads/main", other, head)) == {"refs/heads/main"}


@pytest.mark.parametrize(
    ("ref", "expected", "error"),
    [("refs/heads/main", "HEAD", RefMovedError), ("refs/claims/1", ABSENT, RefExistsError)],
)
def test_who_is_overtaken_while_he_pushes_is_told_so(
    clone: Git, ref: str, expected: str, error: type[RefMovedError]
) -> None:
    """The remote changes between what it says of itself and what it is asked to do."""
    head = clone.rev_parse("HEAD") or ""
    ours, theirs = (
        clone.write_object("commit", clone.commit_text(head).encode() + words)
        for words in (b"ours\n", b"theirs\n")
    )
    hook = clone.repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec git push -q --no-verify origin +{theirs}:{ref}\n")
    hook.chmod(0o755)
    with pytest.raises(RefMovedError) as raised:
        clone.push("origin", Update(ref, ours, expected and head), verify=True)
    assert type(raised.value) is error
    assert clone.ls_remote("origin", ref) == {ref: theirs}


def test_delete_needs_the_expected_value_and_may_be_repeated(clone: Git) -> None:
    head = clone.rev_parse("HEAD") or ""
    create_refs(clone, {"refs/heads/old": head})
    with pytest.raises(RefMovedError):
        clone.delete_ref("origin", "refs/heads/old", expect="1" * 40)
    clone.delete_ref("origin", "refs/heads/old", expect=head)
    clone.delete_ref("origin", "refs/heads/old", expect=head)
    assert "refs/heads/old" not in clone.ls_remote("origin")


def test_refusal_carries_the_remotes_words(repository: Repository, clone: Git) -> None:
    refuse(repository.bare, "branch is protected")
    with pytest.raises(PushRefusedError, match="refuses the push: branch is protected"):
        clone.push("origin", Update("refs/heads/x", clone.rev_parse("HEAD") or "", ABSENT))


def test_the_users_pre_push_hook_is_not_run(clone: Git) -> None:
    hook = clone.repo / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    create_refs(clone, {"refs/heads/x": clone.rev_parse("HEAD") or ""})


def test_dead_lock_is_named(clone: Git) -> None:
    lock = clone.repo / ".git/refs/heads/x.lock"
    lock.touch()
    with pytest.raises(GitLockedError, match=r"x\.lock' is locked by another git"):
        clone.create_branch("x", clone.rev_parse("HEAD") or "")


def test_lock_on_the_remote_is_named(repository: Repository, clone: Git) -> None:
    (repository.bare / "refs/heads/x.lock").touch()
    with pytest.raises(GitLockedError, match=r"x\.lock'"):
        create_refs(clone, {"refs/heads/x": clone.rev_parse("HEAD") or ""})


def test_a_worktree_that_another_git_just_makes_is_waited_for(clone: Git, tmp_path: Path) -> None:
    git(clone.repo, "branch", "x")
    clone.add_worktree(tmp_path / "x", "x")
    begun = clone.repo / ".git/worktrees/x/commondir"
    whole = begun.read_text()
    begun.write_text("")
    later = threading.Timer(0.1, begun.write_text, (whole,))
    later.start()
    assert [one.branch for one in clone.worktrees()][1:] == ["x"]
    later.join()


def test_a_worktree_that_was_left_half_made_is_named(clone: Git, tmp_path: Path) -> None:
    git(clone.repo, "branch", "x")
    clone.add_worktree(tmp_path / "x", "x")
    (clone.repo / ".git/worktrees/x/commondir").write_text("")
    with pytest.raises(GitLockedError, match=r"worktrees/x', or was killed .*: if nothing is at"):
        clone.worktrees()


def test_status_sees_untracked_files_whatever_the_user_has_set(clone: Git) -> None:
    git(clone.repo, "config", "status.showUntrackedFiles", "no")
    git(clone.repo, "config", "color.ui", "always")
    (clone.repo / ".git/info/exclude").write_text("*.log\n")
    (clone.repo / "größe\n2.txt").write_text("x")
    (clone.repo / "a.log").write_text("x")
    git(clone.repo, "mv", "README.md", "LIES MICH")
    assert set(clone.status()) == {"größe\n2.txt", "README.md", "LIES MICH"}
    assert set(clone.status_lines()) == {"?? größe\n2.txt", "D  README.md", "A  LIES MICH"}


def test_status_works_beside_a_git_that_holds_the_index(clone: Git) -> None:
    (clone.repo / ".git/index.lock").touch()
    assert clone.status() == ()


def test_ancestry(repository: Repository, clone: Git) -> None:
    first = clone.rev_parse("HEAD") or ""
    second = repository.commit("b", "b\n", "zweite Änderung")
    assert clone.is_ancestor(first, second)
    assert clone.is_ancestor(first, first)
    assert not clone.is_ancestor(second, first)
    assert not clone.is_ancestor("1" * 40, second)
    assert clone.merge_base(first, second) == first
    assert clone.ahead(first) == 1
    assert clone.log_oneline(first) == f"{second[:7]} zweite Änderung"
    assert "b | 1 +" in clone.diff_stat(first)


def test_the_work_of_others_is_no_change_of_ones_own(repository: Repository, clone: Git) -> None:
    git(clone.repo, "branch", "fix/7")
    repository.commit("theirs", "theirs\n", "of others")
    assert clone.diff_stat("main", "fix/7") == ""


def test_files_of_a_conflict_are_named(repository: Repository, clone: Git) -> None:
    git(clone.repo, "switch", "-q", "-c", "fix/7")
    repository.commit("größe 1", "mine\n", "mine")
    git(clone.repo, "switch", "-q", "main")
    assert clone.find_conflicts("main", "fix/7") == ()
    repository.commit("größe 1", "theirs\n", "theirs")
    assert clone.find_conflicts("main", "fix/7") == ("größe 1",)


def test_missing_commits_are_those_of_no_known_holder(clone: Git) -> None:
    git(clone.repo, "commit", "--allow-empty", "-m", "mine")
    head = clone.rev_parse("HEAD") or ""
    assert clone.list_missing_from([head], ["1" * 40, clone.rev_parse("HEAD~") or ""]) == (head,)


def test_worktrees_are_listed_with_their_branches(clone: Git, tmp_path: Path) -> None:
    head = clone.rev_parse("HEAD") or ""
    path = tmp_path / "neuer\nbaum ö"
    clone.create_branch("fix/1", head)
    clone.add_worktree(path, "fix/1")
    git(clone.repo, "worktree", "lock", "--reason", "on a stick", str(path))
    main, entry = clone.worktrees()
    assert (main.path, main.branch, main.locked) == (clone.repo, "main", None)
    assert (entry.path, entry.branch, entry.head) == (path, "fix/1", head)
    assert entry.locked == "on a stick"


def test_branch_is_deleted_only_where_it_was_seen(clone: Git) -> None:
    head = clone.rev_parse("HEAD") or ""
    clone.create_branch("fix/1", head)
    clone.track("fix/1", "origin")
    assert git(clone.repo, "config", "branch.fix/1.merge") == "refs/heads/fix/1"
    with pytest.raises(Exception, match="fix/1"):
        clone.delete_branch("fix/1", "1" * 40)
    clone.delete_branch("fix/1", head)
    assert "fix/1" not in (clone.repo / ".git/config").read_text()
