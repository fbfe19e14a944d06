from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sm.adapters.git import Git
from sm.adapters.git_call import RemoteUnreachableError
from sm.adapters.git_push import PushRefusedError
from sm.config.schema import ProjectSettings
from sm.issues.work import claim as claims
from sm.issues.work.claim import (
    BranchNameError,
    Claim,
    claim,
    describe_owner,
    find_head,
    is_ours,
    look,
    release,
    seize,
)
from sm.store.paths import Root
from tests.helpers import HANG_S, Repository, create_refs, git

CLAIMER = """
import sys
from pathlib import Path
from sm.adapters.git import Git
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.issues.work.claim import claim
from sm.store.paths import Root
repo, state = map(Path, sys.argv[1:])
project = ProjectSettings(name="harb", repo=repo, forge=LocalSettings(path=repo))
sys.stdin.readline()
print(claim(Git(repo), project, 7, Root(state)))
"""


@pytest.fixture
def clone(repository: Repository) -> Git:
    return Git(repository.clone)


@pytest.fixture
def other(tmp_path: Path) -> Root:
    return Root(tmp_path / "other-state")


def start(repo: Path, state: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLAIMER, str(repo), str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        cwd=Path(claims.__file__).parents[3],
    )


def killed_at(point: str, repo: Path, state: Path) -> None:
    process = start(repo, state, SM_CRASH_AT=point)
    process.communicate("\n", timeout=HANG_S)
    assert process.returncode == -signal.SIGKILL


def test_claim_creates_the_branch_at_the_remotes_primary_head(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(repository.bare), "colleague")
    newer = Repository(repository.bare, tmp_path / "colleague").commit("b", "b")
    assert claim(clone, project, 7, root) is Claim.WON
    assert clone.ls_remote("origin", "refs/heads/*") == {
        "refs/heads/main": newer,
        "refs/heads/fix/7": newer,
    }


