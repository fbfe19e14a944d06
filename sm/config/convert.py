"""Makes the schema's structs from a file's keys, and explains an unknown key or a wrong type."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from sm.base import decoder
from sm.base.errors import UsageError
from sm.base.nearest import GUESS, advise, find_nearest
from sm.base.redact import hide_address
from sm.config import duration
from sm.config.cache import KeyPath
from sm.config.forges import ForgeSettings
from sm.config.read import ConfigDocument
from sm.config.schema import MachineSettings, ProjectSettings
from sm.config.section import (
    Secret,
    Section,
    Written,
    explain_kinds,
    find_kind_key,
    find_named,
    find_variant,
    list_variants,
    name_kind,
    parse_secret,
    read_first_line,
)
from sm.config.shapes import is_forge, with_every_forge
from sm.store.files import follow_links
from sm.store.paths import check_name

S = TypeVar("S", bound=Section)

KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a section of keys",
    "null": "nothing",
}
SHAPES = (
    MachineSettings,
    ProjectSettings,
    *(shape for field in structs.fields(ProjectSettings) for shape in list_variants(field.type)),
)
"""The structs that a configuration file consists of."""

PLACE = re.compile(r" - at (?:`key` in )?`\$")
"""Start of the key's path in a message of msgspec; the path ends with a backtick."""
MISSING = re.compile(r"Object missing required field `(.*)`")
PATH_PART = re.compile(r"\.(\w+)|\[(\d+)\]")


class FoundSection(Struct, frozen=True):
    """One section of a file, which becomes one struct.

    `at` is its place in the file, `own` what the section itself says, `data` the same merged over
    the file's defaults.
    """

    document: ConfigDocument
    at: KeyPath
    own: dict[str, Any]
    data: dict[str, Any]

    def key(self, path: KeyPath) -> str:
        """Name a key as the file does, and say where it stands."""
        name = f"'{hide_address(_dotted(path))}'"
        if not self.at:
            return f"{name} in {self.document.place(path)}"
        if _has(self.data, path) and not _has(self.own, path):  # one of the file's defaults
            return f"{name} in {self.document.place(path)}"
        owner = self.own.get("name") or f"project {int(self.at[-1]) + 1}"
        return f"{name} of '{owner}' in {self.document.place((*self.at, *path))}"

    def place(self) -> str:
        """Say where the entry's name stands."""
        return self.document.place((*self.at, "name"))


def _has(data: object, path: KeyPath) -> bool:
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


def convert(entry: FoundSection, shape: type[S]) -> S:
    """Return the struct of an entry. Relative paths start at the folder of its file.

    Raises:
        UsageError: a key is unknown, missing, or of a wrong type.

    """
    return _convert(entry, _check_keys(entry, entry.data, shape, ()), shape)


def _convert(entry: FoundSection, data: dict[str, Any], shape: type[S], at: KeyPath = ()) -> S:
    """Return the struct of the section that stands `at` that place in the entry."""
    try:
        return decoder.convert(data, shape, hook=_decoder(entry.document.path.parent))
    except msgspec.ValidationError as error:
        raise UsageError(_explain(entry, shape, str(error), at)) from error


def _decoder(base: Path) -> Callable[[type, Any], Any]:
    def decode(kind: type, value: Any) -> Any:
        if kind is duration.Seconds:
            return duration.parse(value)
        if kind is Secret:
            return parse_secret(value)
        if issubclass(kind, Written):
            return kind.read(value)
        assert kind is Path
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ValueError(f"Expected a path, got {_describe(value)}")
        return make_absolute(base, value)

    return decode


def make_absolute(base: Path, text: str) -> Path:
    """Return the path that `text` means in the folder `base`; `~` is expanded."""
    path = base / os.path.expanduser(text)  # noqa: PTH111 - Path's own raises for an unknown user
    # Only '..' needs the links followed; without it a path stays as it was written.
    return follow_links(path) if ".." in path.parts else Path(os.path.abspath(path))  # noqa: PTH100


def _check_keys(
    entry: FoundSection, data: dict[str, Any], shape: type[Section], at: KeyPath
) -> dict[str, Any]:
    """Return `data` without empty sections, once all of its keys are known."""
    shapes, named = list_types(shape), _named(shape)
    found: dict[str, Any] = {}
    for key, value in data.items():
        if key == find_kind_key(shape):
            found[key] = value
            continue
        if key not in shapes:
            raise UsageError(
                f"unknown key {entry.key((*at, str(key)))}: {_nearest(entry, key, shape)}"
            )
        if key in named and isinstance(value, dict):
            found[key] = _check_named(entry, value, named[key], (*at, key))
        elif not (kinds := list_variants(shapes[key])):
            found[key] = value
        elif isinstance(value, dict):
            path = (*at, key)
            found[key] = _check_keys(entry, value, _kind(entry, value, kinds, path), path)
        elif value is not None:
            found[key] = value
    return found


def _check_named(
    entry: FoundSection, data: dict[str, Any], shape: type[Section], at: KeyPath
) -> dict[str, Any]:
    """Return `data`, sections by names that a person has chosen, once each can be used."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        path = (*at, str(name))
        check_name(str(name), f"{_dotted(at)}:")
        if not isinstance(value, dict):  # which may be a secret that is in the wrong place
            raise UsageError(f"wrong value for {entry.key(path)}: expected a section of keys")
        found[str(name)] = _check_keys(entry, value, shape, path)
        _convert(entry, found[str(name)], shape, path)  # what is wrong is told with its name
    return found


@functools.cache
def list_types(shape: type[Section]) -> dict[str, Any]:
    """Return each key's type in a section; finding them takes longer than reading the section."""
    return {field.encode_name: field.type for field in structs.fields(shape)}


