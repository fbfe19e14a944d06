from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.git import Git
from sm.adapters.git_call import GitLockedError, NoSuchBranchError, RemoteUnreachableError
from sm.adapters.procfs import find_at_terminals
from sm.config.schema import ProjectSettings
from sm.issues.work import worktree
from sm.issues.work.claim import claim
from sm.issues.work.worktree import Removed, UnremovedWorktree, WorktreeError, ensure, remove
from sm.store.paths import Root
from tests.helpers import HANG_S, Repository, git, wait_for
from tests.viewer import Viewer

ENSURER = """
import sys
from pathlib import Path
from sm.adapters.git import Git
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.issues.work.worktree import ensure
repo = Path(sys.argv[1])
ensure(Git(repo), ProjectSettings(name="harb", repo=repo, forge=LocalSettings(path=repo)), 7)
"""


@pytest.fixture
def clone(repository: Repository, project: ProjectSettings, root: Root) -> Git:
    clone = Git(repository.clone)
    claim(clone, project, 7, root)
    return clone


def commit(folder: Path, name: str = "Änderung.txt") -> str:
    (folder / name).write_text(f"{name}\n")
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", f"add {name}")
    return git(folder, "rev-parse", "HEAD")


def push_from_elsewhere(repository: Repository, branch: str) -> str:
    """A commit that somebody else pushes to `branch`."""
    colleague = repository.bare.with_name("colleague")
    git(repository.bare, "clone", "-q", "-b", branch, str(repository.bare), str(colleague))
    head = commit(colleague, "theirs.txt")
    git(colleague, "push", "-q", "origin", branch)
    return head


# Making


def test_worktree_is_made_on_its_branch_ready_to_push(clone: Git, project: ProjectSettings) -> None:
    made = ensure(clone, project, 7)
    assert made == worktree.Worktree(project.worktree(7))
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD@{upstream}") == "origin/fix/7"
    head = commit(made.path)
    git(made.path, "push", "-q")
    assert clone.ls_remote("origin", "refs/heads/fix/7") == {"refs/heads/fix/7": head}


