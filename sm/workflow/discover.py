"""What a repository tells about itself: its remote, its primary branch, how it is tested."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN, of_command
from sm.adapters.forge.repository import BareRepository
from sm.adapters.gitcall import call
from sm.adapters.process import ANY_CODE
from sm.errors import SmError, UsageError
from sm.store.bounded import parse_json
from sm.store.files import follow_links

HUB = "hub"
"""The remote that is added where `origin` is somewhere else."""


class Remote(Struct, frozen=True):
    """A remote; `bare` is the repository, if it is a bare one on this machine."""

    name: str
    url: str
    bare: Path | None


def repository(folder: Path) -> Path:
    """The clone that `folder` belongs to; of a linked worktree, the clone it was made from.

    Raises:
        UsageError: there is none, or it has no working tree or no commit.
        NotARepositoryError: git will not use it.

    """
    top = next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)
    if top is None:
        if is_bare(folder):
            raise UsageError(f"'{folder}' is a bare repository: name a clone of it")
        raise UsageError(f"'{folder}' is in no git repository: name one with --repo")
    said = call(top, "rev-parse", "--path-format=absolute", "--git-common-dir").stdout
    common = Path(said.removesuffix("\n"))
    if common.name == ".git":
        top = common.parent
    if _ask(top, "rev-parse", "--verify", "HEAD^{commit}") is None:
        raise UsageError(f"'{top}' has no commit yet: make a first one (git commit)")
    return top


def _ask(repo: Path, *args: str) -> str | None:
    """What git answers, None where it fails."""
    result = call(repo, *args, accept=tuple(ANY_CODE))
    return result.stdout.strip() if result.code == 0 else None


def is_bare(path: Path) -> bool:
    """Whether `path` is a bare repository."""
    args = ("rev-parse", "--is-bare-repository")
    return BareRepository(path).git(*args, accept=tuple(ANY_CODE)).stdout.strip() == "true"


def remotes(repo: Path) -> tuple[Remote, ...]:
    """The remotes, those first that an embedded forge can use, among equals origin first."""
    found = []
    for name in (_ask(repo, "remote") or "").splitlines() if repo.is_dir() else ():
        url = _ask(repo, "remote", "get-url", name) or ""
        found.append(Remote(name, url, _local_bare(repo, url)))
    order = {"origin": 0, HUB: 1}
    return tuple(sorted(found, key=lambda one: (one.bare is None, order.get(one.name, 2))))


def _local_bare(repo: Path, url: str) -> Path | None:
    """The bare repository that a URL means, if it is one on this machine."""
    place = url.removeprefix("file://")
    if not place or re.match(r"[^/]+:", place):  # https://…, or host:path as scp has it
        return None
    path = repo / place
    candidates = (path, path.with_name(path.name + ".git"))  # git tries both, gitrepository-layout
    return next((follow_links(one) for one in candidates if one.is_dir() and is_bare(one)), None)


def primary_branch(repo: Path, remote: str | None) -> str | None:
    """The branch that others start from: the remote's, else the one checked out, else None."""
    if remote is not None:
        head = _ask(repo, "symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD")
        if head is not None:
            return head.removeprefix(f"refs/remotes/{remote}/")
        with contextlib.suppress(SmError):  # not reachable now: the clone knows enough
            said = call(repo, "ls-remote", "--symref", "--", remote, "HEAD", remote=remote).stdout
            if found := re.search(r"^ref: refs/heads/(\S+)\tHEAD$", said, re.MULTILINE):
                return found[1]
    return _ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD")


def agent_command() -> str | None:
    """How the first known agent that is on PATH runs unattended."""
    return next((agent.command for agent in _runnable() if shutil.which(agent.program)), None)


def agent_named(text: str) -> tuple[str, Profile]:
    """Command line and profile for what a person calls the agent.

    The bare name of a known program stands for the way it runs unattended.
    """
    profile = of_command(text, {})
    return (profile.command if text and text == profile.program else text), profile


def _runnable() -> Iterator[Profile]:
    return (profile for profile in BUILTIN.values() if profile.program)


def ci_command(repo: Path) -> str:
    """How the project is likely tested, by what lies in it; empty where nothing tells."""
    return next(_ci_commands(repo), "")


def _ci_commands(repo: Path) -> Iterator[str]:
    # A target of that name is the project's own word; the rest are guesses by language.
    if any(re.search(r"^test:", _text(repo / name), re.MULTILINE) for name in MAKEFILES):
        yield "make test"
    if (repo / "tests").is_dir() and _is_python(repo):
        yield "python3 -m pytest -q"
    if npm := _npm(repo):
        yield npm
    if (repo / "Cargo.toml").is_file():
        yield "cargo test"
    if (repo / "go.mod").is_file():
        yield "go test ./..."


MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
PYTHON_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "tox.ini")


def _is_python(repo: Path) -> bool:
    return any((repo / name).is_file() for name in PYTHON_FILES) or any(repo.glob("tests/*.py"))


def _npm(repo: Path) -> str | None:
    """A clean checkout has no packages yet, so they are installed first."""
    try:
        data = parse_json(_text(repo / "package.json").encode())
    except ValueError:
        return None
    match data:
        case {"scripts": {"test": test}} if "no test specified" in str(test):
            return None  # what `npm init` puts there
        case {"scripts": {"test": _}, "dependencies": dict(needed)} if needed:
            pass
        case {"scripts": {"test": _}, "devDependencies": dict(needed)} if needed:
            pass
        case {"scripts": {"test": _}}:
            return "npm test"
        case _:
            return None
    install = "npm ci" if (repo / "package-lock.json").is_file() else "npm install"
    return f"{install} && npm test"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
