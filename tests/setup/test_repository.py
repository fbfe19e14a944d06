"""Clones as people have them: what sm init settles, and what it and sm doctor say of the rest."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.adapters import lfs
from sm.adapters.forge.protocol import Hosting
from sm.config.forges import LocalSettings
from sm.config.load import load
from sm.config.schema import NewWorktree, ProjectSettings
from sm.issues.work import worktree
from sm.issues.work.claim import claim
from sm.sessions.project import Project
from sm.setup import discover, sync
from sm.setup.repository import Trouble, list_troubles
from sm.store.paths import Root
from sm.store.root_check import is_noexec
from tests import chance
from tests.helpers import Repository, git

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture(autouse=True)
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `claude` on PATH; programs of the test's own come into the same folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    put_program(folder, "claude")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def put_program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def init(clone: Path, *args: str) -> Project:
    """What `sm init` makes of a clone."""
    line = ("init", "--yes", "--repo", str(clone), "--name", "harb", "--ci", "none", *args)
    assert run(list(line)) == 0
    config = load(None, os.environ, Path("/"))
    settings = config.project("harb")
    assert settings is not None
    return Project(config, settings)


def work(project: Project, root: Root) -> str:
    """Claim an issue, commit in its worktree, and push as an agent does; returns the commit."""
    claim(project.git, project.settings, 7, root)
    tree = worktree.ensure(project.git, project.settings, 7).path
    (tree / "work.txt").write_text("work\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "work")
    git(tree, "push", "-q")
    return git(tree, "rev-parse", "HEAD")


def troubles(project: ProjectSettings) -> list[str]:
    return [one.what for one in list_troubles(project)]


# What sm init settles


def test_what_agents_merge_arrives_by_git_pull(tmp_path: Path) -> None:
    """A clone without a remote had a branch without an upstream, and nothing arrived."""
    clone = tmp_path / "reef"
    clone.mkdir()
    git(clone, "init", "-q")
    git(clone, "commit", "-q", "--allow-empty", "-m", "first")
    project = init(clone)
    assert git(clone, "rev-parse", "--abbrev-ref", "main@{upstream}") == "origin/main"
    merged = git(clone, "commit-tree", "-p", "main", "-m", "merged", "main^{tree}")
    git(clone, "push", "-q", project.settings.remote, f"{merged}:refs/heads/main")
    git(clone, "pull", "-q")
    assert git(clone, "rev-parse", "main") == merged


def test_upstream_that_is_there_stays(repository: Repository, tmp_path: Path) -> None:
    git(repository.clone, "remote", "rename", "origin", "elsewhere")
    init(repository.clone, "--remote", "hub")
    upstream = git(repository.clone, "rev-parse", "--abbrev-ref", "main@{upstream}")
    assert upstream == "elsewhere/main"


def test_relative_remote_leads_to_the_same_place_from_a_worktree(
    repository: Repository, root: Root
) -> None:
    """`../origin.git` begins at the clone for sm, and at the worktree for its agent."""
    git(repository.clone, "remote", "set-url", "origin", f"../{repository.bare.name}")
    plain = ProjectSettings(
        name="harb", repo=repository.clone, forge=LocalSettings(path=repository.bare)
    )
    assert f"remote 'origin' is '../{repository.bare.name}', which leads" in troubles(plain)[0]
    project = init(repository.clone)
    assert troubles(project.settings) == []
    head = work(project, root)
    assert git(repository.bare, "rev-parse", "fix/7") == head


def test_renamed_primary_branch_is_asked_for(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The clone's own note of it is stale; what was said would have brought the old one back."""
    clone = repository.clone
    git(clone, "push", "-q", "origin", "main:trunk")
    git(clone, "fetch", "-q")
    git(repository.bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(repository.bare, "branch", "-q", "-D", "main")
    git(clone, "remote", "set-head", "origin", "main")
    assert run(["init", "--yes", "--repo", str(clone), "--primary-branch", "main"]) == 2
    said = capsys.readouterr().err
    assert "has no branch 'main': take 'trunk', its primary branch" in said
    assert "git push" not in said
    project = init(clone)
    assert project.settings.primary_branch == "trunk"
    git(clone, "fetch", "-q", "--prune")
    assert troubles(project.settings) == [
        "'origin/HEAD' is 'origin/main', which is no branch any more"
    ]


@pytest.mark.parametrize("remote", [False, True])
def test_branch_named_as_the_prefix_has_another_prefix_taken(
    repository: Repository, root: Root, remote: bool
) -> None:
    """Git cannot have `fix/7` beside `fix`, here or there."""
    git(repository.clone, "branch", "fix")
    if remote:
        git(repository.clone, "push", "-q", "origin", "fix")
        git(repository.clone, "branch", "-D", "fix")
    project = init(repository.clone)
    assert project.settings.branch_prefix == "agent"
    assert git(repository.bare, "rev-parse", "main") != work(project, root)
    usual = structs.replace(project.settings, branch_prefix="fix")
    assert troubles(usual) == ["git cannot have the branches 'fix/…' beside 'fix'"]


def test_hub_of_a_partial_clone_gets_what_the_clone_lacks(
    repository: Repository, root: Root, tmp_path: Path
) -> None:
    """Git serves nothing from a clone that it has still to fetch: "bad pack header"."""
    git(repository.bare, "config", "uploadpack.allowFilter", "true")
    repository.commit("old.txt", "1\n")
    repository.commit("old.txt", "2\n")
    clone = tmp_path / "partial"
    url = f"file://{repository.bare}"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", url, str(clone))
    git(clone, "tag", "mine")
    project = init(clone, "--remote", "hub")
    hub = tmp_path / "partial-hub" / "repo.git"
    assert git(hub, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/tags/mine",
    ]
    git(hub, "fsck", "--connectivity-only", "--strict")
    assert work(project, root) == git(hub, "rev-parse", "fix/7")


def test_partial_clone_whose_remote_is_away_is_named(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(repository.bare, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    url = f"file://{repository.bare}"
    git(tmp_path, "clone", "-q", "--filter=blob:none", url, str(clone))
    repository.bare.rename(tmp_path / "away.git")
    assert run(["init", "--yes", "--repo", str(clone), "--ci", "none", "--remote", "hub"]) == 1
    assert "is a partial clone, and what it lacks cannot be fetched" in capsys.readouterr().err


needs_lfs = pytest.mark.skipif(not lfs.is_installed(), reason="git-lfs is not installed")


def track_large_files(repository: Repository) -> bytes:
    """Have a large file on the primary branch, as Git LFS keeps one."""
    clone = repository.clone
    git(clone, "lfs", "install")
    git(clone, "lfs", "track", "*.bin")
    content = chance.dice(0).randbytes(2000)
    (clone / "a.bin").write_bytes(content)
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "a large file")
    git(clone, "push", "-q", "origin", "main")
    return content


@needs_lfs
def test_large_files_reach_the_hub_and_its_ci(repository: Repository, root: Root) -> None:
    """The hub is filled by a fetch, which brings none: CI could check nothing out."""
    content, clone = track_large_files(repository), repository.clone
    git(clone, "remote", "rename", "origin", "elsewhere")
    project = init(clone, "--remote", "hub", "--ci", "cat *.bin >all; test $(wc -c <all) = 2005")
    assert troubles(project.settings) == []
    claim(project.git, project.settings, 7, root)
    tree = worktree.ensure(project.git, project.settings, 7).path
    assert (tree / "a.bin").read_bytes() == content
    (tree / "b.bin").write_bytes(b"more\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "another")
    git(tree, "push", "-q")
    head = git(tree, "rev-parse", "HEAD")
    settings = project.settings
    assert isinstance(project.forge, Hosting)
    found = project.forge.run_check(head, settings.ci, project.ci_folder)
    assert found is not None
    assert found.state == "success"
    shutil.rmtree(clone.with_name("clone-hub") / "repo.git" / "lfs")
    assert troubles(settings) == ["the hub lacks large files, as 'a.bin': CI cannot check out"]


@needs_lfs
def test_large_files_come_along_with_what_sync_carries(repository: Repository) -> None:
    track_large_files(repository)
    clone = repository.clone
    git(clone, "remote", "rename", "origin", "elsewhere")
    project = init(clone, "--remote", "hub")
    (clone / "c.bin").write_bytes(b"of a person\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "by hand")
    git(clone, "push", "-q", "elsewhere", "main")
    sync.sync(project.settings, "elsewhere")
    hub = clone.with_name("clone-hub") / "repo.git"
    assert lfs.list_missing(clone, hub, "refs/remotes/hub/main") == ()


@needs_lfs
def test_large_files_leave_the_hub_though_the_hooks_are_files_of_the_branch(
    repository: Repository, tmp_path: Path
) -> None:
    """The hook of Git LFS is one of husky's then, which `sm` does not run."""
    track_large_files(repository)
    clone, bait = repository.clone, tmp_path / "bait"
    git(clone, "remote", "rename", "origin", "elsewhere")
    project = init(clone, "--remote", "hub")
    (clone / "c.bin").write_bytes(b"of an agent\n")
    (clone / ".husky").mkdir()
    (clone / ".husky/pre-push").write_text(f"#!/bin/sh\ntouch '{bait}'\nexit 1\n")
    (clone / ".husky/pre-push").chmod(0o755)
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "merged")
    git(clone, "push", "-q", "hub", "main")
    git(clone, "config", "core.hooksPath", ".husky")
    assert sync.sync(project.settings, "elsewhere").standing.receiver == "elsewhere"
    assert lfs.list_missing(clone, repository.bare, "refs/remotes/elsewhere/main") == ()
    assert not bait.exists()


def test_ci_has_the_submodules_that_the_clone_has(repository: Repository) -> None:
    """It checks out anew, and from a place where a relative URL leads nowhere."""
    clone = repository.clone
    git(clone, "submodule", "--quiet", "add", "./", "lib")
    git(clone, "commit", "-qm", "add lib")
    git(clone, "push", "-q")
    git(clone, "remote", "rename", "origin", "elsewhere")
    project = init(clone, "--remote", "hub", "--ci", "test -f lib/README.md")
    head = git(clone, "rev-parse", "hub/main")
    repository.bare.rename(repository.bare.with_name("away.git"))
    assert isinstance(project.forge, Hosting)
    found = project.forge.run_check(head, project.settings.ci, project.ci_folder)
    assert found is not None
    assert found.state == "success", project.forge.checks.read(head).log


# What is said of the rest


@pytest.fixture
def local(repository: Repository) -> ProjectSettings:
    """A project whose forge is the embedded one, with all that worktrees need said."""
    forge = LocalSettings(path=repository.bare)
    needs = NewWorktree(setup="")
    return ProjectSettings(name="harb", repo=repository.clone, forge=forge, new_worktree=needs)


def only(project: ProjectSettings) -> Trouble:
    (found,) = list_troubles(project)
    return found


def test_plain_clone_has_no_trouble(local: ProjectSettings) -> None:
    assert troubles(local) == []


def test_push_that_goes_elsewhere_is_seen(local: ProjectSettings, tmp_path: Path) -> None:
    git(local.repo, "config", "url.ssh://nowhere.invalid/.pushInsteadOf", "/")
    assert "goes to 'ssh://nowhere.invalid/" in only(local).what


def test_submodule_that_the_clone_has_not_set_up_is_seen(
    repository: Repository, local: ProjectSettings, tmp_path: Path
) -> None:
    git(repository.clone, "submodule", "--quiet", "add", str(repository.bare), "lib")
    git(repository.clone, "commit", "-qm", "add lib")
    git(repository.clone, "push", "-q")
    assert troubles(local) == []
    narrow = tmp_path / "narrow"
    git(tmp_path, "clone", "-q", str(repository.bare), str(narrow))
    found = only(structs.replace(local, repo=narrow))
    assert found.what == "your clone has not set up 'lib', so agents and CI get empty folders"
    assert found.advice == f"git -C {narrow} submodule update --init --recursive"


@pytest.mark.parametrize(
    ("process", "what"),
    [
        ("no-such-crypt smudge", "filter 'crypt' of .gitattributes runs 'no-such-crypt', which"),
        ('"no-such-crypt" %f', ""),  # the shell's quotes are not read
        ("", ""),
    ],
)
def test_filter_without_its_program_is_seen(
    repository: Repository, local: ProjectSettings, process: str, what: str
) -> None:
    repository.commit(".gitattributes", "*.key filter=crypt diff=crypt\n")
    if process:
        git(local.repo, "config", "filter.crypt.smudge", process)
    assert [one[: len(what)] for one in troubles(local)] == ([what] if what else [])


def test_large_files_without_git_lfs_are_seen(
    repository: Repository, local: ProjectSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    monkeypatch.setattr(lfs, "is_installed", lambda: False)
    assert "git-lfs is not installed" in only(local).what
    monkeypatch.setattr(lfs, "is_installed", lambda: True)
    assert "git is not set up for it" in only(local).what
    git(local.repo, "config", "filter.lfs.process", "git-lfs filter-process")
    assert "does not call git lfs" in troubles(local)[0]


def test_hooks_that_only_the_clone_has_are_seen(local: ProjectSettings) -> None:
    """As husky has them: no hook runs in a worktree before npm ci has made them there."""
    folder = local.repo / ".husky" / "_"
    folder.mkdir(parents=True)
    put_program(folder, "pre-commit")
    (folder / ".gitignore").write_text("*\n")
    git(local.repo, "config", "core.hooksPath", ".husky/_")
    assert troubles(local) == []  # it is said that agents need no setup
    unsaid = structs.replace(local, new_worktree=NewWorktree())
    assert "hooks are in '.husky/_', which git does not hold" in only(unsaid).what


def test_signing_that_fails_without_a_person_is_seen(local: ProjectSettings, agent: Path) -> None:
    git(local.repo, "config", "commit.gpgsign", "true")
    git(local.repo, "config", "gpg.program", str(agent / "gpg"))
    (agent / "gpg").write_text("#!/bin/sh\necho no pinentry >&2\nexit 2\n")
    (agent / "gpg").chmod(0o755)
    found = only(local)
    assert found.what.startswith("commits are to be signed, and that fails without a person:")
    assert "GIT_CONFIG_KEY_0: commit.gpgsign" in found.advice
    signed = "cat >/dev/null; echo; echo '[GNUPG:] SIG_CREATED ' >&2; echo signature"
    (agent / "gpg").write_text(f"#!/bin/sh\necho >&2; {signed}\n")
    assert troubles(local) == []


def test_clone_that_calls_itself_bare_is_seen(local: ProjectSettings) -> None:
    git(local.repo, "config", "core.bare", "true")
    assert "calls itself bare" in troubles(local)[0]


def test_bad_check_keeps_no_other_from_its_word(local: ProjectSettings) -> None:
    git(local.repo, "config", "core.bare", "true")
    git(local.repo, "branch", "fix")
    assert len(troubles(local)) >= 2


# What worktrees lack


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (("package-lock.json",), "npm ci"),
        (("package-lock.json", "yarn.lock"), "npm ci"),
        (("yarn.lock",), "yarn install --frozen-lockfile"),
        (("yarn.lock", ".yarnrc.yml"), "yarn install --immutable"),
        (("pnpm-lock.yaml", "uv.lock"), "pnpm install --frozen-lockfile && uv sync"),
        (("composer.lock",), ""),  # its program is not there
        ((), ""),
    ],
)
def test_setup_is_guessed_by_lock_files(
    tmp_path: Path, agent: Path, files: tuple[str, ...], line: str
) -> None:
    for name in ("npm", "yarn", "pnpm", "uv"):
        put_program(agent, name)
    for name in files:
        (tmp_path / name).touch()
    assert discover.guess_setup(tmp_path) == line


def test_ignored_files_and_setup_are_proposed_and_missed(
    repository: Repository, agent: Path
) -> None:
    put_program(agent, "npm")
    repository.commit(".gitignore", ".env*\nnode_modules\n!.env.example\n")
    repository.commit(".env.example", "KEY=\n")
    repository.commit("package-lock.json", "{}\n")
    for name in (".env", "apps/web/.env.local", "node_modules/x/.env"):
        file = repository.clone / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("KEY=1\n")
    project = init(repository.clone).settings
    assert project.new_worktree.copy == (".env", "apps/web/.env.local")
    assert project.new_worktree.setup == "npm ci"
    assert troubles(project) == []
    assert troubles(structs.replace(project, new_worktree=NewWorktree())) == [
        "worktrees of agents lack '.env', 'apps/web/.env.local', which git ignores",
        "worktrees of agents have no installed packages",
    ]


@pytest.mark.parametrize(
    ("answers", "setup", "copy"),
    [
        (("", ""), "npm ci", (".env", "a b/.env")),
        (("none", "none"), "", ()),
        (("make deps", ".env local/*"), "make deps", (".env", "local/*")),
    ],
)
def test_person_is_asked_what_worktrees_get(
    repository: Repository,
    agent: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[str, str],
    setup: str,
    copy: tuple[str, ...],
) -> None:
    put_program(agent, "npm")
    repository.commit(".gitignore", ".env\n")
    repository.commit("package-lock.json", "{}\n")
    for name in (".env", "a b/.env"):
        (repository.clone / name).parent.mkdir(exist_ok=True)
        (repository.clone / name).touch()
    said = ("harb", "main", "", "none", *answers, "y")
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in said)))
    assert run(["init", "--repo", str(repository.clone)]) == 0
    made = load(None, os.environ, Path("/")).projects[0].new_worktree
    assert (made.setup, made.copy) == (setup, copy)


def test_what_was_said_of_worktrees_is_taken(repository: Repository) -> None:
    said = ("--setup", "none", "--copy", ".env", "--copy", "local/*")
    made = init(repository.clone, *said).settings.new_worktree
    assert (made.setup, made.copy) == ("", (".env", "local/*"))


# A state root where no program can be run


def test_ci_runs_elsewhere_if_the_state_root_runs_no_program(
    repository: Repository, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/tmp is often mounted `noexec`: each script of the checkout was refused."""
    project = init(repository.clone)
    assert project.ci_folder == project.directory.ci
    plain = os.statvfs

    def find_flags(path: Path) -> SimpleNamespace:
        inside = Path(path).is_relative_to(root.path)
        return SimpleNamespace(f_flag=plain(path).f_flag | (os.ST_NOEXEC if inside else 0))

    monkeypatch.setattr(os, "statvfs", find_flags)
    assert is_noexec(root.path / "no" / "such" / "folder")
    again = Project(project.config, project.settings)
    assert again.ci_folder.is_relative_to(Path.home() / ".cache" / "sm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(root.path / "cache"))
    again = Project(project.config, project.settings)
    assert again.ci_folder.is_relative_to(root.path / "cache" / "sm")