def test_users_clone_is_left_as_it_is(clone: Git, project: ProjectSettings) -> None:
    (clone.repo / "README.md").write_text("being edited\n")
    ensure(clone, project, 7)
    assert clone.status() == ("README.md",)
    assert git(clone.repo, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_clone_of_a_single_branch_does(
    repository: Repository, project: ProjectSettings, clone: Git, tmp_path: Path
) -> None:
    narrow = tmp_path / "narrow"
    git(tmp_path, "clone", "-q", "--single-branch", f"file://{repository.bare}", str(narrow))
    made = ensure(Git(narrow), ProjectSettings(name="harb", repo=narrow, forge=project.forge), 7)
    head = commit(made.path)
    git(made.path, "push", "-q")
    assert clone.ls_remote("origin", "refs/heads/fix/7") == {"refs/heads/fix/7": head}


def test_second_time_adopts_it_with_its_work(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    (path / "draft").write_text("half a thought")
    assert ensure(clone, project, 7) == worktree.Worktree(path)
    assert git(path, "rev-parse", "HEAD") == head
    assert (path / "draft").exists()


def test_worktree_at_another_place_is_adopted(
    clone: Git, project: ProjectSettings, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    git(clone.repo, "worktree", "add", "-q", "-b", "fix/7", str(place), "origin/main")
    assert ensure(clone, project, 7).path == place


def test_local_branch_behind_the_remote_is_moved_forward(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    clone.create_branch("fix/7", clone.rev_parse("HEAD") or "")
    head = push_from_elsewhere(repository, "fix/7")
    assert git(ensure(clone, project, 7).path, "rev-parse", "HEAD") == head


def test_clean_worktree_behind_the_remote_is_moved_forward(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    head = push_from_elsewhere(repository, "fix/7")
    assert ensure(clone, project, 7).note == ""
    assert git(path, "rev-parse", "HEAD") == head
    assert (path / "theirs.txt").exists()


def test_dirty_worktree_behind_the_remote_is_left_and_said(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    (path / "draft").write_text("x")
    push_from_elsewhere(repository, "fix/7")
    assert "uncommitted changes: left so" in ensure(clone, project, 7).note
    assert not (path / "theirs.txt").exists()


@pytest.mark.parametrize("adopted", [False, True])
def test_diverged_branch_is_kept_and_said(
    repository: Repository, clone: Git, project: ProjectSettings, adopted: bool
) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    if not adopted:
        git(clone.repo, "worktree", "remove", str(path))
    push_from_elsewhere(repository, "fix/7")
    assert "have diverged" in ensure(clone, project, 7).note
    assert git(path, "rev-parse", "HEAD") == head


def test_branch_that_only_the_clone_has_is_kept_and_said(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    ensure(clone, project, 7)
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    assert "the remote has no branch 'fix/7' any more" in ensure(clone, project, 7).note


def test_branch_that_nobody_has_is_an_error(clone: Git, project: ProjectSettings) -> None:
    with pytest.raises(NoSuchBranchError, match="fix/8"):
        ensure(clone, project, 8)


def test_worktree_in_the_middle_of_a_rebase_is_adopted(
    clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    git(path, "checkout", "-q", "--detach")
    made = ensure(clone, project, 7)
    assert (made.path, "a detached HEAD" in made.note) == (path, True)


def test_folder_that_vanished_is_made_again(
    clone: Git, project: ProjectSettings, tmp_path: Path
) -> None:
    path = ensure(clone, project, 7).path
    unmounted = tmp_path / "stick"
    git(clone.repo, "worktree", "add", "-q", "-b", "mine", str(unmounted))
    head = commit(path)
    for folder in (path, unmounted):
        folder.rename(folder.with_name(folder.name + "-away"))
    assert git(ensure(clone, project, 7).path, "rev-parse", "HEAD") == head
    # The user's own worktree may merely not be mounted: its record stays.
    assert unmounted in [entry.path for entry in clone.worktrees()]


def test_missing_and_locked_worktree_is_the_users_to_decide(
    clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    git(clone.repo, "worktree", "lock", "--reason", "on a stick", str(path))
    path.rename(path.with_name("away"))
    with pytest.raises(WorktreeError, match=r"is missing and locked \('on a stick'"):
        ensure(clone, project, 7)


def test_folder_in_the_way_is_never_touched(clone: Git, project: ProjectSettings) -> None:
    path = project.worktree(7)
    path.mkdir(parents=True)
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(WorktreeError, match="is in the way"):
        ensure(clone, project, 7)
    assert isinstance(remove(clone, project, 7), UnremovedWorktree)
    assert (path / "thesis.tex").read_text() == "years of work"


def test_empty_folder_is_used_and_a_file_is_in_the_way(
    clone: Git, project: ProjectSettings
) -> None:
    project.worktree(7).mkdir(parents=True)
    assert ensure(clone, project, 7).path == project.worktree(7)
    project.worktree(8).touch()
    git(clone.repo, "branch", "fix/8")
    with pytest.raises(WorktreeError, match="is in the way"):
        ensure(clone, project, 8)


def test_branch_checked_out_in_the_users_clone_is_said(
    clone: Git, project: ProjectSettings
) -> None:
    git(clone.repo, "checkout", "-q", "-b", "fix/7")
    with pytest.raises(WorktreeError, match=r"your clone .* has branch 'fix/7' checked out"):
        ensure(clone, project, 7)
    kept = remove(clone, project, 7)
    assert isinstance(kept, UnremovedWorktree)
    assert "it is your clone" in kept.reason


# Killed gits


@pytest.mark.parametrize("point", ["worktree:before-add", "worktree:after-add"])
def test_killed_while_making_it_the_next_one_goes_on(
    clone: Git, project: ProjectSettings, point: str
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", ENSURER, str(clone.repo)],
        env={**os.environ, "SM_CRASH_AT": point},
        cwd=Path(worktree.__file__).parents[3],
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert ensure(clone, project, 7).path == project.worktree(7)


def slow_checkout(repository: Repository, tmp_path: Path) -> Path:
    """Let a checkout hang at one file until it is killed; returns where its pid is noted."""
    noted, script = tmp_path / "pid", tmp_path / "smudge"
    script.write_text(f"#!/bin/sh\necho $$ >'{noted}'\nexec sleep 60\n")
    script.chmod(0o755)
    git(repository.clone, "config", "filter.slow.smudge", str(script))
    git(repository.clone, "config", "filter.slow.clean", "cat")
    repository.commit(".gitattributes", "*.slow filter=slow\n")
    repository.commit("z.slow", "content\n")
    return noted


def test_worktree_whose_git_was_killed_is_finished(
    repository: Repository, project: ProjectSettings, root: Root, tmp_path: Path
) -> None:
    clone, path = Git(repository.clone), project.worktree(7)
    noted = slow_checkout(repository, tmp_path)
    claim(clone, project, 7, root)
    clone.create_branch("fix/7", clone.rev_parse("HEAD") or "")
    adding = subprocess.Popen(
        ["git", "-C", str(clone.repo), "worktree", "add", "-q", str(path), "fix/7"],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: noted.exists() and noted.read_text().strip(), "the checkout to hang")
    with pytest.raises(GitLockedError, match="in use by a git at work"):
        ensure(clone, project, 7)
    os.killpg(adding.pid, signal.SIGKILL)
    adding.wait()
    git(clone.repo, "config", "filter.slow.smudge", "cat")
    wait_for(lambda: ensured(clone, project), "the killed gits to be gone")
    assert (path / "z.slow").read_text() == "content\n"
    assert clone.at(path).status() == ()
    assert clone.worktrees()[1].locked is None


def ensured(clone: Git, project: ProjectSettings) -> bool:
    try:
        ensure(clone, project, 7)
    except GitLockedError:
        return False
    return True


def test_dead_index_lock_does_not_stop_the_next_agent(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    (clone.at(path).git_dir() / "index.lock").touch()
    ensure(clone, project, 7)
    commit(path)


def test_index_lock_of_a_git_at_work_is_left(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    lock = clone.at(path).git_dir() / "index.lock"
    editor = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    lock.touch()
    try:
        for act in (ensure, remove):
            with pytest.raises(GitLockedError, match=r"index\.lock' is in use"):
                act(clone, project, 7)
    finally:
        editor.communicate(timeout=HANG_S)
    assert lock.exists()


# Removing


def test_no_empty_folder_is_left(clone: Git, project: ProjectSettings) -> None:
    seventh, eighth = ensure(clone, project, 7).path, project.worktree(8)
    eighth.mkdir()
    assert remove(clone, project, 8) == Removed(eighth)
    assert not eighth.exists()
    assert seventh.exists()
    assert remove(clone, project, 7) == Removed(seventh)
    assert not project.worktrees.exists()


def test_folder_that_a_person_has_chosen_stays(clone: Git, project: ProjectSettings) -> None:
    chosen = structs.replace(project, worktree_root=project.worktrees)
    path = ensure(clone, chosen, 7).path
    assert remove(clone, chosen, 7) == Removed(path)
    assert not path.exists()
    assert chosen.worktrees.exists()


def test_pushed_worktree_goes_with_its_branch(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    commit(path)
    git(path, "push", "-q")
    (clone.repo / ".git/info/exclude").write_text("*.log\n")
    (path / "build.log").write_text("ignored")
    assert remove(clone, project, 7) == Removed(path)
    assert not path.exists()
    assert clone.rev_parse("refs/heads/fix/7") is None
    assert len(clone.worktrees()) == 1
    assert remove(clone, project, 7) == Removed(path)


def test_worktree_that_a_person_is_in_is_kept(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    person = Viewer(["sleep", "600"], cwd=path)
    try:
        wait_for(lambda: list(find_at_terminals(path)), "the person to be there")
        kept = remove(clone, project, 7)
        assert isinstance(kept, UnremovedWorktree)
        assert kept.reason.startswith("somebody is in it: sleep (")
        assert path.exists()
    finally:
        person.close()
    wait_for(lambda: not list(find_at_terminals(path)), "them to leave")
    assert remove(clone, project, 7) == Removed(path)


@pytest.mark.parametrize("name", ["README.md", "new file ü", "folder/new"])
def test_uncommitted_work_is_kept(clone: Git, project: ProjectSettings, name: str) -> None:
    git(clone.repo, "config", "status.showUntrackedFiles", "no")
    path = ensure(clone, project, 7).path
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text("not committed\n")
    kept = remove(clone, project, 7, merged_head=clone.rev_parse("fix/7") or "")
    assert isinstance(kept, UnremovedWorktree)
    assert "it has uncommitted work: " in kept.reason
    assert str(path) in str(kept)
    assert (path / name).read_text() == "not committed\n"


def test_unpushed_commit_is_kept(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    kept = remove(clone, project, 7)
    assert isinstance(kept, UnremovedWorktree)
    assert f"on no branch of 'origin': '{head[:12]}'" in kept.reason
    assert git(path, "rev-parse", "fix/7") == head


def test_unpushed_commit_on_a_detached_head_is_kept(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    git(path, "checkout", "-q", "--detach")
    commit(path)
    assert isinstance(remove(clone, project, 7), UnremovedWorktree)


def test_what_the_remote_has_now_counts_not_what_it_had(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    commit(path)
    git(path, "push", "-q")
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    assert isinstance(remove(clone, project, 7), UnremovedWorktree)


def test_nothing_is_fetched_where_the_branch_has_all_of_it(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    """A fetch looks at all branches, so with many issues it would be the most of a removal."""
    path = ensure(clone, project, 7).path
    commit(path)
    git(path, "push", "-q")
    before = clone.rev_parse("refs/remotes/origin/main")
    push_from_elsewhere(repository, "main")
    assert remove(clone, project, 7) == Removed(path)
    assert clone.rev_parse("refs/remotes/origin/main") == before


def test_squashed_head_may_go(repository: Repository, clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    git(path, "push", "-q")
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    assert remove(clone, project, 7, merged_head=head) == Removed(path)


def test_commit_after_the_merged_one_is_kept(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    git(path, "push", "-q")
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    later = commit(path, "afterthought")
    kept = remove(clone, project, 7, merged_head=head)
    assert isinstance(kept, UnremovedWorktree)
    assert later[:12] in kept.reason
    assert head[:12] not in kept.reason


def test_work_merged_into_the_primary_branch_may_go(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    commit(path)
    git(path, "push", "-q", "origin", "HEAD:main")
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    assert remove(clone, project, 7) == Removed(path)


def test_branch_without_a_worktree_is_judged_too(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    head = commit(path)
    git(clone.repo, "worktree", "remove", str(path))
    assert isinstance(remove(clone, project, 7), UnremovedWorktree)
    assert clone.rev_parse("refs/heads/fix/7") == head


def test_locked_worktree_is_kept(clone: Git, project: ProjectSettings) -> None:
    path = ensure(clone, project, 7).path
    git(clone.repo, "worktree", "lock", "--reason", "mine", str(path))
    kept = remove(clone, project, 7)
    assert kept == UnremovedWorktree(path, "it is locked ('mine')")


def inner_worktree(project: ProjectSettings, path: Path) -> Path:
    """A worktree within the agent's, as its client makes them for subagents, and git ignores."""
    exclude = Git(path).common_dir() / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text(".claude/\n")
    made = path / ".claude" / "worktrees" / "helper"
    git(path, "worktree", "add", "-q", "-b", "worktree-helper", str(made))
    return made


def test_a_worktree_with_another_one_in_it_keeps_what_is_nowhere_else(
    clone: Git, project: ProjectSettings
) -> None:
    """Claude Code makes such (`EnterWorktree`, subagents): git would remove them with it."""
    path = ensure(clone, project, 7).path
    git(path, "push", "-q", "origin", "HEAD")
    inner = inner_worktree(project, path)
    (inner / "draft.txt").write_text("work\n")
    kept = remove(clone, project, 7)
    assert isinstance(kept, UnremovedWorktree)
    assert "the worktree within it at '.claude/worktrees/helper' has uncommitted work" in str(kept)
    head = commit(inner, "draft.txt")
    kept = remove(clone, project, 7)
    assert isinstance(kept, UnremovedWorktree)
    assert head[:12] in str(kept)
    git(inner, "push", "-q", "origin", "HEAD:fix/7")
    assert isinstance(remove(clone, project, 7), Removed)
    assert [entry.path for entry in clone.worktrees()] == [clone.repo], "git knows of none"
    assert not path.exists()


def test_worktree_with_submodules_is_removed_once_nothing_of_them_is_nowhere_else(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    """Git refuses to remove one that has submodules, even if nothing in it would be lost."""
    path = ensure(clone, project, 7).path
    git(path, "submodule", "--quiet", "add", str(repository.bare), "sub")
    commit(path / "sub", "of the agent")
    git(path, "add", "sub")
    git(path, "commit", "-q", "-m", "add a submodule")
    git(path, "push", "-q")
    kept = remove(clone, project, 7)
    assert kept == UnremovedWorktree(path, "a submodule has commits that are nowhere else: 'sub'")
    git(path / "sub", "push", "-q", "origin", "HEAD:refs/heads/of-the-agent")
    assert remove(clone, project, 7) == Removed(path)
    assert clone.rev_parse("refs/heads/fix/7") is None


def test_hook_that_fails_after_the_checkout_keeps_nobody_from_working(
    clone: Git, project: ProjectSettings
) -> None:
    """Git makes the worktree, and then ends as its post-checkout hook does."""
    put_hook(clone, "post-checkout", "echo husky: not found >&2; exit 127")
    made = ensure(clone, project, 7)
    assert made.note == "your post-checkout hook failed in it (127): husky: not found"
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == "fix/7"


def put_hook(clone: Git, name: str, body: str) -> None:
    hook = clone.common_dir() / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{body}\n")
    hook.chmod(0o755)


def test_worktree_that_cannot_be_checked_out_is_refused_in_words(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    repository.commit(".gitattributes", "*.md filter=crypt\n")
    claim(clone, project, 8, Root(repository.bare.parent))
    for key, value in (("smudge", "no-such-program"), ("required", "true")):
        git(clone.repo, "config", f"filter.crypt.{key}", value)
    with pytest.raises(
        WorktreeError, match=r"cannot check 'fix/8' out .*smudge filter crypt failed"
    ):
        ensure(clone, project, 8)
    assert not project.worktree(8).exists()


@pytest.mark.parametrize("name", ["fix", "fix/7/attempt"])
def test_branch_that_git_cannot_have_beside_another_is_refused_in_words(
    clone: Git, project: ProjectSettings, name: str
) -> None:
    git(clone.repo, "branch", name)
    with pytest.raises(WorktreeError, match=f"'fix/7' cannot exist beside '{name}' of your clone"):
        ensure(clone, project, 7)
    git(clone.repo, "branch", "-m", name, "mine")
    assert ensure(clone, project, 7)


def test_push_goes_to_the_hub_whatever_the_clone_pushes_to_by_default(
    clone: Git, project: ProjectSettings, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "fork.git")
    git(clone.repo, "remote", "add", "fork", str(tmp_path / "fork.git"))
    git(clone.repo, "config", "remote.pushDefault", "fork")
    path = ensure(clone, project, 7).path
    head = commit(path)
    git(path, "push", "-q")
    assert clone.ls_remote("origin", "refs/heads/fix/7") == {"refs/heads/fix/7": head}


def test_nothing_is_removed_while_the_remote_is_away(
    repository: Repository, clone: Git, project: ProjectSettings
) -> None:
    path = ensure(clone, project, 7).path
    repository.bare.rename(repository.bare.with_name("away.git"))
    with pytest.raises(RemoteUnreachableError):
        remove(clone, project, 7)
    assert path.exists()
