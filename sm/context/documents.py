"""Handoff documents of a session: their folder, and what an agent has written there.

No link is followed, and nothing but documents that we have asked for is ever removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from sm.adapters import git_files
from sm.base.errors import SmError, StateError
from sm.config.schema import HandoffCycle
from sm.context.rotation import HandoffDocument, RotationRecord
from sm.sessions import registry
from sm.sessions.session import Session
from sm.store.files import create_exclusive, read_foreign

READ_LIMIT = 1024 * 1024
"""Limit of the text in which a document's sections are looked for, in bytes."""
PATTERN = "handoff-*.md"
OURS = f"/{PATTERN}\n/.gitignore\n"
SHORTEST = "handoff-.md"
NAME = re.compile(r"handoff-[^\x00-\x1f\x7f\ud800-\udfff]*\.md")
"""Name that an agent may choose in place of the one that it was told.

It must be fit for one line of text: no control characters, and no bytes that are no text.
"""
ASKED_FOR = re.compile(r"handoff-\d{4}-\d\d-\d\d-\d\d-\d\d\.md", re.ASCII)
"""Name that we ask for: a file with any other may be a person's own."""
ADVICE = "change handoff_cycle.folder in the configuration"


def find_folder(session: Session, cycle: HandoffCycle) -> Path:
    """Return the folder of the session's documents: absolute, without links; it may not exist.

    It is below the working directory, unless the configuration names an absolute one. Where
    several sessions may share that, each has a folder of its own in it.

    Raises:
        StateError: it would be outside of the working directory, that is gone, or its path is none.

    """
    named = Path(cycle.folder)
    if named.is_absolute():
        return _real(named) / session.name
    base = _real(session.record.cwd)
    if not os.path.isdir(base):  # noqa: PTH112 - the one of Path raises what it does not expect
        raise StateError(f"the working directory '{base}' is gone")
    if ".." in named.parts:
        raise StateError(f"'{named}' is not below '{base}': {ADVICE}")
    wanted = base / named
    return wanted if session.owns_cwd else wanted / session.name


def _real(path: Path) -> Path:
    """Return the path without links.

    Raises:
        StateError: it cannot be named to an agent, or be looked up.

    """
    try:
        real = os.path.realpath(path)
        real.encode()
    except (OSError, ValueError) as error:
        raise StateError(f"cannot use the path {str(path)!a}: {ADVICE}") from error
    return Path(real)


def check(folder: Path) -> None:
    """Refuse a folder if a link is on the way to it.

    Raises:
        StateError: there is one.

    """
    if _real(folder) != folder:
        raise StateError(f"there is a link on the way to '{folder}': remove it, or {ADVICE}")


def prepare(folder: Path) -> None:
    """Make the folder if it is missing, and keep our documents out of git.

    Raises:
        StateError: it cannot be made, or a link is on the way to it.

    """
    check(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"cannot make '{folder}': {reason}: {ADVICE}") from error
    if is_empty:
        create_exclusive(folder / ".gitignore", "*\n")
    else:
        _hide_documents(folder)


def _hide_documents(folder: Path) -> None:
    """Keep our documents out of git, and only ours: others use the folder as well."""
    with contextlib.suppress(SmError):  # a handoff has to do without a git that does not work
        if git_files.is_shown(folder / SHORTEST):
            create_exclusive(folder / ".gitignore", OURS)


def hide_beside(session: Session, cycle: HandoffCycle) -> None:
    """Keep documents out of git that an agent writes into the folder itself, beside its own one.

    That folder may be a person's: nothing is made there.
    """
    named = Path(cycle.folder)
    if session.owns_cwd or named.is_absolute() or ".." in named.parts:
        return
    with contextlib.suppress(SmError):  # as above
        git_files.hide(session.record.cwd, named.as_posix(), PATTERN)


def read_stamps(folder: Path) -> tuple[str, ...]:
    """Return a stamp of each document there; it differs once the document is written again.

    Raises:
        StateError: what is there cannot be known, so that an old one would pass for a new one.

    """
    try:
        return tuple(one.stamp for one in _documents(folder))
    except OSError as error:
        raise StateError(f"cannot read '{folder}': {os.strerror(error.errno or 0)}") from error


def read_stamps_beside(session: Session, folder: Path) -> tuple[str, ...] | None:
    """Return the stamps of the folder above the session's own; None if that counts for nothing.

    An agent that was told `handoff_cycle.folder` by others may write right there. The folder
    belongs to the working directory, so a document there belongs to the only session that works in
    it.
    """
    if folder.name != session.name or not _works_alone(session, folder):
        return None
    with contextlib.suppress(StateError):
        return read_stamps(folder.parent)
    return None


def _works_alone(session: Session, folder: Path) -> bool:
    cwd = _real(session.record.cwd)
    if not folder.is_relative_to(cwd):
        return False
    known = registry.list_all(session.root, lambda _: None)
    others = [one for one in known if one.name != session.name and _real(one.record.cwd) == cwd]
    return not any(one.is_living or one.is_being_begun for one in others)


def find_document(session: Session, record: RotationRecord) -> HandoffDocument | None:
    """Find the document that a rotation has asked for, once it is there."""
    cycle, folder = session.settings.cycle, Path(record.folder)
    needs = (cycle.sections, cycle.needed_lines)
    found = find_written(folder, record.before, *needs)
    if found or record.beside is None:
        return found
    beside = find_written(folder.parent, record.beside, *needs)
    return beside if beside and _works_alone(session, folder) else None


