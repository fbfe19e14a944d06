"""Sets a project up: hub repository, forge, configuration file. Can be run again."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import NODEFAULT, Struct, structs, to_builtins

from sm.adapters.agent.profile import Profile
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.local.repository import is_bare
from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.base.errors import SmError, UsageError
from sm.base.redact import redact
from sm.config import allowed
from sm.config.check import check_path
from sm.config.forges import ForgeSettings
from sm.config.load import find_user_folder, list_files, load_any
from sm.config.read import SUFFIXES
from sm.config.schema import ProjectSettings
from sm.config.write import Values, check_values, format_text
from sm.setup import discover, mend
from sm.setup.discover import HUB, Remote, find_agent
from sm.setup.mend import Change
from sm.setup.variables import Variables
from sm.store.files import write_atomic
from sm.store.paths import name_session

NO_CI = "none"
"""The answer for no CI, or no setup; an empty answer takes the guess."""

DEFAULT_PREFIX = "fix"

SEED = "refs/sm/seed"
"""Holds in a new hub what a partial clone lacks, until the branch is there."""

COPY_S = 3600.0
"""Seconds for the first copy of a repository, which may be large."""


class Hub(Struct, frozen=True):
    """The bare repository that agents push to.

    `remote` is its name in the clone, `is_new` whether the clone has no such remote yet, `beside`
    the remote of the clone's origin, if that is another one.
    """

    remote: str
    bare: Path
    is_new: bool
    beside: Remote | None = None


class Setup(Struct, frozen=True):
    """Everything that was decided."""

    name: str
    repo: Path
    hub: Hub
    primary: str
    agent: str
    ci: str
    forge: ForgeSettings
    output: Path
    variables: Variables = Variables()
    branch_prefix: str = DEFAULT_PREFIX
    worktree_setup: str = ""
    worktree_copy: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The agent's command line."""
        return find_agent(self.agent)[0]

    @property
    def profile(self) -> Profile:
        """How the agent is driven."""
        return find_agent(self.agent)[1]

    @property
    def values(self) -> Values:
        """The configuration file's keys."""
        chosen = self.variables
        both = {"pass_env": list(chosen.passed), "withheld_env": list(chosen.withheld)}
        passed = {key: names for key, names in both.items() if names}
        return {
            "name": self.name,
            "repo": str(self.repo),
            "remote": self.hub.remote,
            "primary_branch": self.primary,
            **self._own_prefix,
            "forge": _list_own_keys(self.forge),
            "agent": {"command": self.command, **passed},
            **self._new_worktrees,
            **self._own_ci,
        }

    @property
    def _own_ci(self) -> Values:
        """How pushes are tested; a forge elsewhere knows that itself."""
        if self.forge.is_elsewhere:
            return {}
        return {"ci": {"command": "" if self.ci == NO_CI else self.ci}}

    @property
    def _own_prefix(self) -> Values:
        """Where git cannot have the usual branches beside one that is there."""
        if self.branch_prefix == DEFAULT_PREFIX:
            return {}
        return {"branch_prefix": self.branch_prefix}

    @property
    def _new_worktrees(self) -> Values:
        copy: dict[str, str | bool | list[str]] = {}
        if self.worktree_copy:
            copy["copy"] = list(self.worktree_copy)
        line = {"setup": "" if self.worktree_setup == NO_CI else self.worktree_setup}
        both = copy | (line if self.worktree_setup else {})
        return {"worktree": both} if both else {}

    @property
    def project(self) -> ProjectSettings:
        """The project that this makes.

        Raises:
            UsageError: a value cannot be used.

        """
        return check_values(self.values, self.output)


def _list_own_keys(forge: ForgeSettings) -> dict[str, str | bool | list[str]]:
    """The keys of the forge that are not as they are by themselves."""
    defaults = {field.encode_name: field.default for field in structs.fields(forge)}
    values = to_builtins(forge, enc_hook=str)
    return {key: value for key, value in values.items() if value != defaults.get(key, NODEFAULT)}


