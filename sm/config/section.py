"""Sections, the building blocks of the configuration: the kinds of one, and the values in them."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Self, get_args, get_origin

from msgspec import Meta, Struct

from sm.base.redact import MARK

Positive = Annotated[int, Meta(ge=1)]
Percentage = Annotated[int, Meta(ge=1, le=100)]
Count = Annotated[int, Meta(ge=0)]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all sections. They never change, and an unknown key is an error."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of a person's environment that the section needs; monitors keep them."""
        return ()


class KindSection(Section, frozen=True, tag_field="kind"):
    """Section of which there are several kinds, one for each subclass: `kind` is its tag."""

    @property
    def kind(self) -> str:
        """Which kind it is, as in the configuration."""
        return str(self.__struct_config__.tag)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        raise NotImplementedError


class Written(str):
    """A text of a form of its own, for a section to have: each subclass says which by `read`."""

    KIND = "text"
    """Name of the form in docs/CONFIG.md."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Read the text from the value in a file.

        Raises:
            ValueError: it has another form; the message begins with "Expected", and says which.

        """
        raise NotImplementedError


class Secret:
    """A secret text. Printing it prints `[redacted]`; `text` is what it says."""

    __slots__ = ("text",)

    def __init__(self, text: str = "") -> None:
        """Keep the text."""
        self.text = text

    def __repr__(self) -> str:
        return MARK if self.text else ""

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def parse_secret(value: object) -> Secret:
    """Read a secret from a text.

    Raises:
        ValueError: the value is no text; the message does not show it.

    """
    if not isinstance(value, str):
        raise ValueError("Expected text")
    return Secret(value)


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
