"""Finds the configuration and reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from sm.base.errors import UsageError
from sm.config import allowed, duration
from sm.config.cache import KeyPath
from sm.config.check import check_machine, check_path, check_together, make_project
from sm.config.convert import FoundSection, make_absolute
from sm.config.read import (
    SUFFIXES,
    ConfigDocument,
    note_usable,
    read_document,
    read_raw,
    recall_usable,
)
from sm.config.schema import Config, MachineSettings
from sm.config.shapes import Shapes, choose_shapes
from sm.store.paths import check_name


class NoConfigError(UsageError):
    """No configuration was named or found, or it has no project."""


def load(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Config:
    """Read the configuration: `explicit`, else SM_CONFIG, else `sm.yaml` in `cwd`, else the user's.

    One in `cwd` that lies in a work tree counts only if the user has allowed it (`allowed.py`).

    The user's configuration is the folder `~/.config/sm` with all its files; `explicit` and
    SM_CONFIG may name such a folder, too. SM_STATE_ROOT and SM_TMUX_SOCKET override the files.
    CLAUDE_TIMEOUT is the default of `agent.timeout`.

    Raises:
        UsageError: there is none, or no project in it, or it cannot be used.

    """
    config = load_any(explicit, env, cwd)
    if not config.projects:
        shown = _shorten_path(config.source, cwd)
        raise NoConfigError(f"no project in '{shown}': run 'sm init' to add one")
    return config


def load_any(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Config:
    """Read the configuration as `load` does, but accept one without a project.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    source = find(explicit, env, cwd)
    check_path(source)
    documents = _read(source, cwd)
    config = _make(source, documents, env, cwd)
    for document in documents:
        note_usable(document)
    return config


def load_last_usable(source: Path, env: Mapping[str, str], cwd: Path) -> Config | None:
    """Return what `source`, which cannot be used now, said when it could be; None if unknown."""
    try:
        found = [recall_usable(path, _shorten_path(path, cwd)) for path in _files(source, cwd)]
        return _make(source, [one for one in found if one], env, cwd) if any(found) else None
    except UsageError:
        return None


def _make(
    source: Path, documents: Sequence[ConfigDocument], env: Mapping[str, str], cwd: Path
) -> Config:
    shapes = choose_shapes(document.data for document in documents)
    machine = _from_env(_machine(documents, shapes), env, cwd)
    shared: dict[str, Any] = _timeout(env)
    for document in documents:
        said = _select_of_machine(document, shapes)
        shared |= {key: value for key, value in said.items() if key in shapes.shared}
    entries = [entry for item in documents for entry in _entries(item, shapes, shared)]
    projects = [(entry, make_project(entry, shapes.project)) for entry in entries]
    check_together(projects)
    return shapes.config(
        **structs.asdict(machine),
        source=source,
        projects=tuple(project for _, project in projects),
    )


def load_machine(
    explicit: Path | None, env: Mapping[str, str], cwd: Path
) -> tuple[MachineSettings, Path | None]:
    """Return the machine's settings and their source; the defaults if there is no file.

    Raises:
        UsageError: a file was named and is not there, or it cannot be used.

    """
    try:
        source = find(explicit, env, cwd)
    except NoConfigError:
        return make_default_machine(env, cwd), None
    documents = _read(source, cwd)
    shapes = choose_shapes(document.data for document in documents)
    return _from_env(_machine(documents, shapes), env, cwd), source


def _read(source: Path, cwd: Path) -> list[ConfigDocument]:
    return [
        read_document(path, shown, allowed.find_check(path, shown))
        for path in _files(source, cwd)
        for shown in [_shorten_path(path, cwd)]
    ]


def make_default_machine(env: Mapping[str, str], cwd: Path) -> MachineSettings:
    """Return the settings without a configuration; relative paths start at `cwd`."""
    return _from_env(MachineSettings(), env, cwd)


def find_user_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the user's own configuration.

    Raises:
        NoConfigError: the user has no home.

    """
    try:
        return Path(env.get("HOME") or Path.home()) / ".config" / "sm"
    except RuntimeError as error:
        raise NoConfigError(
            "no configuration: HOME is not set, and this user has no home: set it, or name one "
            "with --config"
        ) from error


def find(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """Return the file, or the folder of files, that `load` reads.

    Raises:
        UsageError: there is none.

    """
    if explicit is not None:
        return _find_named(explicit, "--config", cwd)
    if from_env := env.get("SM_CONFIG"):
        return _find_named(Path(from_env), "SM_CONFIG", cwd)
    here = [path for path in list_here(cwd) if _may_count(path, env, cwd)]
    if len(here) > 1:
        raise UsageError(f"both '{here[0].name}' and '{here[1].name}' are here: remove one")
    if here:
        # A configuration names commands, and they would run as this user.
        if here[0].stat().st_uid not in (os.geteuid(), 0):
            raise UsageError(
                f"'{here[0].name}' is not owned by you: name it with --config to use it"
            )
        return here[0]
    folder = find_user_folder(env)
    if list_files(folder):
        return folder
    if left := find_left_out(explicit, env, cwd):
        raise NoConfigError(f"no configuration: {allowed.explain(left, left.name)}")
    raise NoConfigError(
        f"no configuration: no sm.yaml or sm.toml here and none in '{folder}': run 'sm init' "
        "to make one, or name one with --config"
    )


def list_here(cwd: Path) -> list[Path]:
    """Return the files in `cwd` that have the name of a configuration."""
    return [path for suffix in SUFFIXES if (path := cwd / f"sm{suffix}").exists()]


def find_left_out(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the file in `cwd` that `find` leaves out because the user has not allowed it."""
    if explicit is not None or env.get("SM_CONFIG"):
        return None
    return next((path for path in list_here(cwd) if not _may_count(path, env, cwd)), None)


