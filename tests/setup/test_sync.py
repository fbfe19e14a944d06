"""`sm sync`: agents at a hub of their own, people at `origin`, each in a clone."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from sm.__main__ import run
from sm.config.load import find_user_folder, load
from sm.sessions.project import Project
from sm.setup import sync
from sm.store.paths import Root
from tests.helpers import git, make_repository


class Place(NamedTuple):
    """The people's remote, the clone of who runs sm, another person's, and the agents' hub."""

    origin: Path
    mine: Path
    theirs: Path
    hub: Path
    agents: Path

    def heads(self) -> tuple[str, str]:
        """Where `main` is on both."""
        return git(self.origin, "rev-parse", "main"), git(self.hub, "rev-parse", "main")

    def main(self) -> str:
        """Where `main` is, which is the same for both."""
        one, other = self.heads()
        assert one == other
        return one


def commit(clone: Path, name: str, content: str = "x\n", message: str = "") -> str:
    """A commit that is on its remote's `main` then."""
    git(clone, "pull", "-q", "--ff-only")
    (clone / name).write_text(content)
    git(clone, "add", name)
    git(clone, "commit", "-qm", message or f"Add {name}")
    git(clone, "push", "-q", "origin", "HEAD:main")
    return git(clone, "rev-parse", "HEAD")


