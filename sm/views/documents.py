"""Handoff documents of a session: those that the journal tells of, as far as they are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import printable
from sm.context import rotation_files
from sm.sessions.session import AnySession
from sm.store import journal
from sm.store.events import Rotation
from sm.store.files import read_foreign, read_harmless
from sm.store.paths import Root, SessionDir

MOST = 20
"""Documents that are shown, the newest ones."""
BYTES = 200_000
"""Bytes of each document."""


class Document(Struct, frozen=True):
    """A document: when it was there, its path, and its text, '' if that is gone."""

    at: float
    path: str
    text: str = ""
    is_cut: bool = False


def list_documents(root: Root, ident: str, session: AnySession | None) -> list[Document]:
    """List the documents of all contexts, the newest first; `session` is None once it is over."""
    written: dict[str, float] = {}
    for event in journal.read(root.journal, ident):
        if isinstance(event, Rotation) and event.document:
            written.pop(event.document, None)
            written[event.document] = event.at
    copies = dict(_find_copy(session.dir)) if session else {}
    newest = list(written.items())[-MOST:]
    return [_show(path, at, copies.get(path)) for path, at in reversed(newest)]


def _find_copy(directory: SessionDir) -> Iterator[tuple[str, bytes]]:
    """Find the document with which the context began: its copy stays if the file goes."""
    path = rotation_files.read_last_document(directory)
    if path:
        try:
            yield str(path), read_harmless(directory.document)
        except SmError:
            return


def _show(path: str, at: float, copy: bytes | None) -> Document:
    data = copy or _read(path)
    text = printable(redact(data[:BYTES].decode("utf-8", "replace")))
    return Document(at, path, text, is_cut=len(data) > BYTES)


def _read(path: str) -> bytes:
    try:
        return read_foreign(Path(path), BYTES + 1)
    except (OSError, ValueError):
        return b""