def name_project(repo: Path) -> str:
    """Return a name for the project of a repository, from its folder's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", repo.name).strip(".-")[:64] or "project"


def locate_hub(repo: Path) -> Path:
    """Return the folder for the hub and the forge: beside the clone."""
    return repo.with_name(f"{repo.name}-hub")


def choose_hub(repo: Path, remotes: tuple[Remote, ...], wanted: str | None) -> Hub:
    """Choose the repository that agents push to: a bare local remote, else a new one.

    Raises:
        UsageError: the wanted remote cannot be the hub.

    """
    named = {remote.name: remote for remote in remotes}
    if wanted is None:
        if remotes and (bare := remotes[0].bare):
            return Hub(remotes[0].name, bare, is_new=False)
        wanted = HUB if remotes else "origin"
    elif (remote := named.get(wanted)) and remote.bare:
        return Hub(wanted, remote.bare, is_new=False)
    if wanted in named:
        raise UsageError(
            f"remote '{wanted}' is no bare repository on this machine, which the embedded forge "
            "needs: give --remote a name that is not taken, to have one made"
        )
    bare = locate_hub(repo) / "repo.git"
    return Hub(wanted, bare, is_new=True, beside=remotes[0] if remotes else None)


def choose_primary_branch(repo: Path, hub: Hub) -> str | None:
    """Return the branch to start from, as the clone's original remote has it."""
    if hub.beside is not None:
        return discover.find_primary_branch(repo, hub.beside.name)
    return discover.find_primary_branch(repo, None if hub.is_new else hub.remote)


def check(setup: Setup, *, force: bool) -> None:
    """Refuse what would fail half-way, before anything changes.

    Raises:
        UsageError: a value cannot be used, or the file exists with other content.

    """
    for path in (setup.hub.bare, setup.output):
        check_path(path)
    check_values(setup.values, setup.output)
    if setup.output.suffix not in SUFFIXES:
        raise UsageError(f"'{setup.output}' must end in .yaml or .toml")
    text = format_text(setup.values, setup.output)
    if not force and setup.output.exists() and _content(setup.output) != text:
        raise UsageError(f"'{setup.output}' exists: use --force to replace it, or --output")
    _check_name_is_free(setup)
    if setup.hub.is_new:
        _source(setup)
    else:
        _check_branch(setup)


