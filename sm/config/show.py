"""The configuration as it is in effect: every key with its value, as it could stand in a file."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from sm.config import duration
from sm.config.schema import Config, Machine


def effective(config: Config) -> dict[str, Any]:
    """Every key of the machine and of each project as plain data; durations as people write them.

    Written down as YAML or TOML it is the same configuration again.
    """
    data: dict[str, Any] = msgspec.to_builtins(config, enc_hook=_plain)
    data.pop("source")
    machine = {field.encode_name: data.pop(field.encode_name) for field in structs.fields(Machine)}
    return {**machine, **data}


def _plain(value: object) -> str:
    return duration.show(value) if isinstance(value, duration.Seconds) else str(value)


def as_yaml(data: object) -> str:
    """`data` as YAML, keys in their order."""
    import yaml

    text = yaml.safe_dump(_lists(data), sort_keys=False, allow_unicode=True, width=1000)
    assert isinstance(text, str)
    return text


def _lists(data: object) -> object:
    """`data` with lists for tuples, which plain YAML does not know."""
    if isinstance(data, dict):
        return {key: _lists(value) for key, value in data.items()}
    return [_lists(item) for item in data] if isinstance(data, list | tuple) else data
