"""Output for people: each line that one reads goes through here to stdout or stderr.

Titles, names, file names, logs: most of what `sm` prints was written by others, and a terminal
obeys some of it (OSC 52 fills the clipboard, CSI moves the cursor). So what is printed is made
printable here and not by each command; the linter refuses `click.echo` and its like elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sm.base.text import escape_json, one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

LINE_LIMIT = 10_000
"""Characters of a line; what is longer is a mistake or an attack."""


class Styled(NamedTuple):
    """A part of a line in a colour, bold or underlined, where a terminal shows it."""

    text: str
    colour: str | None = None
    bold: bool = False
    underline: bool = False


def say(*parts: str | Styled, err: bool = False) -> None:
    """Print a line, to stderr if `err`; a line break in it becomes a blank."""
    _echo("".join(map(_part, parts)), err=err)


def _echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    import click  # which a pass over a session does without: most say nothing

    click.echo(text, err=err, nl=nl)


def _part(part: str | Styled) -> str:
    if isinstance(part, str):
        return _line(part)
    import click

    bold, underline = part.bold or None, part.underline or None  # None: no code for "not"
    return click.style(_line(part.text), part.colour, bold=bold, underline=underline)


def _line(text: str) -> str:
    line = printable(text[: 4 * LINE_LIMIT]).replace("\n", " ")
    return line if len(line) <= LINE_LIMIT else line[: LINE_LIMIT - 1] + "…"


def say_lines(lines: Iterable[str]) -> None:
    """Print each of `lines`."""
    _echo("\n".join(map(_line, lines)))


def say_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text whole, with its lines; without `nl` no line break is added at its end."""
    _echo(printable(text), err=err, nl=nl)


def warn(text: str) -> None:
    """Tell a person one line on stderr, in the form of an error."""
    _echo(f"sm: {one_line(text, LINE_LIMIT)}", err=True)


def say_json(encoded: str) -> None:
    """Print JSON; what a terminal would act upon is escaped, which means the same."""
    _echo(escape_json(encoded))


def pass_on(content: bytes) -> None:
    """Write requested content, such as a patch, to stdout unchanged, byte by byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def ask(question: str, default: str | None) -> str:
    """Ask a person on stderr; return the answer, by default `default`, or '' if there is none."""
    import click

    if default is None:  # click itself would ask until there is an answer
        return str(click.prompt(_line(question), default="", show_default=False, err=True))
    return str(click.prompt(_line(question), default=_line(default), err=True))


def confirm(question: str, *, default: bool = True) -> bool:
    """Ask a person on stderr whether they agree; Enter alone means `default`."""
    import click

    return click.confirm(_line(question), default=default, err=True)


def console(width: int | None = None) -> Console:
    """Make a console for tables that prints nothing that `say` would not."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Printable(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    return Printable(width=width)
