"""Checks the values that have a right type: names for git, tmux and the file system.

Every check beyond the schema is a row of `CHECKS` or `SHARED_CHECKS`. Checks that need several
projects are in `check_together`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from sm.base.errors import UsageError
from sm.config.cache import KeyPath
from sm.config.convert import FoundSection, convert
from sm.config.schema import LOCAL, MachineSettings, ProjectSettings
from sm.store.paths import check_name, name_session

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LAUNCHER = "_sm_"
"""Beginning of the variables of `lib/launch`, which cannot set such a variable for the agent."""
REF_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^/|/$|\.$|^-")


def find_ref_problem(name: str) -> str | None:
    """Say why git would refuse `name` as a branch (git-check-ref-format), or None."""
    parts = name.split("/")
    if not name or REF_FORBIDDEN.search(name) or name == "@":
        return f"git refuses '{name}' as part of a branch name"
    if any(part.startswith(".") or part.endswith(".lock") for part in parts):
        return f"git refuses '{name}' as part of a branch name"
    return None


def find_variable_problem(name: str) -> str | None:
    """Say why an agent cannot have a variable of that name, or None."""
    if not VARIABLE.fullmatch(name):
        return f"'{name}' is no name for a variable"
    if name.startswith(LAUNCHER):
        return f"'{name}' is one of the launcher's own names: choose one without '{LAUNCHER}'"
    return None


def find_path_problem(path: Path) -> str | None:
    """Say why work in the folder `path` would always fail, or None."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return f"{str(path)!a} is not UTF-8, as files of sm and of the agents are: rename it"
    if "\n" in str(path):
        return f"{str(path)!a} has a line break, where git ends the path for a CI run: rename it"
    return None


def check_path(path: Path) -> None:
    """Refuse a folder in which work would always fail.

    Raises:
        UsageError: its name is not UTF-8, or has a line break.

    """
    if problem := find_path_problem(path):
        raise UsageError(f"cannot use the path {problem}")


def _name(project: ProjectSettings) -> str | None:
    try:
        check_name(project.name, "project")
    except UsageError as error:
        return error.message
    return None


def _forge_path(project: ProjectSettings) -> str | None:
    """Check the path of the forge, which only a forge on this machine has."""
    path = getattr(project.forge, "path", None)
    return find_path_problem(path) if isinstance(path, Path) else None


def _branch_prefix(project: ProjectSettings) -> str | None:
    prefix, primary = project.branch_prefix, project.primary_branch
    if prefix == primary or prefix.startswith(f"{primary}/"):
        return f"git cannot have '{project.branch(1)}' beside the primary branch '{primary}'"
    return find_ref_problem(prefix)


def _labels(project: ProjectSettings) -> str | None:
    labels = structs.astuple(project.labels)
    if any(not label.strip() or not label.isprintable() for label in labels):
        return "a label needs a name"
    if len(set(labels)) < len(labels):
        return "two of the labels are the same"
    return None


def _max_open(project: ProjectSettings) -> str | None:
    if project.open_limit >= project.max_sessions:
        return None
    return f"it must be at least 'max_sessions', which is {project.max_sessions}"


def _command(project: ProjectSettings) -> str | None:
    if not project.agent.command:
        return None
    try:
        words = shlex.split(project.agent.command)
    except ValueError as error:
        return f"its quotes do not match ({str(error).lower()})"
    return None if words and words[0] else "it names no program"


def _copy(project: ProjectSettings) -> str | None:
    """Check the patterns: they are git's, without its magic words, and stay in the clone."""
    for pattern in project.new_worktree.copy:
        parts = pattern.split("/")
        if not pattern.strip() or "\0" in pattern or pattern.startswith((":", "/", "~")):
            return f"'{pattern}' is no name of a file in the clone"
        if ".." in parts or ".git" in parts:
            return f"'{pattern}' leads out of the clone's files"
    return None


def _env(project: ProjectSettings) -> str | None:
    for name, value in project.agent.env.items():
        if problem := find_variable_problem(name):
            return problem
        if "\0" in value:
            return f"the value of '{name}' holds a NUL character"
    return None


def _pass_env(project: ProjectSettings) -> str | None:
    return next(filter(None, map(find_variable_problem, project.agent.pass_env)), None)


def _pause(seconds: float) -> str | None:
    return None if seconds > 0 else "it must be more than nothing"


def _critical(holder: MachineSettings | ProjectSettings) -> str | None:
    monitor = holder.context_monitor
    if monitor.critical_percentage > monitor.warning_percentage:
        return None
    return f"it must be more than the warning's {monitor.warning_percentage}"


