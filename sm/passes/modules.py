"""Modules that the server of passes has loaded: for all forks at once, and as they are on disk."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module

import msgspec

from sm.base import plugin, redact
from sm.base.decoder import convert
from sm.base.plugin import Kind, Part
from sm.config.schema import MachineSettings, ProjectSettings

PRELOADED = (
    "sm.adapters.agent.profiles",
    "sm.adapters.forge.git_access",
    "sm.adapters.forge.kinds",
    "sm.adapters.forge.local.entry",
    "sm.adapters.forge.local.runner",
    "sm.cli.ci_run",
    "sm.cli.root",
    "sm.config.load",
    "sm.issues.act.reactor",
    "sm.context.run",
    "sm.personal.reactor",
    "sm.sessions.machine",
    "sm.store.sqlite_file",
    "yaml",
)
"""Modules to load, with what they import; a pass imports some only where it comes to use them."""

ASKED: tuple[Kind, ...] = ("followers", "meters")
"""Parts of plugins that each pass asks."""

Stamp = tuple[int, int, int]
"""Stamp of a file: which one it is, how long it is, and when it was written."""


def preload() -> None:
    """Import what passes import, and make what each fork would make again at its first use."""
    for module in PRELOADED:
        import_module(module)
    for kind in ASKED:
        for part in plugin.list_parts(kind).values():
            with contextlib.suppress(Exception):  # whatever is wrong with a plugin, passes go on
                _load_for(part)
    redact.compile_patterns()
    for settings in (MachineSettings, ProjectSettings):
        with contextlib.suppress(msgspec.ValidationError):  # msgspec has seen the types by then
            convert({}, settings)
    freeze()


def _load_for(part: Part) -> None:
    """Import a part, and what its module wants loaded for all passes as well."""
    module = plugin.load(part.entry.partition(":")[0])
    for name in getattr(module, "PRELOADED", ()):
        import_module(name)


def freeze() -> None:
    """Keep the collector from touching, and thus copying, what all forks share."""
    gc.collect()
    gc.freeze()


def stamp_loaded(read: Iterable[str] = ()) -> dict[str, Stamp | None]:
    """Stamp the files of sm, of plugins and those `read`, as they are: an update replaces them."""
    packages = plugin.list_packages()
    files = {
        module.__file__
        for name, module in sys.modules.items()
        if name.partition(".")[0] in packages and getattr(module, "__file__", None)
    }
    return {file: stamp(file) for file in (*files, *read) if file}


def stamp(file: str) -> Stamp | None:
    """Return the stamp of the file as it is now; None if it is not there."""
    try:
        found = os.stat(file)  # noqa: PTH116 - before each pass, for hundreds of files
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
