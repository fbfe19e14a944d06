"""Reads YAML and JSON of others, or damaged files: measures a text before it parses it.

A parser calls itself for each nested bracket. A deep nesting ends Python's parser with an error,
and the C library of YAML with the whole process. So this module counts the depth first, without
calling itself, and parses only what is flat enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yaml import AliasEvent, CSafeLoader, SafeLoader

DEPTH = 64
"""Levels of brackets or indentation, in either language."""
TOO_DEEP = f"it is nested too deeply: {DEPTH} levels at most"
NODES = 100_000
"""Values in a YAML text; an alias counts as all the values that it stands for."""
PLAIN = 10_000
"""Characters of a YAML value without quotes. YAML may read it as a number, digit by digit."""

STRING = re.compile(rb'"(?:[^"\\]++|\\.)*"?', re.DOTALL)
BRACKETS = b"[{]}"
NO_BRACKETS = bytes(set(range(256)) - set(BRACKETS))
STEPS = {byte: 1 if byte in b"[{" else -1 for byte in BRACKETS}


class UnboundedError(ValueError):
    """A text is nested too deeply, or has too many values."""


def parse_yaml_texts(text: str, limit: int) -> object:
    """Return the mapping, list or text in `text`. Numbers, dates and so on stay texts.

    Raises:
        UnboundedError: the text has over `limit` characters, too many levels, or an alias.
        yaml.YAMLError: it is no YAML.

    """
    import yaml

    if len(text) > limit:
        raise UnboundedError(f"it has {len(text):,} characters, {limit:,} at most")
    _check_yaml(text, aliases=False)
    return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506


def make_yaml_parser(text: str) -> SafeLoader | CSafeLoader:
    """Return a parser for `text`, which may read numbers, dates and aliases.

    Raises:
        UnboundedError: the text has too many levels or values.
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
            if event.style is None and len(event.value) > PLAIN:
                raise UnboundedError(f"a value without quotes has over {PLAIN:,} characters")
            sizes[event.anchor or ""] = 1
            count += 1
        elif isinstance(event, yaml.AliasEvent):
            count += _size(event, sizes, above, aliases=aliases)
        if len(above) > DEPTH:
            raise UnboundedError(TOO_DEEP)
        if count > NODES:
            raise UnboundedError(f"it has too many values: {NODES:,} at most")


def _size(
    event: AliasEvent, sizes: dict[str, int], above: list[tuple[str | None, int]], *, aliases: bool
) -> int:
    """Count the values of an alias; one for an invalid alias, which YAML will report."""
    name = event.anchor
    if not aliases:
        raise UnboundedError(f"it has an alias, '*{name}': write out what it stands for")
    if any(anchor == name for anchor, _ in above):
        raise UnboundedError(f"'*{name}' stands for something that it is a part of")
    return sizes.get(name or "", 1)


def parse_toml(text: str) -> dict[str, object]:
    """Return the keys and values of `text`.

    Raises:
        UnboundedError: it has too many levels.
        tomllib.TOMLDecodeError: it is no TOML.

    """
    import tomllib

    try:
        found = tomllib.loads(
            text
        )  # a parser in Python: Python ends it before the nesting is too deep
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
    """Check that `data` is not nested too deeply, and return it.

    Raises:
        UnboundedError: it is nested too deeply.

    """
    if data.count(b"[") + data.count(b"{") > DEPTH:
        brackets = STRING.sub(b"", data).translate(None, NO_BRACKETS)
        if max(accumulate(map(STEPS.__getitem__, brackets)), default=0) > DEPTH:
            raise UnboundedError(TOO_DEEP)
    return data


def parse_json(data: bytes) -> object:
    """Return the value of `data`.

    Raises:
        ValueError: `data` is no JSON, or not bounded (UnboundedError).

    """
    import json

    return json.loads(check_json(data))