@pytest.fixture
def place(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Place:
    repository = make_repository(tmp_path)
    theirs, agents = tmp_path / "theirs", tmp_path / "agents"
    git(tmp_path, "clone", "-q", str(repository.bare), str(theirs))
    options = (
        "--repo",
        str(repository.clone),
        "--remote",
        "hub",
        "--ci",
        "none",
        "--agent",
        "true",
    )
    assert run(["init", "--yes", *options]) == 0
    assert "sync' exchanges finished work with 'origin'" in capsys.readouterr().out
    hub = tmp_path / "clone-hub" / "repo.git"
    git(tmp_path, "clone", "-q", str(hub), str(agents))
    monkeypatch.chdir(tmp_path)
    return Place(repository.bare, repository.clone, theirs, hub, agents)


Said = Callable[[], tuple[str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def read() -> tuple[str, str]:
        found = capsys.readouterr()
        return found.out, found.err

    return read


def context(place: Place) -> Project:
    config = load(find_user_folder({"HOME": str(Path.home())}), {}, place.mine)
    return Project(config, config.projects[0])


# Both directions


def test_nothing_is_done_where_both_are_the_same(place: Place, said: Said) -> None:
    before = place.main()
    assert run(["sync"]) == 0
    assert said()[0] == f"up to date: 'origin/main' and 'hub/main' are at {before[:12]}\n"
    assert place.main() == before


def test_what_people_have_pushed_gets_into_the_hub(place: Place, said: Said) -> None:
    commit(place.theirs, "a")
    new = commit(place.theirs, "b", message="Add \x1b[31mb")
    assert run(["sync"]) == 0
    assert place.main() == new
    out, _ = said()
    assert "carried 2 commits from 'origin' to 'hub':" in out
    assert "Add a" in out
    assert "\x1b" not in out


def test_what_agents_have_merged_gets_to_the_people(place: Place, said: Said) -> None:
    new = commit(place.agents, "a")
    assert run(["sync"]) == 0
    assert place.main() == new
    assert "carried 1 commit from 'hub' to 'origin':" in said()[0]
    git(place.theirs, "pull", "-q")
    assert (place.theirs / "a").exists()


def test_a_pull_request_that_was_merged_gets_to_the_people(place: Place) -> None:
    forge = context(place).forge
    git(place.agents, "switch", "-qc", "fix/1")
    (place.agents / "a").write_text("a\n")
    git(place.agents, "add", "a")
    git(place.agents, "commit", "-qm", "Add a")
    git(place.agents, "push", "-q", "origin", "fix/1")
    pull = forge.pulls.open("fix/1", "main", "Add a", author="agent")
    assert run(["review", str(pull.number), "--approve"]) == 0
    assert run(["pr", "merge", str(pull.number)]) == 0
    assert run(["sync"]) == 0
    assert git(place.origin, "log", "--format=%s", "main").count("Add a") >= 1
    place.main()


def test_one_after_the_other_both_get_all(place: Place) -> None:
    for number in range(3):
        commit(place.theirs, f"theirs-{number}")
        assert run(["sync"]) == 0
        new = commit(place.agents, f"ours-{number}")
        assert run(["sync"]) == 0
        assert place.main() == new


def test_the_forge_notices_what_came_in(place: Place) -> None:
    forge = context(place).forge
    before = forge.observe()
    commit(place.theirs, "a")
    assert run(["sync"]) == 0
    assert forge.is_stale(before)


def test_branches_and_files_of_the_clone_stay(place: Place) -> None:
    commit(place.theirs, "a")
    (place.mine / "draft").write_text("x\n")
    (place.mine / "README.md").write_text("changed\n")
    before = git(place.mine, "status", "--porcelain"), git(place.mine, "rev-parse", "main")
    assert run(["sync"]) == 0
    after = git(place.mine, "status", "--porcelain"), git(place.mine, "rev-parse", "main")
    assert after == before
    heads = git(place.origin, "for-each-ref", "--format=%(refname)")
    assert heads == "refs/heads/main", "branches and claims of agents are not for others"


def test_a_dry_run_says_what_it_would_do(place: Place, said: Said) -> None:
    commit(place.agents, "a")
    before = place.heads()
    assert run(["sync", "--dry-run"]) == 0
    assert "would carry 1 commit from 'hub' to 'origin':" in said()[0]
    assert place.heads() == before


def test_many_commits_are_counted(place: Place, said: Said) -> None:
    for number in range(12):
        git(place.theirs, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    git(place.theirs, "push", "-q")
    assert run(["sync"]) == 0
    out, _ = said()
    assert "carried 12 commits" in out
    assert out.endswith("  and 2 more\n")


# Where both have gone on


def test_diverged_histories_are_told_and_left_alone(place: Place, said: Said) -> None:
    commit(place.theirs, "a")
    commit(place.theirs, "b")
    commit(place.agents, "c")
    before = place.heads()
    for options in ([], ["--dry-run"]):
        assert run(["sync", *options]) == 1
        _, err = said()
        assert (
            "sm: both have gone on: 'origin/main' has 2 commits that 'hub/main' lacks, 'hub/main' "
            "has 1 commit that 'origin/main' lacks: nothing was changed" in err
        )
    assert place.heads() == before


def test_diverged_histories_are_merged_where_a_person_says_so(place: Place, said: Said) -> None:
    commit(place.theirs, "a")
    commit(place.agents, "c")
    before = place.heads()
    assert run(["sync", "--merge", "--dry-run"]) == 0
    assert place.heads() == before
    mine = git(place.mine, "status", "--porcelain=v2", "--branch")
    assert run(["sync", "--merge"]) == 0
    out, _ = said()
    assert "which no CI has tested" in out
    assert "carried 2 commits from 'hub' to 'origin'" in out
    assert git(place.origin, "show", "-s", "--format=%P", place.main()).split() == [*before[::-1]]
    assert {"a", "c"} <= set(git(place.hub, "ls-tree", "--name-only", "main").split())
    assert git(place.mine, "status", "--porcelain=v2", "--branch").count("\n") == mine.count("\n")
    assert run(["sync", "--merge"]) == 0
    assert said()[0].startswith("up to date")


def test_a_merge_with_a_conflict_changes_nothing_and_names_the_files(
    place: Place, said: Said
) -> None:
    commit(place.theirs, "a", "one\n")
    commit(place.agents, "a", "two\n")
    before = place.heads()
    for options in ([], ["--dry-run"]):
        assert run(["sync", "--merge", *options]) == 1
        assert said()[1] == "sm: both have changed 'a': nothing was merged\n"
    assert place.heads() == before


def test_the_help_for_diverged_histories_helps(place: Place, said: Said) -> None:
    commit(place.theirs, "a")
    commit(place.agents, "c")
    assert run(["sync"]) == 1
    lines = [line.strip() for line in said()[1].splitlines()]
    assert lines[-1] == "then run sm sync again"
    file, *merge = [line for line in lines if line.startswith(("sm issue", "git -C", "cd "))]
    assert run(shlex.split(file)[1:]) == 0
    for line in merge:
        subprocess.run(line.replace("git merge", "git merge --no-edit"), shell=True, check=True)
    assert run(["sync"]) == 0
    place.main()
    files = git(place.origin, "ls-tree", "--name-only", "main").split()
    assert {"a", "c"} <= set(files)


def test_unrelated_histories_are_left_alone(place: Place, said: Said, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "-b", "main", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "another project")
    git(other, "push", "-q", "--force", str(place.origin), "main")
    before = place.heads()
    assert run(["sync"]) == 1
    assert "'origin/main' and 'hub/main' have no commit in common" in said()[1]
    assert place.heads() == before


def test_history_that_was_rewritten_is_not_forced_back(place: Place, said: Said) -> None:
    commit(place.theirs, "a")
    assert run(["sync"]) == 0
    git(place.theirs, "commit", "-q", "--amend", "-m", "another word")
    git(place.theirs, "push", "-q", "--force", "origin", "HEAD:main")
    before = place.heads()
    assert run(["sync"]) == 1
    assert place.heads() == before


def test_what_is_pushed_meanwhile_is_not_lost(place: Place, said: Said) -> None:
    """A person pushes after both were looked at."""
    commit(place.agents, "ours")
    late = place.mine / ".git" / "hooks" / "pre-push"
    late.parent.mkdir(exist_ok=True)
    script = (
        "unset $(git rev-parse --local-env-vars)",
        f"cd {shlex.quote(str(place.theirs))}",
        "test -e late || { echo x >late; git add late; git commit -qm late; git push -q; }",
    )
    late.write_text("\n".join(("#!/bin/sh", *script, "")))
    late.chmod(0o755)
    assert run(["sync"]) == 1
    assert "both have gone on" in said()[1]
    assert "late" in git(place.origin, "ls-tree", "--name-only", "main").split()


# What can be in the way


def test_a_protected_branch_is_told_with_a_way_around(place: Place, said: Said) -> None:
    hook = place.origin / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'protected branch' >&2\nexit 1\n")
    hook.chmod(0o755)
    commit(place.agents, "a")
    before = place.heads()
    assert run(["sync"]) == 1
    _, err = said()
    assert "remote 'origin' refuses the push: protected branch" in err
    assert "git push origin hub/main:refs/heads/NAME" in err
    assert place.heads() == before


def test_the_persons_own_hook_may_refuse_what_leaves(place: Place, said: Said) -> None:
    hook = place.mine / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'a secret is in it' >&2\nexit 1\n")
    hook.chmod(0o755)
    commit(place.theirs, "a")
    assert run(["sync"]) == 0, "what comes in was pushed by others"
    commit(place.agents, "b")
    before = place.heads()
    assert run(["sync"]) == 1
    assert "a secret is in it" in said()[1]
    assert place.heads() == before


def test_a_remote_that_does_not_answer_is_told(place: Place, said: Said) -> None:
    git(place.mine, "remote", "set-url", "origin", "https://ada:secret@127.0.0.1:1/x.git")
    assert run(["sync"]) == 4
    _, err = said()
    assert "cannot reach remote 'origin'" in err
    assert "secret" not in err


def test_a_remote_without_the_branch_is_told(place: Place, said: Said) -> None:
    git(place.theirs, "push", "-q", "origin", "main:trunk")
    git(place.origin, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(place.origin, "branch", "-D", "main")
    assert run(["sync"]) == 1
    assert "couldn't find remote ref refs/heads/main" in said()[1]
    assert git(place.origin, "branch", "--format=%(refname:short)") == "trunk"


def test_the_other_remote_is_found_or_named(place: Place, said: Said) -> None:
    assert run(["sync", "--remote", "nowhere"]) == 2
    assert "no remote 'nowhere': beside 'hub' there is 'origin'" in said()[1]
    assert run(["sync", "--remote", "hub"]) == 2
    git(place.mine, "remote", "rename", "origin", "upstream")
    assert run(["sync"]) == 0
    git(place.mine, "remote", "add", "backup", str(place.origin))
    assert run(["sync"]) == 2
    assert "which remote? name one with --remote" in said()[1]
    assert run(["sync", "--remote", "backup"]) == 0
    git(place.mine, "remote", "remove", "backup")
    git(place.mine, "remote", "remove", "upstream")
    assert run(["sync"]) == 2
    assert "has no remote but 'hub', which the agents push to" in said()[1]


@pytest.mark.parametrize(
    ("only_ours", "only_theirs", "direction"),
    [
        (0, 0, sync.Direction.NONE),
        (2, 0, sync.Direction.OUT),
        (0, 1, sync.Direction.IN),
        (1, 1, sync.Direction.APART),
    ],
)
def test_only_what_one_lacks_is_carried(
    only_ours: int, only_theirs: int, direction: sync.Direction
) -> None:
    standing = sync.CloneStanding("hub", "origin", "main", "o", "t", only_ours, only_theirs)
    assert standing.direction is direction
