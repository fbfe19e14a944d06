"""Shows the configuration in effect: every key with its value, in the form of a file."""

from __future__ import annotations

from typing import Any

import msgspec

from sm.config import duration
from sm.config.schema import Config, ProjectSettings
from sm.config.shapes import list_defaults


def list_effective(config: Config) -> dict[str, Any]:
    """Return every key of the machine and of each project as plain data.

    Durations are as people write them. Written as YAML or TOML, the data is the same configuration
    again.
    """
    data = _list_keys(config)
    del data["source"], data["projects"]
    return {**data, "projects": [_list_keys(project) for project in config.projects]}


def _list_keys(holder: Config | ProjectSettings) -> dict[str, Any]:
    """Return its keys as plain data, also the sections of plugins that it does not mention."""
    data: dict[str, Any] = msgspec.to_builtins(holder, enc_hook=_plain)
    added: dict[str, Any] = msgspec.to_builtins(list_defaults(holder), enc_hook=_plain)
    return {**data, **added}


def _plain(value: object) -> str:
    return duration.show(value) if isinstance(value, duration.Seconds) else str(value)


def format_yaml(data: object) -> str:
    """Write `data` as YAML, with its keys in order."""
    import yaml

    text = yaml.safe_dump(_lists(data), sort_keys=False, allow_unicode=True, width=1000)
    assert isinstance(text, str)
    return text


def _lists(data: object) -> object:
    """Return `data` with lists instead of tuples, which plain YAML does not know."""
    if isinstance(data, dict):
        return {key: _lists(value) for key, value in data.items()}
    return [_lists(item) for item in data] if isinstance(data, list | tuple) else data
