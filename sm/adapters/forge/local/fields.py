"""Values of a document's front matter, with errors that name file and line."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from sm.adapters.forge.local.document import ForgeFile
from sm.adapters.forge.local.parse import DocumentError
from sm.base.foreign import LABELS, NAME_LIMIT, check_length, read_time, shorten, tidy
from sm.base.nearest import find_nearest

S = TypeVar("S", bound=StrEnum)

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Fields(Struct, frozen=True):
    """Reader of the front matter of the file `name`; keys that only a person uses are let be."""

    name: str
    document: ForgeFile

    def error(self, key: str, reason: str) -> DocumentError:
        """Make an error on the line of `key`."""
        return DocumentError(self.name, self.document.lines.get(key, 2), reason)

    def check_keys(self, known: tuple[str, ...]) -> None:
        """Refuse a key that is nearly, but not quite, one of `known`."""
        for key in self.document.front:
            if key not in known and (near := find_nearest(str(key), known)):
                raise self.error(
                    str(key), f"unknown key '{shorten(str(key))}': did you mean '{near}'?"
                )

    def text(self, key: str, default: str | None = None, limit: int = NAME_LIMIT) -> str:
        """Return the text under `key`, on one line, of up to `limit` characters."""
        value = self.document.front.get(key)
        if value is not None and not isinstance(value, str | int):
            raise self.error(key, f"'{key}' has to be a text: put it in quotes")
        text = tidy(str(value if value is not None else ""))
        if not text and default is None:
            raise self.error(key, f"'{key}' is missing: add a line '{key}: …'")
        return self._within(key, text or default or "", limit)

    def _within(self, key: str, text: str, limit: int) -> str:
        try:
            return check_length(f"'{key}'", text, limit)
        except ValueError as error:
            raise self.error(key, str(error)) from error

    def choice(self, key: str, among: type[S]) -> S:
        """Return the member of `among` that stands under `key`."""
        text = self.text(key).lower()
        try:
            return among(text)
        except ValueError:
            options = " or ".join(str(member) for member in among)
            raise self.error(key, f"{key} is '{shorten(text)}': write {options}") from None

    def time(self, key: str) -> float:
        """Return the moment under `key`, seconds since the epoch; without one, the file's own."""
        text = self.text(key, "")
        try:
            return read_time(text) if text else self.document.at
        except ValueError:
            advice = "write it as 2026-01-31T12:00:00Z, or leave it out"
            raise self.error(
                key, f"{key} is '{shorten(text)}', which is no time: {advice}"
            ) from None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list under `key`, each text once; `a, b` without brackets will do as well."""
        value = self.document.front.get(key) or []
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.error(key, f"'{key}' has to be a list: write {key}: [one, two]")
        texts = dict.fromkeys(text for item in items if (text := tidy(item)))
        if len(texts) > LABELS:
            raise self.error(key, f"'{key}' are {len(texts):,}, {LABELS} at most: take some off")
        return tuple(self._within(key, text, NAME_LIMIT) for text in texts)

    def commit(self, key: str) -> str:
        """Return the full name of a commit under `key`, '' if there is none."""
        text = self.text(key, "")
        if text and not COMMIT.fullmatch(text):
            raise self.error(
                key, f"{key} is '{shorten(text)}', which is no commit: take the line out"
            )
        return text

    def check_number(self, number: int) -> None:
        """Refuse a file whose number is another one than its name tells."""
        if (said := self.text("number", str(number))) != str(number):
            raise self.error(
                "number", f"number is '{shorten(said)}', the file's name says {number}"
            )
