"""Parts that the verbs of the forge share: the speaker, texts from options, lists, and problems."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, check_pull, read_issue
from sm.base.output import Styled, console, say, say_text, warn
from sm.base.text import normalise, one_line
from sm.cli.options import Decorator
from sm.cli.words import read_stdin, read_stream

if TYPE_CHECKING:
    from sm.adapters.forge.model import Comment, Review
    from sm.adapters.forge.protocol import AnyForge
    from sm.sessions.project import Project

author_option: Decorator = click.option(
    "--as", "author", metavar="NAME", help="Your name; default: git's user.name, then $USER."
)
"""`author: str | None`."""

head_option: Decorator = click.option(
    "--head", metavar="COMMIT", default="", help="Only if the branch is still at it."
)
"""`head: str`."""


def make_state_option(*states: str) -> Decorator:
    """Make the option `state: str` of a list: one of these, or `all`."""
    choice = click.Choice([*states, "all"])
    return click.option(
        "--state", type=choice, default=states[0], show_default=True, help="Only these."
    )


file_option: Decorator = click.option(
    "-F",
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the text from FILE; '-' is standard input.",
)
"""`file: Path | None`."""


def _issue(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> IssueId:
    """Return the id in `7`, `#7`, `PROJECT 7` or `PROJECT#7`; note the project, if named.

    Of a project without a tracker the forge is not asked for another id than a number.
    """
    from sm.cli.options import name_project
    from sm.sessions.address import read_address

    *names, text = words
    if len(names) > 1:
        raise UsageError("expected a number, or a project and a number, such as 'harb 7'")
    if names:
        name_project(ctx, names[0])
    elif found := read_address(text):
        name_project(ctx, found[0])
        return found[1]
    if meant := read_issue(text):
        return meant
    raise UsageError(f"'{text}' is no number: use a whole number from 1 up, or PROJECT#NUMBER")


def _number(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> int:
    """Return the number of a pull request, in the same ways."""
    return check_pull(_issue(ctx, param, words))


number_argument: Decorator = click.argument(
    "number",
    metavar="[PROJECT] NUMBER",
    callback=_number,
    is_eager=True,
    nargs=-1,
    required=True,
)
"""`number: int` of a pull request; the project may be named before it, also as `shop#7`."""

issue_argument: Decorator = click.argument(
    "number",
    metavar="[PROJECT] NUMBER",
    callback=_issue,
    is_eager=True,
    nargs=-1,
    required=True,
)
"""`number: IssueId` of an issue, in the same ways."""

WIDTH_OF_A_PIPE = 10_000


def read_text(text: str | None, file: Path | None) -> str:
    """Return the text that was given, on the command line or in a file."""
    if text is not None and file is not None:
        raise UsageError("the text is given twice: leave out --body or --file")
    if file is None:
        return text or ""
    try:
        if str(file) == "-":
            return read_stdin()
        with file.open("rb") as stream:
            return read_stream(stream, f"'{file}'")
    except OSError as error:
        raise UsageError(f"cannot read '{file}': {(error.strerror or '').lower()}") from error


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print rows: as wide as the terminal, or whole where it is no terminal that reads them.

    Without rows a person is told what is `empty`.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not rows:
        say(empty, err=True)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for header in headers:
        number = header == "#"
        table.add_column(header, no_wrap=True, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(one_line(cell), overflow="ellipsis") for cell in row))
    width = None if sys.stdout.isatty() else WIDTH_OF_A_PIPE
    console(width).print(table)


def print_text(text: str) -> None:
    """Print a text of several lines after an empty one, if there is any."""
    if readable := normalise(text):
        say()
        say_text(readable)


def print_remarks(remarks: Iterable[Comment | Review]) -> None:
    """Print comments and reviews, oldest first."""
    from sm.adapters.forge.model import Review
    from sm.views.times import format_moment

    for remark in sorted(remarks, key=lambda one: one.at):
        verdict = f", {remark.state} at {remark.head[:12]}" if isinstance(remark, Review) else ""
        say()
        say(Styled(f"— {one_line(remark.author)}, {format_moment(remark.at)}{verdict}", bold=True))
        print_text(remark.body)
        for note in remark.comments if isinstance(remark, Review) else ():
            say()
            say(Styled(f"{one_line(note.path)}:{note.line}", underline=True))
            print_text(note.body)


def check_labels(
    forge: AnyForge, project: Project, labels: Iterable[str], *, new: bool = False
) -> None:
    """Refuse a label that nothing has, and that is almost a known one.

    Raises:
        UsageError: there is such a label.

    """
    from sm.base.nearest import find_nearest

    own = project.settings.labels
    configured = {own.backlog, own.in_progress, own.blocked}
    if new or not (unknown := [label for label in labels if label not in configured]):
        return
    known = configured | forge.issues.list_labels()
    for label in unknown:
        if label not in known and (near := find_nearest(label, sorted(known))):
            raise UsageError(f"there is no label '{label}': did you mean '{near}'?")


def end_with(problems: Sequence[str]) -> None:
    """Name the files that could not be read, after all others; then it was no success."""
    for problem in problems:
        warn(problem)
    if problems:
        click.get_current_context().exit(1)
