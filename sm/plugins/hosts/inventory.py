"""Inventory of hosts: a file `hosts.yaml` of their own in the folder of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from sm.base.decoder import convert
from sm.base.errors import UsageError
from sm.config.load import list_files
from sm.config.read import read_document
from sm.plugins.hosts.settings import SshHost
from sm.store.files import discard, write_atomic

FILE = "hosts.yaml"
HEAD = (
    "# Other machines on which sessions run: docs/HOSTS.md. Written by sm host; you may edit it.\n"
)


def make_host(values: dict[str, Any]) -> SshHost:
    """Return the host that these values describe.

    Raises:
        UsageError: one of them cannot be used.

    """
    try:
        return convert(values, SshHost)
    except msgspec.ValidationError as error:
        raise UsageError(f"no such host: {error}") from error


def find_file(source: Path) -> Path | None:
    """Return the file in which hosts are written; None if a person has to do it.

    That is so if the configuration is a single file, or another file of it has hosts.
    """
    if not source.is_dir():
        return None
    own = source / FILE
    others = (path for path in list_files(source) if path != own)
    if any("hosts" in read_document(path, path.name).data for path in others):
        return None
    return own


def add(path: Path, name: str, host: SshHost) -> None:
    """Put a host into the file, in the place of an earlier one of that name."""
    data = _read(path)
    values = {key: value for key, value in msgspec.to_builtins(host).items() if value}
    data.setdefault("ssh", {})[name] = {key: _plain(value) for key, value in values.items()}
    write_atomic(path, HEAD + format_hosts(data), durable=True)


def remove(path: Path, name: str) -> bool:
    """Take a host out of the file; say whether it was there. Without hosts the file goes."""
    data = _read(path)
    if name not in data.get("ssh", {}):
        return False
    del data["ssh"][name]
    if data["ssh"] or set(data) - {"ssh"}:
        write_atomic(path, HEAD + format_hosts(data), durable=True)
    else:
        discard(path)
    return True


def format_hosts(data: dict[str, Any]) -> str:
    """Return the section as YAML."""
    import yaml

    return yaml.safe_dump({"hosts": data}, sort_keys=False, allow_unicode=True)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found = read_document(path, path.name).data.get("hosts")
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
