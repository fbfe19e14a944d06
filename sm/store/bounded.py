"""YAML and JSON that other people wrote, or that was damaged: measured before it is parsed.

What is built of nested brackets, is built by calls that nest as deep: in Python they end with an
error, in the C library of YAML with the whole process. So the depth is counted on the way, by what
does not nest itself, and only what is flat enough is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yaml import AliasEvent, CSafeLoader, SafeLoader, ScalarEvent

DEPTH = 64
"""Levels of brackets or indentation, in either language."""
TOO_DEEP = f"it is nested too deeply: {DEPTH} levels at most"
NODES = 100_000
"""Values in a text of YAML, an alias counted as all that it stands for."""
PLAIN = 10_000
"""Characters of a YAML value without quotes: it may be read as a number, digit by digit."""

STRING = re.compile(rb'"(?:[^"\\]++|\\.)*"?', re.DOTALL)
BRACKETS = b"[{]}"
NO_BRACKETS = bytes(set(range(256)) - set(BRACKETS))
STEPS = {byte: 1 if byte in b"[{" else -1 for byte in BRACKETS}


class UnboundedError(ValueError):
    """A text is nested too deeply, or stands for more than anything of its kind."""


def parse_yaml_texts(text: str, limit: int) -> object:
    """The mapping, list or text that `text` stands for; numbers, dates and so on stay texts.

    Raises:
        UnboundedError: it has over `limit` characters, too many levels, or an alias.
        yaml.YAMLError: it is no YAML.

    """
    import yaml

    if len(text) > limit:
        raise UnboundedError(f"it has {len(text):,} characters, {limit:,} at most")
    _check_yaml(text, aliases=False)
    return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506


def yaml_parser(text: str) -> SafeLoader | CSafeLoader:
    """A parser for `text`, which may make numbers, dates and aliases of it.

    Raises:
        UnboundedError: it has too many levels or values.
        yaml.YAMLError: it is no YAML.

    """
    import yaml

    _check_yaml(text, aliases=True)
    loader: SafeLoader | CSafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    return loader


def _check_yaml(text: str, *, aliases: bool) -> None:
    import yaml

    sizes: dict[str, int] = {}
    above: list[tuple[str | None, int]] = []
    """The anchor of each collection around the place, and how many values came before it."""
    count = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            above.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = above.pop()
            sizes[anchor or ""] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            _check_scalar(event)
            sizes[event.anchor or ""] = 1
            count += 1
        elif isinstance(event, yaml.AliasEvent):
            count += _size(event, sizes, above, aliases=aliases)
        if len(above) > DEPTH:
            raise UnboundedError(TOO_DEEP)
        if count > NODES:
            raise UnboundedError(f"it has too many values: {NODES:,} at most")


def _check_scalar(event: ScalarEvent) -> None:
    if event.style is None and len(event.value) > PLAIN:
        raise UnboundedError(f"a value without quotes has over {PLAIN:,} characters")


def _size(
    event: AliasEvent, sizes: dict[str, int], above: list[tuple[str | None, int]], *, aliases: bool
) -> int:
    """How many values an alias stands for; one for what it may not mean, which YAML will say."""
    name = event.anchor
    if not aliases:
        raise UnboundedError(f"it has an alias, '*{name}': write out what it stands for")
    if any(anchor == name for anchor, _ in above):
        raise UnboundedError(f"'*{name}' stands for something that it is a part of")
    return sizes.get(name or "", 1)


def parse_toml(text: str) -> dict[str, object]:
    """The keys and values of `text`.

    Raises:
        UnboundedError: it has too many levels.
        tomllib.TOMLDecodeError: it is no TOML.

    """
    import tomllib

    try:
        found = tomllib.loads(text)  # a parser in Python, which Python stops before it is too deep
    except RecursionError as error:
        raise UnboundedError(TOO_DEEP) from error
    level: list[object] = [found]
    for _ in range(DEPTH):
        level = [value for one in level for value in _within(one)]
    if level:
        raise UnboundedError(TOO_DEEP)
    return found


def _within(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def check_json(data: bytes) -> bytes:
    """`data`.

    Raises:
        UnboundedError: it is nested too deeply.

    """
    if data.count(b"[") + data.count(b"{") > DEPTH:
        brackets = STRING.sub(b"", data).translate(None, NO_BRACKETS)
        if max(accumulate(map(STEPS.__getitem__, brackets)), default=0) > DEPTH:
            raise UnboundedError(TOO_DEEP)
    return data


def parse_json(data: bytes) -> object:
    """The value that `data` stands for.

    Raises:
        ValueError: it is no JSON, or not bounded (UnboundedError).

    """
    import json

    return json.loads(check_json(data))