def find_written(
    folder: Path, before: Collection[str], sections: Sequence[str], lines: Sequence[str] = ()
) -> HandoffDocument | None:
    """Find the newest document that is not as one of `before` (by their stamps); None without one.

    `sections` and `lines` are what it needs. No clock has a say in it, as the clock of a file
    server may be wrong. Links, special files, and what is empty or cannot be read are no documents.
    """
    with contextlib.suppress(OSError, StateError):
        known = frozenset(before)
        new = (one for one in _documents(folder) if one.stamp not in known)
        for one in sorted(new, reverse=True):
            if text := _read(folder / one.name).strip():
                return HandoffDocument(
                    path=str(folder / one.name),
                    stamp=one.stamp,
                    written_at=one.changed_ns / 1e9,
                    missing=find_missing(text, sections),
                    lines=find_missing_lines(text, lines),
                )
    return None


def prune(folder: Path, keep: int, never: Path) -> None:
    """Remove all but the newest `keep` documents that have a name that we ask for.

    `never` stays, whatever its age, and so does what git tracks.
    """
    with contextlib.suppress(OSError, SmError):
        ours = [one for one in _documents(folder) if ASKED_FOR.fullmatch(one.name)]
        if len(ours) <= keep:
            return
        spared = git_files.list_tracked(folder, PATTERN) | {never.name}
        for one in sorted(ours, reverse=True)[keep:]:
            if one.name not in spared:
                (folder / one.name).unlink(missing_ok=True)


class _Found(NamedTuple):
    """Document, sorted by age."""

    changed_ns: int
    name: str
    size: int

    @property
    def stamp(self) -> str:
        # Without its inode: some file systems that are served give another one each time.
        return f"{self.name}:{self.changed_ns}:{self.size}"


def _documents(folder: Path) -> Iterator[_Found]:
    """List every plain file with a document's name.

    Raises:
        OSError: the folder cannot be read.
        StateError: there is a link on the way to it.

    """
    check(folder)
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if NAME.fullmatch(entry.name) and (found := _plain_file(entry)):
                yield found


def _plain_file(entry: os.DirEntry[str]) -> _Found | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it has just been removed
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _Found(status.st_mtime_ns, entry.name, status.st_size)


def _read(path: Path) -> str:
    """Return the file's text, '' if it cannot be read, or is no plain file any more."""
    try:
        return read_foreign(path, READ_LIMIT).decode("utf-8", "replace").strip("\x00")
    except OSError:
        return ""


# Parts that a document lacks

LINE_LIMIT = 400
"""Limit of a heading, in characters."""
BOLD, BOLD_LEVEL = ("**", "__"), 7
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HASHES = re.compile(r" {0,3}(#{1,6})(?!\S)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|(-+))\s*")
_MARKS_ALONE = re.compile(r"[-*+_#>=~`|:.\[\]]*(?:\d+[.)])?")
_NUMBER = re.compile(r"(?:(?<!\d)\d++|[a-z])[.)]\s+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def find_missing(text: str, sections: Sequence[str]) -> tuple[str, ...]:
    """Return the `sections` that the document lacks, or has nothing below their heading, in order.

    A heading is one of any level, or a line in bold. Case, numbers, marks and what follows the name
    do not matter: `## 3. NEXT STEPS (today):` has `Next Steps`. One word below it is enough, such
    as `None`, or behind a colon in it. A section whose name has no letter is never missing.
    """
    names = {section: _words(section) for section in sections}
    filled, above = set[str](), dict[str, int]()
    for level, line, ends_others in _lines(text):
        words = f"{_words(line)} " if level else ""
        here = [name for name in names.values() if name and words.startswith(f"{name} ")]
        if here or ends_others:
            above = {name: of_it for name, of_it in above.items() if of_it < level}
            above = dict.fromkeys(here, level) | above
        if not here or line.partition(":")[2].strip("*_# "):
            filled.update(above)
    return tuple(section for section, name in names.items() if name and name not in filled)


def find_missing_lines(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the `names` for which the document has no line like `**Created**: today`, in order.

    Case and marks do not matter; something has to stand behind the colon.
    """
    pairs = (line.partition(":") for _, line, _ in _lines(text))
    found = {_words(name.lstrip(" -*_>")) for name, _, value in pairs if value.strip(" *_`")}
    return tuple(name for name in names if _words(name) and _words(name) not in found)


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each line with a word: its level, its text, whether it ends what is above.

    The level is 0 if the line is no heading. A line in bold, or one with a rule below it, ends
    nothing: it may be text as well.
    """
    fence, lines = "", text.removeprefix("\ufeff").splitlines()
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        bare = line.strip()
        inner = bare.removesuffix(":").rstrip()
        if mark := _FENCE.match(line):  # only its own kind closes it
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
        elif len(bare) > LINE_LIMIT or (fence and bare):
            yield 0, bare, False
        elif not fence and (hashes := _HASHES.match(line)):
            yield len(hashes[1]), line[hashes.end() :], True
        elif _MARKS_ALONE.fullmatch("".join(bare.split())):
            continue
        elif rule := _UNDERLINE.fullmatch(below):
            yield 2 if rule[1] else 1, bare, False
        elif inner.startswith(BOLD) and inner.endswith(BOLD):
            yield BOLD_LEVEL, inner[2:-2], False
        else:
            yield 0, bare, False


def _words(heading: str) -> str:
    """Return the words that are compared, without case, number and decoration."""
    text = unicodedata.normalize("NFKC", heading).casefold()
    text = _NUMBER.sub("", text.lstrip(" *_`#"), count=1)
    return _BETWEEN_WORDS.sub(" ", text).strip()
