"""What a new worktree gets beside what git has: once, before an agent begins in it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs, submodules
from sm.adapters.submodules import SubmoduleError
from sm.base import plugin
from sm.base.plugin import Plugin, Registry
from sm.config.load import load
from sm.config.schema import NewWorktree, ProjectSettings
from sm.issues.work import furnish
from sm.issues.work.claim import claim
from sm.issues.work.furnish import SetupError, SetupPausedError, make_ready
from sm.sessions.project import Project
from sm.sessions.sandboxes import AnySettings, Sandbox, SandboxError, Start
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from tests.helpers import Repository, git, put_session, sm_yaml, wait_for


@pytest.fixture
def session(tmp_path: Path, repository: Repository, root: Root) -> IssueSession:
    """A session whose issue is claimed; it has no worktree yet."""
    path = sm_yaml(tmp_path, repo=str(repository.clone), forge={"kind": "local", "path": "forge"})
    config = load(path, os.environ, tmp_path)
    project = Project(config, config.projects[0])
    claim(project.git, project.settings, 7, root)
    return put_session(project, 7)


def with_needs(session: IssueSession, **keys: object) -> IssueSession:
    """The session under a configuration with these keys of `worktree`."""
    project = session.project
    needs = structs.replace(NewWorktree(), **keys)
    settings = structs.replace(project.settings, new_worktree=needs)
    return session.provide(project=Project(project.config, settings))


def put(folder: Path, name: str, content: str = "mine\n", mode: int = 0o600) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    return path


# Files that git ignores


def test_ignored_files_are_copied_with_their_modes(
    session: IssueSession, repository: Repository
) -> None:
    repository.commit(".gitignore", ".env*\n*.local\n")
    claim(session.project.git, session.project.settings, 7, session.project.root)
    git(repository.clone, "push", "-q", "origin", "main:fix/7")
    for name in (".env", "apps/web/.env", "apps/api/.env", "a.local", "other.local"):
        put(repository.clone, name)
    (repository.clone / ".env.link").symlink_to("apps/web/.env")
    (repository.clone / ".env.out").symlink_to(repository.bare)
    tree = Path(session.worktree)
    note = make_ready(with_needs(session, copy=("**/.env*", "a.local", "missing")))
    assert note == "'.env.out' was not copied: it is a link that leads out of the clone"
    assert (tree / ".env").read_text() == "mine\n"
    assert stat.S_IMODE((tree / ".env").stat().st_mode) == 0o600
    assert (tree / "apps/web/.env").exists()
    assert (tree / "apps/api/.env").exists()
    assert (tree / ".env.link").readlink() == Path("apps/web/.env")
    assert (tree / "a.local").exists()
    assert not (tree / "other.local").exists()
    assert session.project.git.at(tree).status() == ()


def test_file_that_the_branch_would_show_is_not_copied(
    session: IssueSession, repository: Repository
) -> None:
    """An agent would commit it: what is ignored in the clone need not be on the branch."""
    (repository.clone / ".gitignore").write_text(".env\n")
    put(repository.clone, ".env")
    note = make_ready(with_needs(session, copy=(".env",)))
    assert note == "'.env' was not copied: git would not ignore it there"
    assert not (Path(session.worktree) / ".env").exists()


# The setup command


def test_setup_runs_once_in_the_new_worktree(session: IssueSession, repository: Repository) -> None:
    line = 'echo ready; pwd >>"$SM_CLONE/../ran"; test "$PWD" = "$SM_WORKTREE"'
    session = with_needs(session, setup=line)
    assert make_ready(session) == ""
    assert make_ready(session) == ""
    assert (repository.clone.parent / "ran").read_text() == f"{session.worktree}\n"
    assert session.dir.setup_log.read_text() == "ready\n"
    assert stat.S_IMODE(session.dir.setup_log.stat().st_mode) == 0o600
    assert session.project.git.at(Path(session.worktree)).status() == ()


def test_setup_that_fails_is_told_with_its_last_lines_and_tried_again_later(
    session: IssueSession,
) -> None:
    session = with_needs(session, setup="seq 100; echo token=ghp_" + "a" * 36 + " >&2; exit 3")
    with pytest.raises(SetupError, match=r"failed \(3\): 97 / 98 / 99 / 100 / token=") as caught:
        make_ready(session)
    assert "ghp_a" not in caught.value.message
    assert str(session.dir.setup_log) in caught.value.message
    with pytest.raises(SetupPausedError, match=r"failed \(3\).*tried again at \d\d:") as one:
        make_ready(session)
    with pytest.raises(SetupPausedError) as other:
        make_ready(session)
    assert one.value.message == other.value.message  # told once
    assert make_ready(with_needs(session, setup="true")) == ""
    assert not session.dir.setup_failed.exists()


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 60), (2, 120), (7, 3600), (99, 3600)])
def test_pause_after_a_failed_setup_grows(failures: int, pause_s: float) -> None:
    assert furnish._pause_s(failures) == pause_s


def test_setup_that_hangs_is_stopped_with_all_that_it_has_started(session: IssueSession) -> None:
    session = with_needs(session, setup="sleep 600 & echo $! >.git-pid; sleep 600", timeout_s=0.5)
    with pytest.raises(SetupError, match=r"was stopped after 0.5 s"):
        make_ready(session)
    child = int((Path(session.worktree) / ".git-pid").read_text())
    wait_for(lambda: procfs.find(child) is None, "the end of what it had started")


def test_setup_that_a_kill_has_left_running_is_ended_before_the_next(
    session: IssueSession, tmp_path: Path
) -> None:
    """The process that ran it is killed; the command itself goes on."""
    pid_file = tmp_path / "pid"
    first = with_needs(session, setup=f"echo $$ >{pid_file}; exec sleep 600")
    if (child := os.fork()) == 0:  # pragma: no cover - it is killed
        try:
            make_ready(first)
        finally:
            os._exit(1)
    wait_for(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"), "the setup")
    os.kill(child, 9)
    os.waitpid(child, 0)
    left = int(pid_file.read_text())
    assert procfs.find(left)
    assert make_ready(with_needs(session, setup="true")) == ""
    wait_for(lambda: procfs.find(left) is None, "the end of the first one")


# Submodules


@pytest.fixture
def library(repository: Repository) -> Path:
    """A repository that is the submodule `lib` of the project's, set up in the clone."""
    path = repository.bare.with_name("library")
    path.mkdir()
    git(path, "init", "-q")
    put(path, "lib.c", "1\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    git(repository.clone, "submodule", "--quiet", "add", str(path), "lib")
    git(repository.clone, "commit", "-qm", "add lib")
    git(repository.clone, "push", "-q", "origin", "HEAD:main", "HEAD:fix/7")
    return path


def test_submodules_come_from_the_clone(session: IssueSession, library: Path) -> None:
    """Also where their URL leads nowhere from a worktree, or the network is away."""
    library.rename(library.with_name("away"))
    make_ready(session)
    lib = Path(session.worktree) / "lib"
    assert (lib / "lib.c").read_text() == "1\n"
    assert git(lib, "remote", "get-url", "origin") == str(library)
    assert session.project.git.at(Path(session.worktree)).status() == ()


def test_commit_of_a_submodule_that_the_clone_lacks_is_fetched(
    session: IssueSession, library: Path
) -> None:
    put(library, "lib.c", "2\n")
    git(library, "commit", "-qam", "second")
    head = git(library, "rev-parse", "HEAD")
    push_gitlink(session, head)
    make_ready(session)
    assert (Path(session.worktree) / "lib/lib.c").read_text() == "2\n"


def push_gitlink(session: IssueSession, head: str) -> None:
    """Have the branch of the issue record another commit of `lib`."""
    repo = session.project.settings.repo
    git(repo, "update-index", "--cacheinfo", f"160000,{head},lib")
    git(repo, "commit", "-qm", "take the newest lib")
    git(repo, "push", "-q", "origin", "HEAD:fix/7")


def test_submodule_with_work_in_it_is_left_alone(session: IssueSession, library: Path) -> None:
    make_ready(session)
    lib = Path(session.worktree) / "lib"
    put(lib, "lib.c", "being edited\n")
    git(lib, "commit", "-qam", "of the agent")
    head = git(lib, "rev-parse", "HEAD")
    (session.project.git.at(Path(session.worktree)).git_dir() / furnish.DONE).unlink()
    make_ready(session)
    assert git(lib, "rev-parse", "HEAD") == head


def test_submodule_that_cannot_be_had_is_named(session: IssueSession, library: Path) -> None:
    push_gitlink(session, "a" * 40)
    with pytest.raises(SubmoduleError, match="submodule 'lib' cannot be checked out"):
        make_ready(session)


HOSTILE = {
    "a command as its URL": '[submodule "{name}"]\n\tpath = {name}\n\turl = ext::touch {bait}\n',
    "an option as its URL": '[submodule "{name}"]\n\tpath = {name}\n\turl = -utouch {bait}\n',
    "a folder of mine": '[submodule "{name}"]\n\tpath = {name}\n\turl = {secret}\n',
    "a command to update it": (
        '[submodule "lib"]\n\tpath = lib\n\turl = {secret}\n\tupdate = !touch {bait}\n'
    ),
    "another place for mine": '[submodule "lib"]\n\tpath = lib\n\turl = {secret}\n',
    "a name that leads out": '[submodule "../../x"]\n\tpath = evil\n\turl = {secret}\n',
    "a path that is an option": '[submodule "-x"]\n\tpath = -x\n\turl = {secret}\n',
    "a file of its own choice": "[include]\n\tpath = {bait}\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_branch_cannot_say_where_a_submodule_comes_from(
    kind: str, session: IssueSession, library: Path, tmp_path: Path
) -> None:
    """A `.gitmodules` is the word of whoever pushes; only the clone says what is fetched."""
    repo, bait = session.project.settings.repo, tmp_path / "bait"
    secret = tmp_path / "secret"
    git(tmp_path, "clone", "-q", "--bare", str(library), str(secret))
    git(repo, "config", "protocol.ext.allow", "always")
    text = HOSTILE[kind].format(name="evil", bait=bait, secret=secret)
    put(repo, ".gitmodules", text)
    head = git(library, "rev-parse", "HEAD")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},evil")
    git(repo, "add", ".gitmodules")
    git(repo, "commit", "-qm", "hostile")
    git(repo, "push", "-q", "origin", "HEAD:fix/7")
    with contextlib.suppress(SubmoduleError):  # git refuses some of them altogether
        make_ready(session)
    tree = Path(session.worktree)
    assert not bait.exists()
    assert list((tree / "evil").iterdir()) == []
    modules = session.project.git.at(tree).git_dir() / "modules"
    assert {path.name for path in modules.glob("*")} <= {"lib"}
    if (tree / "lib/.git").exists():
        assert git(tree / "lib", "remote", "get-url", "origin") == str(library)