def test_claim_touches_nothing_of_the_users_clone(
    clone: Git, project: ProjectSettings, root: Root
) -> None:
    (clone.repo / "README.md").write_text("being edited\n")
    before = git(clone.repo, "for-each-ref", "refs/heads", "refs/tags")
    claim(clone, project, 7, root)
    assert git(clone.repo, "for-each-ref", "refs/heads", "refs/tags") == before
    assert git(clone.repo, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert (clone.repo / "README.md").read_text() == "being edited\n"


def test_second_look_of_the_same_installation_is_ours(
    clone: Git, project: ProjectSettings, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claim(clone, project, 7, root) is Claim.WON
    # Nothing is kept under the root, and the user's identity, dates and settings play no part.
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2031-01-01T00:00:00+0000")
    git(clone.repo, "config", "user.name", "Somebody Else")
    git(clone.repo, "config", "i18n.commitEncoding", "ISO-8859-1")
    assert claim(clone, project, 7, root) is Claim.OURS


def test_another_installation_finds_it_taken(
    clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    claim(clone, project, 7, root)
    assert claim(clone, project, 7, other) is Claim.TAKEN
    assert f"state: {os.path.realpath(root.path)}" in describe_owner(clone, project, 7)
    assert f"clone: {clone.repo}" in describe_owner(clone, project, 7)
    assert describe_owner(clone, project, 8) == ""


def test_an_old_look_wins_no_claim_that_another_installation_has(
    clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    seen = look(clone, project, 7)
    assert find_head(project, 7, seen) == clone.rev_parse("HEAD")
    claim(clone, project, 7, root)
    assert claim(clone, project, 7, other, first=seen) is Claim.TAKEN
    assert claim(clone, project, 7, root, first=seen) is Claim.OURS


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_our_claim_is_known_by_its_name_alone(
    object_format: str, tmp_path: Path, project: ProjectSettings, root: Root, other: Root
) -> None:
    clone = Git(tmp_path / "fresh")
    for place, option in (("fresh.git", "--bare"), ("fresh", "--quiet")):
        git(tmp_path, "init", f"--object-format={object_format}", option, place)
    git(clone.repo, "remote", "add", "origin", str(tmp_path / "fresh.git"))
    git(clone.repo, "commit", "--allow-empty", "-m", "first")
    git(clone.repo, "push", "-q", "origin", "HEAD:main")
    assert not is_ours(clone, project, 7, root, {})
    claim(clone, project, 7, root)
    refs = clone.ls_remote("origin")
    shutil.rmtree(clone.repo)  # git is not asked
    assert is_ours(clone, project, 7, root, refs)
    assert not is_ours(clone, project, 8, root, refs)
    assert not is_ours(clone, project, 7, other, refs)


def test_of_eight_claimers_exactly_one_wins(
    repository: Repository, root: Root, other: Root
) -> None:
    states = [root.path, other.path] * 4
    claimers = [start(repository.clone, state) for state in states]
    for claimer in claimers:
        assert claimer.stdin
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    said = [claimer.communicate(timeout=HANG_S)[0].strip() for claimer in claimers]
    assert all(claimer.returncode == 0 for claimer in claimers), said
    assert Counter(said) == {"won": 1, "ours": 3, "taken": 4}


def test_killed_before_the_push_nothing_is_claimed(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    killed_at("claim:before-push", repository.clone, root.path)
    assert describe_owner(clone, project, 7) == ""
    assert claim(clone, project, 7, other) is Claim.WON


def test_killed_after_the_push_it_is_ours(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    killed_at("claim:after-push", repository.clone, root.path)
    assert claim(clone, project, 7, other) is Claim.TAKEN
    assert claim(clone, project, 7, root) is Claim.OURS


def test_branch_without_a_claim_is_adopted(
    clone: Git, project: ProjectSettings, root: Root
) -> None:
    git(clone.repo, "commit", "-q", "--allow-empty", "-m", "work of before")
    work = clone.rev_parse("HEAD")
    git(clone.repo, "push", "-q", "origin", "HEAD:refs/heads/fix/7")
    assert claim(clone, project, 7, root) is Claim.WON
    assert clone.ls_remote("origin", "refs/heads/fix/7") == {"refs/heads/fix/7": work}


def test_branch_that_was_deleted_under_our_claim_is_made_again(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root
) -> None:
    claim(clone, project, 7, root)
    git(repository.bare, "update-ref", "-d", "refs/heads/fix/7")
    assert claim(clone, project, 7, root) is Claim.OURS
    assert "refs/heads/fix/7" in clone.ls_remote("origin")


def test_release_frees_only_our_own(
    clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    claim(clone, project, 7, root)
    assert release(clone, project, 7, other).startswith("kept: it is not ours")
    assert release(clone, project, 7, root) == ""
    assert release(clone, project, 7, root) == ""
    assert claim(clone, project, 7, other) is Claim.WON


def test_seize_replaces_anothers_claim(
    clone: Git, project: ProjectSettings, root: Root, other: Root
) -> None:
    claim(clone, project, 7, root)
    assert seize(clone, project, 7, other) is Claim.WON
    assert seize(clone, project, 7, other) is Claim.OURS
    assert claim(clone, project, 7, root) is Claim.TAKEN


@pytest.mark.parametrize("present", ["fix", "fix/7/more"])
def test_branch_name_in_the_way_is_named(
    clone: Git, project: ProjectSettings, root: Root, present: str
) -> None:
    git(clone.repo, "push", "-q", "origin", f"HEAD:refs/heads/{present}")
    with pytest.raises(BranchNameError, match=f"'fix/7' cannot exist beside '{present}'"):
        claim(clone, project, 7, root)
    assert describe_owner(clone, project, 7) == ""


def test_refusal_of_the_remote_is_told_in_its_words(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root
) -> None:
    hook = repository.bare / "hooks/update"
    hook.write_text("#!/bin/sh\ncase $1 in refs/heads/*) echo only maintainers; exit 1;; esac\n")
    hook.chmod(0o755)
    with pytest.raises(PushRefusedError, match="only maintainers"):
        claim(clone, project, 7, root)
    assert describe_owner(clone, project, 7) == ""


def test_remote_that_is_gone_is_a_temporary_error(
    repository: Repository, clone: Git, project: ProjectSettings, root: Root
) -> None:
    repository.bare.rename(repository.bare.with_name("away.git"))
    with pytest.raises(RemoteUnreachableError):
        claim(clone, project, 7, root)


@pytest.mark.parametrize("content", ["claimed\n\nhost: \x1b[31mred\x07\u202e\n", "", "no facts"])
def test_claim_written_by_anybody_is_shown_harmlessly(
    clone: Git, project: ProjectSettings, root: Root, content: str
) -> None:
    sha = clone.write_object(
        "commit",
        f"tree {clone.write_object('tree', b'')}\nauthor {claims.SIGNATURE}\n"
        f"committer {claims.SIGNATURE}\n\n{content}".encode(),
    )
    create_refs(clone, {claims.name_ref(7): sha})
    assert claim(clone, project, 7, root) is Claim.TAKEN
    shown = describe_owner(clone, project, 7)
    assert shown == ("host: red" if "host" in content else f"an unknown claim ({sha[:12]})")


def test_claim_that_is_no_commit_is_taken(clone: Git, project: ProjectSettings, root: Root) -> None:
    blob = clone.write_object("blob", b"mine\n")
    create_refs(clone, {claims.name_ref(7): blob})
    assert claim(clone, project, 7, root) is Claim.TAKEN
    assert describe_owner(clone, project, 7) == f"an unknown claim ({blob[:12]})"