def _content(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {(error.strerror or '').lower()}") from error


def _check_name_is_free(setup: Setup) -> None:
    """Refuse a known project name: all files of the user's folder hold together."""
    folder = find_user_folder(os.environ)
    if setup.output.parent != folder:
        return
    others = [file for file in list_files(folder) if file != setup.output]
    for project in (one for file in others for one in load_any(file, {}, folder).projects):
        if name_session(project.name, 1) == name_session(setup.name, 1):
            raise UsageError(
                f"project '{project.name}' is in '{folder}' already: choose another --name"
            )


def _check_branch(setup: Setup) -> None:
    ref = f"refs/heads/{setup.primary}"
    if ref not in Git(setup.repo).ls_remote(setup.hub.remote, ref):
        raise UsageError(
            f"remote '{setup.hub.remote}' has no branch '{setup.primary}': "
            f"{discover.advise_on_branch(setup.repo, setup.hub.remote, setup.primary)}"
        )


def carry_out(setup: Setup) -> Iterator[str]:
    """Set everything up, step by step; yield a line for each new thing.

    Raises:
        SmError: a step failed; the next run goes on from there.

    """
    try:
        if setup.hub.is_new:
            yield from _make_hub(setup)
        for change in list_changes(setup):
            change.make()
            yield change.what
        yield from kind_of(setup.forge).prepare(setup.forge, setup.hub.bare)
        setup.output.parent.mkdir(parents=True, exist_ok=True)
        text = format_text(setup.values, setup.output)
        if not setup.output.exists() or _content(setup.output) != text:
            write_atomic(setup.output, text, durable=True)
            yield f"wrote '{setup.output}'"
        if setup.output.stem == "sm" and allowed.is_in_work_tree(setup.output):
            allowed.allow(setup.output, text.encode())  # the person has just agreed to it
    except OSError as error:
        raise SmError(
            f"cannot create '{error.filename}': {(error.strerror or '').lower()}"
        ) from error


def list_changes(setup: Setup) -> Iterator[Change]:
    """What the clone's configuration needs, once there is a hub."""
    return mend.list_changes(setup.repo, setup.hub.remote, setup.primary)


def spell_pull(setup: Setup) -> str:
    """How what agents have merged comes into the clone."""
    git, upstream = Git(setup.repo), f"branch.{setup.primary}"
    at_hub = git.setting(f"{upstream}.remote") == setup.hub.remote
    if at_hub and git.setting(f"{upstream}.merge") == f"refs/heads/{setup.primary}":
        return "git pull"
    return shlex.join(("git", "pull", setup.hub.remote, setup.primary))


def _make_hub(setup: Setup) -> Iterator[str]:
    hub, primary = setup.hub, setup.primary
    # We fetch instead of push: then no hook of the user's clone runs, and tags come along.
    # Other branches stay behind: here they would look like work on an issue.
    refs = (f"{_source(setup)}:refs/heads/{primary}", "refs/tags/*:refs/tags/*")
    if not _holds(setup):
        hub.bare.mkdir(parents=True, exist_ok=True)
        objects = call(setup.repo, "rev-parse", "--show-object-format").stdout.strip()
        options = (f"--object-format={objects}", f"--initial-branch={primary}", "--template=")
        call(hub.bare, "init", "--quiet", "--bare", *options)
        _fill_up(setup)
        fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--update-shallow", "--")
        call(hub.bare, *fetch, str(setup.repo), *refs, timeout_s=COPY_S)
        call(hub.bare, "update-ref", "-d", SEED)
        yield f"made the bare repository '{hub.bare}'"
    call(setup.repo, "remote", "add", hub.remote, str(hub.bare))
    Git(setup.repo).fetch_branch(hub.remote, primary)
    yield f"added it to '{setup.repo}' as remote '{hub.remote}'"
    beside = hub.beside.name if hub.beside else ""
    yield from mend.bring_large_files(setup.repo, hub.remote, primary, beside)


def _fill_up(setup: Setup) -> None:
    """Give the hub what a clone without all contents (a partial clone) cannot give it.

    Git serves no object from such a clone that it has still to fetch itself.

    Raises:
        SmError: the contents cannot be fetched.

    """
    if not (url := mend.find_promisor(setup.repo)):
        return
    args = ("fetch", "--quiet", "--no-write-fetch-head", "--no-tags", "--", url)
    refs = (f"+refs/heads/{setup.primary}:{SEED}", "refs/tags/*:refs/tags/*")
    at_hub = f"--git-dir={setup.hub.bare}"
    try:  # in the clone, where a relative path begins
        call(setup.repo, at_hub, *args, *refs, timeout_s=COPY_S)
    except SmError as error:
        raise SmError(
            f"'{setup.repo}' is a partial clone, and what it lacks cannot be fetched from "
            f"'{redact(url)}': {error.message}"
        ) from error


def _holds(setup: Setup) -> bool:
    """Say whether an earlier run has left the hub with the primary branch.

    Raises:
        SmError: the hub's branch has another project's history.

    """
    if not is_bare(setup.hub.bare):
        return False
    hub = Git(setup.hub.bare)
    held = hub.rev_parse(f"refs/heads/{setup.primary}")
    if held is None:
        return False
    hub.fetch(str(setup.repo), _source(setup))
    ours = Git(setup.repo).rev_parse(_source(setup))
    if ours is None or hub.merge_base(held, ours) is None:
        raise SmError(f"'{setup.hub.bare}' holds another project's history: move it away")
    return True


def _source(setup: Setup) -> str:
    """Return the clone's ref for the primary branch: its own, unless the remote's is ahead."""
    git, own = Git(setup.repo), f"refs/heads/{setup.primary}"
    beside = setup.hub.beside
    theirs = f"refs/remotes/{beside.name}/{setup.primary}" if beside else own
    if git.rev_parse(own) is None and git.rev_parse(theirs) is None:
        raise UsageError(f"'{setup.repo}' has no branch '{setup.primary}': see --primary-branch")
    if git.rev_parse(theirs) and (git.rev_parse(own) is None or git.is_ancestor(own, theirs)):
        return theirs
    return own
