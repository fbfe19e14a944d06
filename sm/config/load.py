"""Finds the configuration and makes one value of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from sm.config.check import check_machine, check_path, check_together, make_project
from sm.config.convert import Entry, absolute
from sm.config.read import SUFFIXES, Document, KeyPath, read_document
from sm.config.schema import SHARED, Config, Machine
from sm.errors import UsageError
from sm.store.paths import check_name


class NoConfigError(UsageError):
    """There is no configuration, and none was named; or there is no project in it."""


MACHINE_KEYS = tuple(field.encode_name for field in structs.fields(Machine))


def load(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Config:
    """The configuration: `explicit`, else SM_CONFIG, else `sm.yaml` in `cwd`, else the user's.

    The user's is the folder `~/.config/sm`, all of its files together; `explicit` and SM_CONFIG
    may name such a folder too. SM_STATE_ROOT and SM_TMUX_SOCKET go before what files say.

    Raises:
        UsageError: there is none, or it cannot be used.

    """
    source = find(explicit, env, cwd)
    check_path(source)
    documents = [read_document(path, _shown(path, cwd)) for path in _files(source, cwd)]
    machine = _from_env(_machine(documents), env, cwd)
    shared: dict[str, Any] = {}
    for document in documents:
        shared |= {key: value for key, value in _said(document).items() if key in SHARED}
    entries = [entry for item in documents for entry in _entries(item, shared)]
    projects = [(entry, make_project(entry)) for entry in entries]
    if not projects:
        raise NoConfigError(f"no project in '{_shown(source, cwd)}': run 'sm init' to add one")
    check_together(projects)
    return Config(
        **structs.asdict(machine),
        source=source,
        projects=tuple(project for _, project in projects),
    )


def load_machine(
    explicit: Path | None, env: Mapping[str, str], cwd: Path
) -> tuple[Machine, Path | None]:
    """The machine's settings alone, and where they are from; the defaults where no file is.

    Raises:
        UsageError: a file was named and is not there, or it cannot be used.

    """
    try:
        source = find(explicit, env, cwd)
    except NoConfigError:
        return default_machine(env, cwd), None
    documents = [read_document(path, _shown(path, cwd)) for path in _files(source, cwd)]
    return _from_env(_machine(documents), env, cwd), source


def default_machine(env: Mapping[str, str], cwd: Path) -> Machine:
    """The settings of a machine without a configuration; relative paths count from `cwd`."""
    return _from_env(Machine(), env, cwd)


def user_folder(env: Mapping[str, str]) -> Path:
    """Where a user's configuration is when no project folder has one."""
    return Path(env.get("HOME") or Path.home()) / ".config" / "sm"


def find(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """The file, or the folder of files, that `load` reads.

    Raises:
        UsageError: there is none.

    """
    if explicit is not None:
        return _named(explicit, "--config", cwd)
    if from_env := env.get("SM_CONFIG"):
        return _named(Path(from_env), "SM_CONFIG", cwd)
    here = [path for suffix in SUFFIXES if (path := cwd / f"sm{suffix}").exists()]
    if len(here) > 1:
        raise UsageError(f"both '{here[0].name}' and '{here[1].name}' are here: remove one")
    if here:
        return _trusted(here[0])
    folder = user_folder(env)
    if in_folder(folder):
        return folder
    raise NoConfigError(
        f"no configuration: no sm.yaml or sm.toml here and none in '{folder}': run 'sm init' "
        "to make one, or name one with --config"
    )


def _named(path: Path, by: str, cwd: Path) -> Path:
    full = absolute(cwd, str(path))
    if not full.exists():
        raise UsageError(f"cannot read '{path}', named by {by}: there is no such file")
    return full


def _trusted(path: Path) -> Path:
    """Refuse a file that merely lies where `sm` was called, but is somebody else's.

    It names commands that would run as this user.
    """
    if path.stat().st_uid not in (os.geteuid(), 0):
        raise UsageError(f"'{path.name}' is not owned by you: name it with --config to use it")
    return path


def _files(source: Path, cwd: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    if source.stem == "sm" and source.suffix in SUFFIXES:
        raise UsageError(f"cannot read '{_shown(source, cwd)}': it is a directory")
    if files := in_folder(source):
        return files
    raise UsageError(f"no *.yaml or *.toml in the directory '{_shown(source, cwd)}'")


def in_folder(folder: Path) -> list[Path]:
    """The configuration files of a folder, by name; none where there is no such folder."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise UsageError(f"cannot read '{folder}': {reason}") from error
    wanted = [name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    return [folder / name for name in wanted]


def _shown(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _entries(document: Document, shared: dict[str, Any]) -> Iterator[Entry]:
    """The projects of one file: those of its list, or else the one that its top level is.

    `shared` is what the machine says that each project may say otherwise.
    """
    machine = _said(document)
    top = {key: value for key, value in document.data.items() if key not in machine}
    if "projects" not in top:
        if top:
            yield Entry(document, (), top, _merged(shared, top))
        return
    top |= shared
    listed = top.pop("projects")
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise UsageError(
            f"wrong value for 'projects' in {document.place(('projects',))}: "
            "expected a list of projects"
        )
    for index, own in enumerate(listed):
        yield Entry(document, ("projects", index), own, _merged(top, own))


def _merged(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`defaults` with everything that `own` says put over it, key by key in sections too."""
    both = dict(defaults)
    for key, value in own.items():
        under = defaults.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            both[key] = _merged(under, value)
        elif not (value is None and isinstance(under, dict)):
            both[key] = value
    return both


def _said(document: Document) -> dict[str, Any]:
    """What a file says of the machine: in that of one project, nothing of what is shared."""
    is_project = "projects" not in document.data and not document.data.keys() <= {*MACHINE_KEYS}
    keys = [key for key in MACHINE_KEYS if not (is_project and key in SHARED)]
    return {key: document.data[key] for key in keys if key in document.data}


def _machine(documents: list[Document]) -> Machine:
    """The machine's settings, which any of the files may hold; each profile may be in another."""
    found: dict[str, tuple[Any, Document]] = {}
    profiles: dict[str, tuple[Any, Document]] = {}
    for document in documents:
        said = _said(document)
        machine = check_machine(Entry(document, (), said, said))
        for key in said:
            if key != "profiles":
                _only(found, (key,), getattr(machine, key), document)
        for name, fields in machine.profiles.items():
            _only(profiles, ("profiles", name), fields, document)
    values = {key: value for key, (value, _) in found.items()}
    return Machine(**values, profiles={name: fields for name, (fields, _) in profiles.items()})


def _only(
    found: dict[str, tuple[Any, Document]], path: KeyPath, value: object, document: Document
) -> None:
    """Add a key of the machine to `found`, unless another file says something else."""
    before, other = found.setdefault(str(path[-1]), (value, document))
    if before != value:
        raise UsageError(
            f"'{'.'.join(map(str, path))}' differs in {other.place(path)} and in "
            f"{document.place(path)}: it holds for the whole machine, so remove one"
        )


def _from_env(machine: Machine, env: Mapping[str, str], cwd: Path) -> Machine:
    root = env.get("SM_STATE_ROOT")
    socket = env.get("SM_TMUX_SOCKET") or machine.tmux_socket
    database = env.get("SM_BRIDGE_DATABASE") or str(machine.bridge_database)
    return structs.replace(
        machine,
        state_root=absolute(cwd, root) if root else machine.state_root,
        tmux_socket=check_name(socket, "tmux socket") if socket else None,
        bridge_database=absolute(cwd, database),
    )
