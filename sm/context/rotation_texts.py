"""Texts for an agent while its context is replaced, and the reading of its answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sm.base import quotation
from sm.context.rotation import Cause, MessageKey, MessageKind, RotationRecord

BEGINS = "Read handoff from"
"""Beginning of the new context's first prompt, unless the agent hands off by itself."""
CONFIRM = "Confirm you have resumed work from handoff"
TASK_LIMIT = 200
"""Limit of a task that is kept, in characters."""

_MARKS = " \t-*_#>\N{BULLET}\N{BLACK CIRCLE}\N{BLACK CIRCLE FOR RECORD}"
"""Marks that an agent, or its terminal, puts before a line."""
_EMPHASIS = re.compile(r"\*\*|__|`")


class Form(NamedTuple):
    """Parts that a document consists of: sections by their headings, lines by their names."""

    sections: Sequence[str] = ()
    lines: Sequence[str] = ()

    @property
    def told(self) -> str:
        """Sentences about the form for an agent, behind a blank; '' for nothing."""
        headings = f" Headings: {', '.join(self.sections)}." if self.sections else ""
        lines = f" Lines `**NAME**: value` for: {', '.join(self.lines)}." if self.lines else ""
        return headings + lines


def write_message(
    record: RotationRecord,
    key: MessageKey,
    *,
    folder: str,
    form: Form,
    missing: Form,
    path: str,
    resumed: str,
) -> str:
    """Write the message that `record` has under `key`.

    `folder` is where a document of that `form` is to be written, `path` the one that there is,
    `missing` what it lacks. A new context names its task in a line that begins with `resumed`. The
    message has three lines at most, so that an agent CLI takes it as typed.
    """
    if key.kind is MessageKind.ASK:
        return ask_for_document(record, key.number, folder, form)
    if key.kind is MessageKind.SECTIONS:
        return (
            f"Add to the handoff document {quotation.path(path)} what it lacks.{missing.told}\n"
            "When it is whole, end your turn."
        )
    if key.kind is MessageKind.CONFIRM:
        return ask_again_for_task(resumed)
    return write_prompt(record.cause, path)


def write_prompt(cause: Cause, path: str) -> str:
    """Write the first prompt of the new context; `ask_for_task` ends it, unless it hands off."""
    if cause is Cause.HANDOFF:
        return f"Read {quotation.path(path)} and continue from where you left off."
    return f"{BEGINS} {quotation.path(path)} and resume work"


def ask_for_task(resumed: str) -> str:
    """Write the request to name the task, as the first words of the new context."""
    return (
        f"Before anything else, say in one line that begins with `{resumed}` which task you go on "
        "with."
    )


def ask_again_for_task(resumed: str) -> str:
    """Return the question for a new context that has named no task."""
    return f"{CONFIRM}\nSay in one line that begins with `{resumed}` which task you are at."


def find_task(text: str, resumed: str) -> str:
    """Find the task that a line of `text` names behind `resumed`, '' if none does."""
    wanted = _bare(resumed)
    for line in text.splitlines():
        bare = _bare(line)
        task = bare[len(wanted) :].strip(" .:-\N{HORIZONTAL ELLIPSIS}")
        if task and bare[: len(wanted)].casefold() == wanted.casefold():
            return task[:TASK_LIMIT]
    return ""


def find_shown_task(rows: Iterable[str], resumed: str) -> str:
    """Find the task in the rows of a screen, which shows our own request, too."""
    return find_task("\n".join(row for row in rows if "`" not in row), resumed)


def _bare(line: str) -> str:
    return _EMPHASIS.sub("", line.lstrip(_MARKS)).strip()


def name_document(at: datetime) -> str:
    """Name a document that is asked for at this local time."""
    return at.strftime("handoff-%Y-%m-%d-%H-%M.md")


def name_requested(record: RotationRecord, number: int) -> str:
    """Return the name for the document of that request, which no document has yet.

    Each request gives another name: the agent may find the last one in its way, damaged or a link.
    """
    at = datetime.fromtimestamp(record.began_at)
    if number > 1:
        minute = timedelta(minutes=1)
        again = datetime.fromtimestamp(record.since) + (number - 2) * minute
        at = max(again, _free(record, at) + (number - 1) * minute)
    return name_document(_free(record, at))


def _free(record: RotationRecord, at: datetime) -> datetime:
    """Find the first minute from then on that no document of before the request is named for."""
    taken = {stamp.partition(":")[0] for stamp in record.before}
    while name_document(at) in taken:
        at += timedelta(minutes=1)
    return at


def ask_for_document(record: RotationRecord, number: int, folder: str, form: Form) -> str:
    """Write the request of that number for a document of that form."""
    reason = "" if record.percent is None else f" - context at {min(record.percent, 100):.0f}%"
    path = quotation.path(f"{folder}/{name_requested(record, number)}")
    then = "Your context is cleared then, and you go on from this document alone."
    if record.cause is Cause.LEAVE:
        reason = " - this machine's time is over soon"
        then = "The work goes on elsewhere then, from this document and the worktree as it is."
    return (
        f"Create handoff document now{reason}\n"
        f"Write it to {path}.{form.told}\n"
        f"Create it as a new file; when it is whole, end your turn. {then}"
    )


def say_times(number: int) -> str:
    """Return the number of times in words."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