@functools.cache
def _named(shape: type[Section]) -> dict[str, type[Section]]:
    """Return the keys of a section that hold sections by names, each with the type of these."""
    found = {key: find_named(kind) for key, kind in list_types(shape).items()}
    return {key: named for key, named in found.items() if named}


def _kind(
    entry: FoundSection, data: dict[str, Any], kinds: tuple[type[Section], ...], at: KeyPath
) -> type[Section]:
    """Choose the one of these sections that is meant."""
    if not (key := find_kind_key(kinds[0])):
        return kinds[0]
    named = {name_kind(one): one for one in kinds}
    if key not in data:
        raise UsageError(f"missing key {entry.key((*at, key))}: {explain_kinds(kinds)}")
    said = data[key]
    if not isinstance(said, str) or said not in named:
        raise UsageError(
            f"wrong value for {entry.key((*at, key))}: expected {' or '.join(named)}, "
            f"got {_describe(said)}"
        )
    return named[said]


def _nearest(entry: FoundSection, key: object, shape: type[Section]) -> str:
    is_project = issubclass(shape, ProjectSettings)
    is_known = shape in SHAPES or (issubclass(shape, ForgeSettings) and is_forge(shape))
    if not is_project and not is_known:  # one that has keys of its own, as a profile
        names = list(list_types(shape))
        return advise(str(key), names, f"known there: {', '.join(names)}", alike=0.4)
    machine = list(list_types(MachineSettings))
    if key in machine:
        return "it belongs at the top of the file"
    names = [*filter(None, [find_kind_key(shape)]), *list_types(shape)]
    top = ["projects", *machine] if is_project and not entry.at else []
    if near := find_nearest(str(key), names + top, GUESS):
        return f"did you mean '{near}'?"
    elsewhere = [_dotted(path) for path in list_key_paths(with_every_forge()) if path[-1] == key]
    if elsewhere:
        return f"did you mean '{elsewhere[0]}'?"
    return f"known there: {', '.join(names)}"


def list_key_paths(shape: type[Section], at: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield every key that a struct can hold, sections followed, in their order.

    For a section of several kinds these are the keys that any of them has.
    """
    if key := find_kind_key(shape):
        yield (*at, key)
    for field in structs.fields(shape):
        path = (*at, field.encode_name)
        if kinds := list_variants(field.type):
            yield from dict.fromkeys(one for kind in kinds for one in list_key_paths(kind, path))
        else:
            yield path


def _explain(entry: FoundSection, shape: type, message: str, at: KeyPath = ()) -> str:
    what, *places = PLACE.split(message, maxsplit=1)
    path: KeyPath = tuple(
        int(index) if index else name for name, index in PATH_PART.findall("".join(places))
    )
    if missing := MISSING.fullmatch(what):
        path = (*path, missing[1])
        return f"missing key {entry.key((*at, *path))}: {_description(shape, path)}"
    value = _value(entry.data, (*at, *path))
    if what.startswith("Invalid enum value"):
        expected = " or ".join(list_choices(_type_at(shape, path)))
    else:
        wanted = re.sub(r",? got .*", "", what.removeprefix("Expected "), flags=re.DOTALL)
        expected = re.sub(r"`([\w |]+)`", lambda kinds: _name_kinds(kinds[1]), wanted)
    if example := _find_example(_type_at(shape, path)):
        expected = re.sub(r"matching regex .*", f"such as {example}", expected, flags=re.DOTALL)
    is_plain = value is not None and not isinstance(value, str | list | dict)
    hint = ": put it in quotes" if expected == "text" and is_plain else ""
    told = f"expected {expected}, got {_describe(value)}{hint}"
    return f"wrong value for {entry.key((*at, *path))}: {told}"


def _name_kinds(kinds: str) -> str:
    return " or ".join(KINDS.get(kind, kind) for kind in kinds.split(" | "))


def _value(data: object, path: KeyPath) -> object:
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
    return data


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return "a section of keys or one of its values"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{hide_address(value)}'" if isinstance(value, str) else str(value)


def _type_at(shape: type, path: KeyPath) -> Any:
    kind: Any = shape
    for part in path:
        kind = find_variant(kind, str(part))
        if not list_variants(kind):
            break
        kind = next(field.type for field in structs.fields(kind) if field.encode_name == part)
    return kind


def list_choices(kind: Any) -> tuple[str, ...]:
    """Return the values that a key or an item of this type can have; none if any value can be."""
    literal = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    if get_origin(literal) is tuple:
        literal = get_args(literal)[0]
    if isinstance(literal, type) and issubclass(literal, Enum):
        return tuple(str(one.value) for one in literal)
    return get_args(literal) if str(get_origin(literal)) == "typing.Literal" else ()


def _find_example(kind: Any) -> str:
    for part in (kind, *get_args(kind)):
        for meta in getattr(part, "__metadata__", ()):
            if meta.examples:
                return str(meta.examples[0])
    return next(filter(None, map(_find_example, get_args(kind))), "")


def _description(shape: type, path: KeyPath) -> str:
    kind = _type_at(shape, path)
    for meta in getattr(kind, "__metadata__", ()):
        return str(meta.description)
    section = next(iter(list_variants(kind)), None)
    return read_first_line(section).rstrip(".").lower() if section else ""


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
