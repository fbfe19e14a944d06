"""Vault: a folder with a Markdown file for each question; a person answers in the file."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from sm.base.errors import SmError, StateError
from sm.base.issue_id import spell
from sm.base.text import normalise
from sm.channels.channel import Asked, Channel, PersonReply, Word
from sm.sessions.session import IssueSession, Session
from sm.store.files import read_guarded, write_atomic

HEADING = "## Answer"
PLACEHOLDER = "<!-- write below this line -->"
SETTLED = "answered"
READ_LIMIT = 1024 * 1024

QUIET_S = 2.0
"""Seconds that a file must be unchanged: editors save while their user still types."""

COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<!?-?\Z", re.DOTALL)

TEMPLATE = """\
# {title}

{mark}

An agent waits for your answer: write it below the last heading and save the file.

{body}

{heading}

{placeholder}
"""


class Vault(Channel, Struct, frozen=True):
    """File `file` for the question of `session`. The file has the question's mark."""

    session: IssueSession
    file: Path
    place: ClassVar[str] = "in the vault"

    def ask(self, word: Word) -> None:
        """Write the question into the file; an earlier one is put away first."""
        record = self.session.record
        title = f"{record.project} {spell(record.issue)}: {record.title}"
        write_question(self.file, title=title, body=word.text, marker=word.id)

    def settle(self) -> None:
        """Put the question away."""
        put_away(self.file)

    def list_replies(self, asked: Asked) -> list[PersonReply]:
        """Return the text below the question, which may be there before the forge has taken it."""
        if not (text := read_answer(self.file, marker=asked.id)):
            return []
        try:
            at = self.file.lstat().st_mtime
        except OSError:
            return []  # it was just moved away
        return [PersonReply(f"vault-{at:.3f}", at, "vault", text)]

    def list_watched(self) -> tuple[Path, ...]:
        """Return the file."""
        return (self.file,)

    def name_way(self) -> str:
        """Return how a person answers there."""
        return "the file in the vault"


def open_vault(session: Session) -> Vault | None:
    """Return the vault of the session's project, None if it has none."""
    if not isinstance(session, IssueSession):
        return None
    folder = session.project.settings.escalation.vault
    return Vault(session, folder / f"{session.name}.md") if folder else None


def write_question(path: Path, *, title: str, body: str, marker: str) -> Path:
    """Write the question `marker` into the file `path`; a repeated call changes nothing.

    An earlier question in the file is put away first. Returns `path`.

    Raises:
        StateError: the file belongs to a person, or cannot be written.

    """
    there = _read(path)
    if there is not None:
        if _mark(marker) in there.splitlines():
            return path
        if not _is_ours(there):
            raise StateError(f"'{path}' is no question of ours: move it, it is in the way of one")
        put_away(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StateError(f"cannot make the vault '{path.parent}': {error.strerror}") from error
    text = TEMPLATE.format(
        title=" ".join(normalise(title).split()) or "A question",
        mark=_mark(marker),
        body=_quoted(body),
        heading=HEADING,
        placeholder=PLACEHOLDER,
    )
    write_atomic(path, text)
    return path


def read_answer(path: Path, *, marker: str = "", quiet_s: float = QUIET_S) -> str | None:
    """Return what the person wrote under the heading; None if there is nothing yet.

    With a `marker` only the answer to that question counts. A file that was saved less than
    `quiet_s` seconds ago is not read yet. A person's own file holds no answer.

    Raises:
        StateError: the file cannot be read, is a link, or belongs to another user.

    """
    try:
        if abs(time.time() - path.lstat().st_mtime) < quiet_s:
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from error
    text = _read(path) or ""
    lines = text.splitlines()
    if not _is_ours(text) or (marker and _mark(marker) not in lines):
        return None
    # Every line of the question is quoted, so the first such heading is the real one.
    start = next((n for n, line in enumerate(lines, 1) if line.rstrip() == HEADING), None)
    if start is None:
        return None
    return normalise(COMMENT.sub("", "\n".join(lines[start:]))).strip() or None


def put_away(path: Path) -> Path:
    """Move the file to `answered/` beside it, under a free name; return its new path.

    A missing file is no error. A file that is not our question stays where it is.

    Raises:
        StateError: the file cannot be moved.

    """
    folder = path.parent / SETTLED
    if not _is_question(path):
        return path
    try:
        folder.mkdir(exist_ok=True)
        target = _free_name(folder, path)
        path.rename(target)
    except OSError as error:
        raise StateError(f"cannot move '{path}' to '{folder}': {error.strerror}") from error
    return target


def _is_question(path: Path) -> bool:
    """Say whether the file is one of our questions; an unreadable file is none."""
    try:
        return _is_ours(_read(path) or "")
    except SmError:
        return False


def _is_ours(text: str) -> bool:
    """Say whether a text is one of our questions; quoted lines in it begin with '>'."""
    return any(line.startswith("<!-- sm:") for line in text.splitlines())


def _free_name(folder: Path, path: Path) -> Path:
    target, number = folder / path.name, 1
    while target.exists():
        number += 1
        target = folder / f"{path.stem}-{number}{path.suffix}"
    return target


def _read(path: Path) -> str | None:
    data = read_guarded(path, READ_LIMIT)
    return None if data is None else data.decode("utf-8", "replace")


def _mark(marker: str) -> str:
    return f"<!-- sm:{' '.join(marker.split())} -->"


def _quoted(body: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in normalise(body).split("\n"))