def test_nested_submodules_come_from_the_clone_as_well(
    session: IssueSession, library: Path, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "clone", "-q", str(library), str(inner))
    git(library, "submodule", "--quiet", "add", str(inner), "deep")
    git(library, "commit", "-qm", "add deep")
    repo = session.project.settings.repo
    git(repo / "lib", "pull", "-q", "origin", "HEAD")
    push_gitlink(session, git(library, "rev-parse", "HEAD"))
    git(repo, "submodule", "--quiet", "update", "--init", "--recursive")
    inner.rename(tmp_path / "away")
    tree = session.project.settings.worktree(7)
    make_ready(session)
    assert submodules.fill(tree, session.project.git.common_dir()) == ("lib", "lib/deep")
    assert (tree / "lib/deep/lib.c").exists()


# Hooks that are files of the branch


@pytest.mark.parametrize("setting", ["core.hooksPath", "core.fsmonitor"])
def test_branch_brings_no_hook_that_sm_runs(
    session: IssueSession, repository: Repository, tmp_path: Path, setting: str
) -> None:
    """With `core.hooksPath .husky` git runs hooks of the files that it has just checked out."""
    bait, clone = tmp_path / "bait", repository.clone
    git(clone, "config", setting, ".husky" if "hooks" in setting else ".husky/post-checkout")
    for name in ("post-checkout", "post-merge"):
        put(clone, f".husky/{name}", f"#!/bin/sh\ntouch {bait}\n", 0o755)
    git(clone, "-c", f"{setting}=", "add", ".husky")
    git(clone, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=", "commit", "-qm", "hostile")
    head = git(clone, "rev-parse", "HEAD")
    git(clone, "-c", "core.hooksPath=", "push", "-q", "origin", "HEAD:fix/7")
    git(clone, "-c", "core.fsmonitor=false", "reset", "-q", "--hard", "origin/main")
    bait.unlink(missing_ok=True)
    make_ready(session)
    tree = Path(session.worktree)
    assert (tree / ".husky/post-checkout").exists()
    session.project.git.at(tree).status()
    session.project.git.switch_to(head)  # as sm pr checkout does in the person's clone
    assert not bait.exists()


# The sandbox


def wrap_setup(start: Start) -> list[str]:
    return ["env", f"INSIDE={start.session}", *start.argv]


def take_away(settings: AnySettings, session: str) -> None:
    assert isinstance(settings, ProjectSettings)
    (settings.repo.parent / "cleaned").write_text(session)


BOX = Sandbox(wrap_setup, lambda _: "", clean=take_away)
NO_BOX = Sandbox(wrap_setup, lambda _: "no namespaces here")
PLUGIN = Plugin(sandboxes={"box": f"{__name__}:BOX", "none": f"{__name__}:NO_BOX"})


def test_setup_runs_in_the_sandbox_or_not_at_all(
    session: IssueSession, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_registry", Registry({"boxes": f"{__name__}:PLUGIN"}.items))
    session = with_needs(session, setup='echo "$INSIDE" >>"$SM_CLONE/../ran"')
    settings = structs.replace(session.project.settings, sandbox="none")
    with pytest.raises(SandboxError, match="'none' cannot be had: no namespaces here"):
        make_ready(session.provide(holder=settings))
    assert not (repository.clone.parent / "ran").exists()
    make_ready(session.provide(holder=structs.replace(settings, sandbox="box")))
    assert (repository.clone.parent / "ran").read_text() == f"{session.name}\n"
    assert (repository.clone.parent / "cleaned").read_text() == session.name
