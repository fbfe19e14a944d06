"""Finds out about a repository: its remotes, its primary branch, how it is tested and set up."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import BUILTIN, find_by_command
from sm.adapters.forge.local.entry import find_bare
from sm.adapters.forge.local.repository import is_bare
from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.git_files import list_ignored
from sm.adapters.process import ANY_CODE
from sm.base.errors import SmError, UsageError
from sm.base.text import format_count
from sm.store.bounded import parse_json

ASK_S = 20.0
"""Time for a question that the clone can answer, too, in seconds."""

HUB = "hub"
"""Name of the remote that is added if `origin` is on another machine."""


class FoundRemote(Struct, frozen=True):
    """Remote; `bare` is the repository, if it is a bare one on this machine."""

    name: str
    url: str
    bare: Path | None


def find_repository(folder: Path) -> Path:
    """Return the clone of `folder`; for a linked worktree, the clone that it belongs to.

    Raises:
        UsageError: there is no clone, or it has no working tree or no commit.
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
    """Return git's answer, None if it fails."""
    result = call(repo, *args, accept=tuple(ANY_CODE))
    return result.stdout.strip() if result.code == 0 else None


def list_remotes(repo: Path) -> tuple[FoundRemote, ...]:
    """Return the remotes, those first that an embedded forge can use, among equals origin first."""
    found = []
    for name in (_ask(repo, "remote") or "").splitlines() if repo.is_dir() else ():
        url = _ask(repo, "remote", "get-url", name) or ""
        found.append(FoundRemote(name, url, find_bare(repo, url)))
    order = {"origin": 0, HUB: 1}
    return tuple(sorted(found, key=lambda one: (one.bare is None, order.get(one.name, 2))))


def remote_url(repo: Path, name: str) -> str:
    """Return the URL of a remote, '' if the clone has none of that name."""
    found = _ask(repo, "remote", "get-url", name) if repo.is_dir() else None
    return found or ""


def find_shared_remote(remotes: tuple[FoundRemote, ...], used: str) -> str | None:
    """Return the remote that people share beside ours: origin, else the only other one."""
    others = [one.name for one in remotes if one.name != used]
    if "origin" in others:
        return "origin"
    return others[0] if len(others) == 1 else None


def find_primary_branch(repo: Path, remote: str | None) -> str | None:
    """Return the branch to start from: the remote's, else the one checked out, or None.

    The remote itself is asked first: what the clone has noted may have been renamed since.
    """
    if remote is not None:
        if found := ask_primary_branch(repo, remote):
            return found
        head = _ask(repo, "symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD")
        if head is not None and _ask(repo, "rev-parse", "--verify", "--quiet", head):
            return head.removeprefix(f"refs/remotes/{remote}/")
    return _ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD")


def ask_primary_branch(repo: Path, remote: str) -> str | None:
    """Return the remote's own primary branch; None if it has none, or is out of reach."""
    args = ("ls-remote", "--symref", "--", remote, "HEAD")
    with contextlib.suppress(SmError):
        said = call(repo, *args, remote=remote, timeout_s=ASK_S).stdout
        if found := re.search(r"^ref: refs/heads/(\S+)\tHEAD$", said, re.MULTILINE):
            return found[1]
    return None


def advise_on_branch(repo: Path, remote: str, branch: str) -> str:
    """Return what helps if the remote has no branch `branch`: its name may have changed.

    A branch that the remote once had is not to be pushed again: that would bring a dead branch
    back.
    """
    push = f"run git push {remote} {branch}"
    theirs = ask_primary_branch(repo, remote)
    if theirs in (None, branch):
        return push
    instead = f"take '{theirs}', its primary branch (--primary-branch, or 'primary_branch')"
    had = _ask(repo, "rev-parse", "--verify", "--quiet", f"refs/remotes/{remote}/{branch}")
    return instead if had else f"{push}, or {instead}"


def list_unseen(repo: Path, remote: str, primary: str) -> Iterator[str]:
    """Yield what of the clone agents do not see, as they begin from the remote's branch."""
    if changed := len(Git(repo).status()):
        yield f"{format_count(changed, 'changed file')} in '{repo}', not committed yet"
    base, own = f"refs/remotes/{remote}/{primary}", f"refs/heads/{primary}"
    if ahead := int(_ask(repo, "rev-list", "--count", f"{base}..{own}") or 0):
        yield f"{format_count(ahead, 'commit')} of '{primary}', not pushed to '{remote}' yet"


def find_agent_command() -> str | None:
    """Return how the first known agent on PATH runs unattended."""
    return next((agent.command for agent in _runnable() if shutil.which(agent.program)), None)


def list_agents() -> list[str]:
    """Return the programs of the agents that sm knows."""
    return [profile.program for profile in _runnable()]


def find_agent(text: str) -> tuple[str, Profile]:
    """Return command line and profile for a person's name of the agent.

    The bare name of a known program stands for its unattended way to run.
    """
    profile = find_by_command(text, {})
    return (profile.command if text and text == profile.program else text), profile


def _runnable() -> Iterator[Profile]:
    return (profile for profile in BUILTIN.values() if profile.program)


def guess_ci_command(repo: Path) -> str:
    """Guess from its files how the project is tested; '' if nothing tells."""
    return next(_ci_commands(repo), "")


def _ci_commands(repo: Path) -> Iterator[str]:
    # A target of that name is the project's own word. The others are guesses by language.
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
    """Return the command that tests; it installs first, as a clean checkout has no packages."""
    try:
        data = parse_json(_text(repo / "package.json").encode())
    except ValueError:
        return None
    match data:
        case {"scripts": {"test": test}} if "no test specified" in str(test):
            return None  # the placeholder of `npm init`
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


LOCKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("package-lock.json", "npm-shrinkwrap.json"), "npm ci"),
    (("pnpm-lock.yaml",), "pnpm install --frozen-lockfile"),
    (("bun.lock", "bun.lockb"), "bun install --frozen-lockfile"),
    (("uv.lock",), "uv sync"),
    (("poetry.lock",), "poetry install"),
    (("Gemfile.lock",), "bundle install"),
    (("composer.lock",), "composer install"),
)
"""Lock files, and the command that installs just what they name."""
YARN = ("yarn install --frozen-lockfile", "yarn install --immutable")
"""Commands for yarn of version 1, and of later ones, which have a `.yarnrc.yml`."""
SHOWN = 20


def guess_setup(repo: Path) -> str:
    """Return a command that installs what the lock files name, with the programs that are here."""
    found = [line for names, line in LOCKS if any((repo / name).is_file() for name in names)]
    if (repo / "yarn.lock").is_file() and not any(
        line.startswith(("npm", "pnpm")) for line in found
    ):
        found.append(YARN[(repo / ".yarnrc.yml").exists()])
    return " && ".join(line for line in found if shutil.which(line.split()[0]))


def find_ignored(repo: Path) -> tuple[str, ...]:
    """Return files such as `.env` that git ignores and a program may need."""
    try:
        names = list_ignored(repo)
    except SmError:  # a clone that calls itself bare has none; sm doctor says so
        return ()
    return tuple(name for name in names if _is_environment(name))[:SHOWN]


def _is_environment(name: str) -> bool:
    file = PurePosixPath(name).name
    return not name.endswith("/") and (file == ".env" or file.startswith((".env.", ".envrc")))
