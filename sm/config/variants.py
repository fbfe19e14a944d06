"""Sections of several kinds; the key `kind` tells which one is meant."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args, get_origin

from sm.config.section import Section


def list_variants(shape: object) -> tuple[type[Section], ...]:
    """Return the sections that a key's type allows: one, several kinds of one, or none."""
    members = get_args(shape) if isinstance(shape, UnionType) else (shape,)
    sections = tuple(m for m in members if isinstance(m, type) and issubclass(m, Section))
    return sections if len(sections) == len(members) else ()


def find_named(shape: object) -> type[Section] | None:
    """Return the section that a key holds by names that a person chooses; None if there is none."""
    named = get_args(shape)[0] if hasattr(shape, "__metadata__") else shape
    if get_origin(named) is not dict:
        return None
    kinds = list_variants(get_args(named)[1])
    return kinds[0] if kinds else None


def find_kind_key(section: type[Section]) -> str:
    """Return the key that tells a section's kind, '' if there is only one kind of it."""
    return section.__struct_config__.tag_field or ""


def name_kind(section: type[Section]) -> str:
    """Return the value of that key for this kind."""
    return str(section.__struct_config__.tag)


def read_first_line(section: type[Section]) -> str:
    """Return the purpose of a section; if it has kinds, the words that hold for all of them."""
    common = section.__base__ if find_kind_key(section) else section
    return str(getattr(common, "__doc__", "") or "").strip().splitlines()[0]


def explain_kinds(sections: tuple[type[Section], ...]) -> str:
    """Return each kind with its purpose, in one line."""
    return "; ".join(f"{name_kind(one)}: {_explain(one)}" for one in sections)


def read_first_line_of_kind(section: type[Section]) -> str:
    """Return the purpose of a section of one kind."""
    return str(section.__doc__).strip().splitlines()[0]


def _explain(section: type[Section]) -> str:
    words = read_first_line_of_kind(section).rstrip(".")
    return words[:1].lower() + words[1:]


def find_variant(shape: object, key: str) -> Any:
    """Return the section of that type that has the key; the type itself if none has."""
    found = (one for one in list_variants(shape) if key in {*one.__struct_encode_fields__})
    return next(found, shape)
