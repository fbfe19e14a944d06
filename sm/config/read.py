"""Reads one configuration file, YAML or TOML, as data that knows where each key stands."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct, field

from sm.base.errors import UsageError
from sm.config import cache
from sm.config.cache import SETTLED_S, KeyPath
from sm.store.bounded import UnboundedError, make_yaml_parser, parse_toml

if TYPE_CHECKING:
    from yaml.nodes import Node

SUFFIXES = (".yaml", ".yml", ".toml")
SIZE_LIMIT = 1024 * 1024
"""Bytes. No configuration is as large, so a larger file is something else."""


class ConfigDocument(Struct, frozen=True):
    """A file's keys and values; `shown` is the file's name in messages.

    `lines` has the line of every key, counted from 1, if the parser reports it (YAML). `mtime_ns`
    is the file's time, in nanoseconds since the epoch.
    """

    path: Path
    shown: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    mtime_ns: int = 0

    def place(self, key: KeyPath = ()) -> str:
        """Say where a key stands, for a message: `'sm.yaml' (line 3)`."""
        line = self.lines.get(key)
        return f"'{self.shown}'" + (f" (line {line})" if line else "")


def read_document(
    path: Path, shown: str, check: Callable[[bytes], None] | None = None
) -> ConfigDocument:
    """Read one file; `check` may refuse its bytes before anything is made of them.

    Raises:
        UsageError: the file is no readable text, does not parse, or holds no keys.

    """
    content, mtime_ns = _read_content(path, shown, check)
    data = content.data
    if data is None or data == {}:
        raise UsageError(f"'{shown}' is empty: run 'sm init', or see config.example.yaml")
    if not isinstance(data, dict):
        raise UsageError(f"'{shown}' holds no keys: see config.example.yaml for what belongs there")
    return ConfigDocument(path, shown, data, content.lines, mtime_ns)


def _read_content(
    path: Path, shown: str, check: Callable[[bytes], None] | None
) -> tuple[cache.Content, int]:
    """Return the content of the file, and its time."""
    with _open(path, shown) as (file, found):
        if not check and (known := cache.recall(path, found)):
            return known, found.st_mtime_ns
        raw = _read_bytes(file, shown)
    if check:
        check(raw)
    text = _decode(raw, shown)
    parse = _parse_toml if path.suffix == ".toml" else _parse_yaml
    content = parse(text, shown)
    cache.keep(path, found, content)
    return content, found.st_mtime_ns


def read_raw(path: Path, shown: str) -> bytes:
    """Return what is in a file that may be a configuration.

    Raises:
        UsageError: it cannot be read, or is no plain file, or too large.

    """
    with _open(path, shown) as (file, _):
        return _read_bytes(file, shown)


@contextlib.contextmanager
def _open(path: Path, shown: str) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    try:
        # Without blocking, because opening a FIFO would wait.
        with open(path, "rb", opener=lambda *way: os.open(way[0], way[1] | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UsageError(f"cannot read '{shown}': it is not a regular file")
            yield file, found
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"cannot read '{shown}': {reason.lower()}") from error


def _read_bytes(file: BinaryIO, shown: str) -> bytes:
    content = file.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise UsageError(f"cannot read '{shown}': it is too large for a configuration")
    return content


def _decode(content: bytes, shown: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"cannot read '{shown}', line {line}: it is not UTF-8 text: save it as UTF-8"
        ) from error


def _parse_toml(text: str, shown: str) -> cache.Content:
    import tomllib

    try:
        return cache.Content(parse_toml(text), {})
    except (tomllib.TOMLDecodeError, UnboundedError) as error:
        reason = str(error)
        raise UsageError(f"cannot parse '{shown}': {reason[:1].lower()}{reason[1:]}") from error


def _parse_yaml(text: str, shown: str) -> cache.Content:
    import yaml

    try:
        parser = make_yaml_parser(text)
        node = parser.get_single_node()
        if node is None:
            return cache.Content(None, {})
        lines = dict(_lines(node, (), set(), shown))
        return cache.Content(parser.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"cannot parse '{shown}'{at}: {reason}") from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        # A character that YAML forbids, or a value such as the 31st of February.
        reason = str(error).splitlines()[0]
        raise UsageError(f"cannot parse '{shown}': {reason}") from error


def _lines(node: Node, path: KeyPath, seen: set[int], shown: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the line of every key under `node`; a repeated key is an error (YAML 1.2, 3.2.1.3).

    `seen` holds the nodes that an alias could lead to again, or without end.
    """
    from yaml.nodes import MappingNode, SequenceNode

    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _lines(item, (*path, index), seen, shown)
    elif isinstance(node, MappingNode):
        own: set[tuple[str, str]] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if (identity := (key.tag, str(key.value))) in own:
                raise UsageError(f"key '{key.value}' is written twice in '{shown}' (line {line})")
            own.add(identity)
            yield (*path, str(key.value)), line
            yield from _lines(value, (*path, str(key.value)), seen, shown)


USABLE_FORMAT = 1
"""Format of the entries for usable contents; those with another number are worthless."""
USABLE = ".usable"
"""Suffix of these entries: the last usable content of each file, with which agents are stopped at
their limits while a person mends a file that cannot be used."""


class Usable(Struct, frozen=True):
    """The content of the file at `path`; `lines` as pairs, as JSON has no such keys."""

    format: int
    path: str
    data: Any
    lines: list[tuple[KeyPath, int]]


def note_usable(document: ConfigDocument) -> None:
    """Note what a file holds that was just used; a failure has no effect.

    Its entry has the time of the file, so one look tells whether it is noted already. Of a file
    that was written a moment ago nothing is noted: a second change could bear the same time.
    """
    if time.time() - document.mtime_ns / 1e9 < SETTLED_S:
        return
    with contextlib.suppress(OSError, RuntimeError):
        if cache.locate(document.path, USABLE).stat().st_mtime_ns == document.mtime_ns:
            return
    entry = Usable(USABLE_FORMAT, str(document.path), document.data, list(document.lines.items()))
    cache.put_entry(document.path, entry, USABLE, mtime_ns=document.mtime_ns)


def recall_usable(path: Path, shown: str) -> ConfigDocument | None:
    """Return what the file at `path` held when it could last be used; None if that is unknown.

    `shown` is its name in messages.
    """
    entry = cache.read_entry(path, Usable, USABLE)
    if entry is None or (entry.format, entry.path) != (USABLE_FORMAT, str(path)):
        return None
    return ConfigDocument(path, shown, entry.data, dict(entry.lines))
