"""Sections, the building blocks of the configuration, and the numbers in them."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Meta, Struct

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
