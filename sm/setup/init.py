"""Sets a project up: hub repository, forge, configuration file. Can be run again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import NODEFAULT, Struct, structs, to_builtins

from sm.adapters.agent.profile import Profile
from sm.adapters.forge.kinds import kind_of
from sm.base.errors import SmError, UsageError
from sm.config import allowed
from sm.config.check import check_path
from sm.config.forges import ForgeSettings
from sm.config.read import SUFFIXES
from sm.config.schema import AgentSettings, ProjectSettings
from sm.config.text import Values, check_values, format_text
from sm.setup.discover import find_agent
from sm.setup.existing import Existing, find_holder
from sm.setup.hub import Hub, check_branch, find_source, list_changes, make_hub
from sm.setup.variables import Variables
from sm.store.files import write_atomic
from sm.store.paths import check_name

NO_CI = "none"
"""Answer for no CI, or no setup; an empty answer takes the guess."""

DEFAULT_PREFIX = "fix"


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
        is_unusual = self.branch_prefix != DEFAULT_PREFIX  # git cannot have the usual one
        tested_by = "" if self.ci == NO_CI else self.ci
        return {
            "name": self.name,
            "repo": str(self.repo),
            "remote": self.hub.remote,
            "primary_branch": self.primary,
            **({"branch_prefix": self.branch_prefix} if is_unusual else {}),
            "forge": _list_own_keys(self.forge),
            "agent": {"command": self.command, **passed},
            **self._new_worktrees,
            # A forge elsewhere knows itself how pushes are tested.
            **({} if self.forge.is_elsewhere else {"ci": {"command": tested_by}}),
        }

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
        check_branch(setup.repo, setup.hub, setup.primary)


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


def carry_out(setup: Setup) -> Iterator[str]:
    """Set everything up, step by step; yield a line for each new thing.

    Raises:
        SmError: a step failed; the next run goes on from there.

    """
    try:
        if setup.hub.is_new:
            yield from make_hub(setup.repo, setup.hub, setup.primary)
        for change in list_changes(setup.repo, setup.hub.remote, setup.primary):
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
