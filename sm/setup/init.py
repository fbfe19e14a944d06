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
from sm.config.read import SUFFIXES
from sm.config.schema import AgentSettings, ProjectSettings
from sm.config.write import Values, check_values, format_text
from sm.setup import discover, mend
from sm.setup.discover import HUB, FoundRemote, find_agent
from sm.setup.existing import Existing, find_holder
from sm.setup.mend import Mending
from sm.setup.variables import Variables
from sm.store.files import write_atomic
from sm.store.paths import check_name

NO_CI = "none"
"""Answer for no CI, or no setup; an empty answer takes the guess."""

DEFAULT_PREFIX = "fix"

SEED = "refs/sm/seed"
"""Ref that holds in a new hub what a partial clone lacks, until the branch is there."""

COPY_S = 3600.0
"""Time for the first copy of a repository, which may be large, in seconds."""


class Hub(Struct, frozen=True):
    """Bare repository that agents push to.

    `remote` is its name in the clone, `is_new` whether there is no such repository yet, `is_named`
    whether the clone has the remote all the same, `beside` the remote of the clone's origin, if
    that is another one.
    """

    remote: str
    bare: Path
    is_new: bool
    beside: FoundRemote | None = None
    is_named: bool = False


class Setup(Struct, frozen=True):
    """Decisions of one `sm init`."""

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
    existing: Existing | None = None
    """Project as its file has it, which stays as it is."""

    @property
    def command(self) -> str:
        """Command line of the agent."""
        return find_agent(self.agent)[0]

    @property
    def agent_settings(self) -> AgentSettings:
        """Settings of the agent, as the configuration has them."""
        if self.existing:
            return self.existing.project.agent
        chosen = self.variables
        return AgentSettings(
            command=self.command, pass_env=chosen.passed, withheld_env=chosen.withheld
        )

    @property
    def profile(self) -> Profile:
        """Profile for driving the agent."""
        return find_agent(self.agent)[1]

    @property
    def values(self) -> Values:
        """Keys of the configuration file."""
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
        """Values of how pushes are tested; a forge elsewhere knows that itself."""
        if self.forge.is_elsewhere:
            return {}
        return {"ci": {"command": "" if self.ci == NO_CI else self.ci}}

    @property
    def _own_prefix(self) -> Values:
        """Prefix of branches, where git cannot have the usual ones beside one that is there."""
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
        """Project that this makes.

        Raises:
            UsageError: a value cannot be used.

        """
        return self.existing.project if self.existing else check_values(self.values, self.output)


def _list_own_keys(forge: ForgeSettings) -> dict[str, str | bool | list[str]]:
    """List the keys of the forge that differ from their defaults."""
    defaults = {field.encode_name: field.default for field in structs.fields(forge)}
    values = to_builtins(forge, enc_hook=str)
    return {key: value for key, value in values.items() if value != defaults.get(key, NODEFAULT)}


def name_project(repo: Path) -> str:
    """Return a name for the project of a repository, from its folder's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", repo.name).strip(".-")[:64] or "project"


def locate_hub(repo: Path) -> Path:
    """Return the folder for the hub and the forge: beside the clone."""
    return repo.with_name(f"{repo.name}-hub")


def locate_bare(repo: Path) -> Path:
    """Return the folder for the bare repository that agents push to."""
    return locate_hub(repo) / "repo.git"


def choose_hub(repo: Path, remotes: tuple[FoundRemote, ...], wanted: str | None) -> Hub:
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
    if (remote := named.get(wanted)) and remote.url == str(locate_bare(repo)):
        beside = next((one for one in remotes if one.name != wanted), None)
        return Hub(wanted, locate_bare(repo), is_new=True, beside=beside, is_named=True)
    if wanted in named:
        raise UsageError(
            f"remote '{wanted}' is no bare repository on this machine, which the embedded forge "
            "needs: give --remote a name that is not taken, to have one made"
        )
    return Hub(wanted, locate_bare(repo), is_new=True, beside=remotes[0] if remotes else None)


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
    if setup.existing is None:
        _check_file(setup, force=force)
    if setup.hub.is_new:
        find_source(setup.repo, setup.hub, setup.primary)
    else:
        _check_branch(setup)


def _check_file(setup: Setup, *, force: bool) -> None:
    check_values(setup.values, setup.output)
    if setup.output.suffix not in SUFFIXES:
        raise UsageError(f"'{setup.output}' must end in .yaml or .toml")
    text = format_text(setup.values, setup.output)
    if not force and setup.output.exists() and _content(setup.output) not in ("", text):
        raise UsageError(f"'{setup.output}' exists: use --force to replace it, or --output")
    check_name_is_free(setup.name, setup.output)


def _content(path: Path) -> str:
    """Return the file's text without blanks at its end; '' if it says nothing."""
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {(error.strerror or '').lower()}") from error
    return text if text.strip() else ""


def check_name_is_free(name: str, output: Path) -> None:
    """Refuse a project name that cannot be used, or that is taken.

    Raises:
        UsageError: which of them it is.

    """
    check_name(name, "project")
    if holder := find_holder(name, output):
        known, file = holder
        raise UsageError(f"project '{known}' is in '{file.parent}' already: choose another --name")


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
        if setup.existing is None:
            yield from _write(setup)
    except OSError as error:
        raise SmError(
            f"cannot create '{error.filename}': {(error.strerror or '').lower()}"
        ) from error


def _write(setup: Setup) -> Iterator[str]:
    setup.output.parent.mkdir(parents=True, exist_ok=True)
    text = format_text(setup.values, setup.output)
    if not setup.output.exists() or _content(setup.output) != text:
        write_atomic(setup.output, text, durable=True)
        yield f"wrote '{setup.output}'"
    asked = setup.output, os.environ, Path.cwd()
    if setup.output.stem == "sm" and allowed.is_in_work_tree(*asked):
        allowed.allow(setup.output, text.encode())  # the person has just agreed to it


def list_changes(setup: Setup) -> Iterator[Mending]:
    """Yield the changes that the clone's configuration needs, once there is a hub."""
    return mend.list_changes(setup.repo, setup.hub.remote, setup.primary)


def spell_pull(setup: Setup) -> str:
    """Spell the command that brings what agents have merged into the clone."""
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
    if not hub.is_named:
        call(setup.repo, "remote", "add", hub.remote, str(hub.bare))
    Git(setup.repo).fetch_branch(hub.remote, primary)
    if not hub.is_named:
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
    return find_source(setup.repo, setup.hub, setup.primary)


def find_source(repo: Path, hub: Hub, primary: str) -> str:
    """Return the clone's ref for the primary branch: its own, unless the remote's is ahead.

    Raises:
        UsageError: there is no such branch.

    """
    git, own = Git(repo), f"refs/heads/{primary}"
    theirs = f"refs/remotes/{hub.beside.name}/{primary}" if hub.beside else own
    if git.rev_parse(own) is None and git.rev_parse(theirs) is None:
        raise UsageError(f"'{repo}' has no branch '{primary}': see --primary-branch")
    if git.rev_parse(theirs) and (git.rev_parse(own) is None or git.is_ancestor(own, theirs)):
        return theirs
    return own