def _sections(holder: MachineSettings | ProjectSettings) -> str | None:
    empty = not all(section.strip() for section in holder.handoff_cycle.sections)
    return "a section needs a heading" if empty else None


def _folder(holder: MachineSettings | ProjectSettings) -> str | None:
    folder = holder.handoff_cycle.folder
    if not folder.strip() or "\0" in folder:
        return "it names no folder"
    return "it may not lead out of it again" if ".." in folder.split("/") else None


def _tracker(project: ProjectSettings) -> str | None:
    if project.tracker and (project.runner != LOCAL or project.runners):
        return "its sessions can run only here: leave out 'runner' and 'runners', or the tracker"
    return None


CHECKS: tuple[tuple[KeyPath, Callable[[ProjectSettings], str | None]], ...] = (
    (("name",), _name),
    (("repo",), lambda project: find_path_problem(project.repo)),
    (("worktree_root",), lambda project: find_path_problem(project.worktrees)),
    (("forge", "path"), _forge_path),
    (("tracker",), _tracker),
    (("remote",), lambda project: find_ref_problem(project.remote)),
    (("primary_branch",), lambda project: find_ref_problem(project.primary_branch)),
    (("branch_prefix",), _branch_prefix),
    (("labels",), _labels),
    (("max_open",), _max_open),
    (("agent", "command"), _command),
    (("agent", "env"), _env),
    (("agent", "pass_env"), _pass_env),
    (("worktree", "copy"), _copy),
    (("worktree", "timeout"), lambda project: _pause(project.new_worktree.timeout_s)),
    (("poll_interval",), lambda project: _pause(project.poll_interval_s)),
    (("ci", "poll"), lambda project: _pause(project.ci.poll_s)),
    (("ci", "timeout"), lambda project: _pause(project.ci.timeout_s)),
    (("agent", "timeout"), lambda project: _pause(project.agent.timeout_s)),
    (("review", "timeout"), lambda project: _pause(project.review.timeout_s)),
    (("merge", "remind"), lambda project: _pause(project.merge.remind_s)),
    (("escalation", "first_for"), lambda project: _pause(project.escalation.first_for_s)),
    (("escalation", "timeout"), lambda project: _pause(project.escalation.timeout_s)),
)
"""Each row names a key, and a function that says what is wrong with its value, or None."""

SHARED_CHECKS: tuple[
    tuple[KeyPath, Callable[[MachineSettings | ProjectSettings], str | None]], ...
] = (
    (("context_monitor", "critical_percentage"), _critical),
    (("handoff_cycle", "folder"), _folder),
    (("handoff_cycle", "sections"), _sections),
    (("handoff_cycle", "timeout"), lambda holder: _pause(holder.handoff_cycle.timeout_s)),
)
"""The checks of the keys that a machine and a project share."""


def check_machine(
    entry: FoundSection, shape: type[MachineSettings] = MachineSettings
) -> MachineSettings:
    """Return the machine's settings of an entry.

    Raises:
        UsageError: it cannot be used; the message names the key and the file.

    """
    machine = convert(entry, shape)
    for path, problem in SHARED_CHECKS:
        _refuse(entry, path, problem(machine))
    return machine


def make_project(
    entry: FoundSection, shape: type[ProjectSettings] = ProjectSettings
) -> ProjectSettings:
    """Return the project that an entry describes.

    Raises:
        UsageError: it cannot be used; the message names the key and the file.

    """
    project = convert(entry, shape)
    for path, problem in (*CHECKS, *SHARED_CHECKS):
        _refuse(entry, path, problem(project))
    if project.ci.command is not None and not project.ci.command.strip():
        return structs.replace(project, ci=structs.replace(project.ci, command=None))
    return project


def _refuse(entry: FoundSection, path: KeyPath, problem: str | None) -> None:
    if problem:
        raise UsageError(f"wrong value for {entry.key(path)}: {problem}")


def check_together(projects: list[tuple[FoundSection, ProjectSettings]]) -> None:
    """Refuse projects that would use the same names.

    Raises:
        UsageError: two of them would.

    """
    by_session: dict[str, tuple[FoundSection, ProjectSettings]] = {}
    for entry, project in projects:
        other_entry, other = by_session.setdefault(name_session(project.name, 1), (entry, project))
        if other is project:
            continue
        if other.name == project.name:
            raise UsageError(
                f"project '{project.name}' is there twice, in {other_entry.place()} "
                f"and in {entry.place()}: rename or remove one"
            )
        raise UsageError(
            f"projects '{other.name}' and '{project.name}' in {entry.place()} would share "
            "their tmux sessions, where '.' and '_' are the same: rename one"
        )
