"""A person's own settings file: read as JSON, replaced as a whole, with a backup."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from msgspec import Struct

from sm.base.errors import SmError, UsageError
from sm.store.bounded import check_json
from sm.store.files import create_exclusive, follow_links, write_atomic

BACKUP = ".sm-backup"
SIZE_LIMIT = 16 * 1024 * 1024


class SettingsFile(Struct, frozen=True):
    """The content of the file at `path`; `raw` is None if there is no file yet.

    A link is followed, because some people link their settings: `path` is the target.
    """

    path: Path
    raw: bytes | None
    settings: dict[str, Any]

    @property
    def backup(self) -> Path:
        """The path of the copy of the file from before our first change."""
        return self.path.with_name(self.path.name + BACKUP)


def read(path: Path) -> SettingsFile:
    """Read the settings at `path`.

    Raises:
        UsageError: the settings are no JSON object, or there is no such folder.
        SmError: the file is not the caller's own, or cannot be read.

    """
    try:
        target = follow_links(path)
        if not os.path.lexists(target):
            return SettingsFile(target, None, {})
        _check(target)
        raw = target.read_bytes()
    except OSError as error:
        raise SmError(f"cannot read '{path}': {os.strerror(error.errno or 0)}") from error
    return SettingsFile(target, raw, parse(raw, path))


def _check(path: Path) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > SIZE_LIMIT:
        raise UsageError(f"'{path}' is not a settings file: see what is there, or name another one")
    if found.st_uid != os.geteuid():
        raise SmError(f"'{path}' is not owned by you: run this as its owner")
    if found.st_nlink > 1:
        raise SmError(f"'{path}' has {found.st_nlink} hard links: make it one file first")


def parse(raw: bytes, path: Path) -> dict[str, Any]:
    """Return the object in `raw`; an empty file is an empty object.

    Raises:
        UsageError: it is no object.

    """
    if not raw.strip():
        return {}
    try:
        found = json.loads(check_json(raw).decode("utf-8-sig"), object_pairs_hook=_refuse_doubles)
    except ValueError as error:
        reason = str(error).partition("\n")[0].lower()
        raise UsageError(f"cannot read '{path}' as JSON ({reason}): mend it first") from error
    if not isinstance(found, dict):
        raise UsageError(f"'{path}' does not hold a JSON object: mend it first")
    return found


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def write(file: SettingsFile, settings: dict[str, Any]) -> None:
    """Replace the file's content by `settings`; copy the file before its first change.

    Raises:
        SmError: it cannot be written, or another program has changed it; then it stays
            as it is.

    """
    if file.raw is not None and not file.backup.exists():
        create_exclusive(file.backup, file.raw)
    restore(file, _text(file.raw or b"", settings))


def restore(file: SettingsFile, content: bytes) -> None:
    """Replace the file's content by `content`, and keep its mode; see `write`."""
    mode = stat.S_IMODE(file.path.stat().st_mode) if file.raw is not None else 0o600
    folder = file.path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SmError(f"cannot make '{folder}': {os.strerror(error.errno or 0)}") from error
    write_atomic(file.path, content, durable=True, at_last=lambda: _check_unchanged(file))
    file.path.chmod(mode)


def remove(file: SettingsFile) -> None:
    """Remove the file.

    Raises:
        SmError: it cannot be removed, or another program has changed it.

    """
    try:
        _check_unchanged(file)
        file.path.unlink()
    except OSError as error:
        raise SmError(f"cannot remove '{file.path}': {os.strerror(error.errno or 0)}") from error


def _check_unchanged(file: SettingsFile) -> None:
    if (file.path.read_bytes() if file.path.exists() else None) != file.raw:
        raise SmError(f"'{file.path}' was changed meanwhile: try again")


def _text(before: bytes, settings: dict[str, Any]) -> bytes:
    """Return the settings as JSON, with the old indentation."""
    found = re.search(rb'\n([ \t]+)"', before)
    indent = found[1].decode() if found else "  "
    try:
        return (json.dumps(settings, ensure_ascii=False, indent=indent) + "\n").encode()
    except UnicodeEncodeError:  # only an escape can write half of a surrogate pair
        return (json.dumps(settings, indent=indent) + "\n").encode()