def _may_count(path: Path, env: Mapping[str, str], cwd: Path) -> bool:
    if not allowed.is_in_work_tree(path, env, cwd):
        return True
    try:
        return allowed.is_allowed(path, read_raw(path, path.name))
    except UsageError:  # whoever put it there: it keeps no command from working
        return False


def _find_named(path: Path, by: str, cwd: Path) -> Path:
    full = make_absolute(cwd, str(path))
    if not full.exists():
        raise UsageError(f"cannot read '{path}', named by {by}: there is no such file")
    return full


def list_watched(source: Path) -> list[Path]:
    """Return the files whose change may change what `load` reads from `source`, and its folder."""
    return [source, *list_files(source)] if source.is_dir() else [source]


def _files(source: Path, cwd: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    if source.stem == "sm" and source.suffix in SUFFIXES:
        raise UsageError(f"cannot read '{_shorten_path(source, cwd)}': it is a directory")
    if files := list_files(source):
        return files
    raise UsageError(f"no *.yaml or *.toml in the directory '{_shorten_path(source, cwd)}'")


def list_files(folder: Path) -> list[Path]:
    """Return the configuration files of a folder, sorted by name; none if the folder is missing."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UsageError(f"cannot read '{folder}': {reason}") from error
    wanted = [name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    return [folder / name for name in wanted]


def _shorten_path(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _entries(
    document: ConfigDocument, shapes: Shapes, shared: dict[str, Any]
) -> Iterator[FoundSection]:
    """Yield the projects of one file: those of its list, else the one at its top level.

    `shared` are the machine's values that a project may override.
    """
    machine = _select_of_machine(document, shapes)
    top = {key: value for key, value in document.data.items() if key not in machine}
    if "projects" not in top:
        if top:
            yield FoundSection(document, (), top, _merge(shared, top))
        return
    top = _merge(shared, top)
    listed = top.pop("projects")
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise UsageError(
            f"wrong value for 'projects' in {document.place(('projects',))}: "
            "expected a list of projects"
        )
    for index, own in enumerate(listed):
        yield FoundSection(document, ("projects", index), own, _merge(top, own))


def _timeout(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the default for each project that CLAUDE_TIMEOUT (in seconds) gives."""
    told = env.get("CLAUDE_TIMEOUT")
    if not told:
        return {}
    try:
        return {"agent": {"timeout": duration.parse(told)}}
    except ValueError as error:
        raise UsageError(f"wrong value for CLAUDE_TIMEOUT in the environment: {error}") from error


def _merge(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return `defaults` with everything of `own` put over it, key by key in sections, too."""
    both = dict(defaults)
    for key, value in own.items():
        under = defaults.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            both[key] = _merge(under, value)
        elif not (value is None and isinstance(under, dict)):
            both[key] = value
    return both


def _select_of_machine(document: ConfigDocument, shapes: Shapes) -> dict[str, Any]:
    """Return a file's settings of the machine, without shared ones if it holds one project."""
    of_machine = shapes.machine_keys
    is_project = "projects" not in document.data and not document.data.keys() <= {*of_machine}
    keys = [key for key in of_machine if not (is_project and key in shapes.shared)]
    return {key: document.data[key] for key in keys if key in document.data}


def _machine(documents: Sequence[ConfigDocument], shapes: Shapes) -> MachineSettings:
    """Collect the machine's settings from all files. Each profile may be in a different file."""
    found: dict[str, tuple[Any, ConfigDocument]] = {}
    profiles: dict[str, tuple[Any, ConfigDocument]] = {}
    for document in documents:
        said = _select_of_machine(document, shapes)
        machine = check_machine(FoundSection(document, (), said, said), shapes.machine)
        for key in said:
            if key != "profiles":
                _add_once(found, (key,), getattr(machine, key), document)
        for name, fields in machine.profiles.items():
            _add_once(profiles, ("profiles", name), fields, document)
    values = {key: value for key, (value, _) in found.items()}
    return shapes.machine(
        **values, profiles={name: fields for name, (fields, _) in profiles.items()}
    )


def _add_once(
    found: dict[str, tuple[Any, ConfigDocument]],
    path: KeyPath,
    value: object,
    document: ConfigDocument,
) -> None:
    """Add a key of the machine to `found`. Refuse it if another file gives it another value."""
    before, other = found.setdefault(str(path[-1]), (value, document))
    if before != value:
        raise UsageError(
            f"'{'.'.join(map(str, path))}' differs in {other.place(path)} and in "
            f"{document.place(path)}: it holds for the whole machine, so remove one"
        )


def _from_env(machine: MachineSettings, env: Mapping[str, str], cwd: Path) -> MachineSettings:
    root = env.get("SM_STATE_ROOT")
    socket = env.get("SM_TMUX_SOCKET") or machine.tmux_socket
    database = env.get("SM_BRIDGE_DATABASE") or str(machine.bridge_database)
    return structs.replace(
        machine,
        state_root=make_absolute(cwd, root) if root else machine.state_root,
        tmux_socket=check_name(socket, "tmux socket") if socket else None,
        bridge_database=make_absolute(cwd, database),
    )
