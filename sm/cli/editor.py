"""Texts that a person writes in an editor: the first line is a title, the rest the text."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import click

from sm.base.errors import UsageError
from sm.base.output import warn

SCISSORS = "<!-- sm: the first line is the title, the rest the text; this line and all below go -->"


def edit(title: str = "", body: str = "") -> tuple[str, str]:
    """Return the title and the text as a person edits them, in $VISUAL, $EDITOR or the default.

    Raises:
        UsageError: there is no terminal, the editor failed, or nothing was written.

    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal for an editor: give a title, --body or --file")
    try:
        written = click.edit(f"{title}\n\n{body}\n\n{SCISSORS}\n", extension=".md")
    except click.ClickException as error:
        raise UsageError(f"the editor failed: {error.message}") from error
    if written is None:
        raise UsageError("nothing was saved: nothing is changed")
    first, _, rest = written.partition(SCISSORS)[0].strip().partition("\n")
    if not first.strip():
        raise UsageError("the title is empty: nothing is changed")
    return first.strip(), rest.strip()


@contextmanager
def keep(text: str) -> Iterator[None]:
    """Keep a person's text in a file, if it cannot be used or Ctrl-C ends the wait."""
    try:
        yield
    except BaseException:
        handle, path = tempfile.mkstemp(prefix="sm-text-", suffix=".md")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        warn(f"what you wrote is in '{path}'")
        raise
