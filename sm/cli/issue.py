"""`sm issue`: file, list, show and close issues."""

from __future__ import annotations

from pathlib import Path

import click

from sm.cli.forges import (
    author_name,
    author_option,
    end_with,
    file_option,
    number_argument,
    print_remarks,
    print_table,
    print_text,
    text_of,
)
from sm.cli.options import json_option, pass_config, project_option
from sm.cli.words import print_json
from sm.config.schema import Config, Project
from sm.errors import UsageError
from sm.output import Styled, say
from sm.text import one_line

STATES = click.Choice(["open", "closed", "all"])

body_option = click.option("-b", "--body", metavar="TEXT", help="The text, Markdown.")


@click.group()
def command() -> None:
    """File, list, show and close issues.

    Each is a Markdown file in the forge's folder, which may as well be edited there.
    """


@command.command()
@click.argument("title")
@body_option
@file_option
@click.option(
    "-l", "--label", "labels", multiple=True, help="A label; default: the one for new work."
)
@author_option
@project_option
@pass_config
def add(
    config: Config,
    project: Project,
    title: str,
    body: str | None,
    file: Path | None,
    labels: tuple[str, ...],
    author: str | None,
) -> None:
    """File an issue; dev-poll has an agent work on it.

    A line 'Depends on #7' in the text lets it wait until issue 7 is closed. Prints the number.
    """
    from sm.workflow.context import Context

    made = Context(config, project).forge.add_issue(
        title,
        text_of(body, file),
        labels or (project.labels.backlog,),
        author=author_name(project, author),
    )
    say(f"#{made.number}")


@command.command("list")
@click.option("--state", type=STATES, default="open", show_default=True, help="Only these.")
@click.option("-l", "--label", "labels", multiple=True, help="Only those with this label.")
@json_option
@project_option
@pass_config
def list_(
    config: Config, project: Project, state: str, labels: tuple[str, ...], as_json: bool
) -> None:
    """List issues, oldest first."""
    from sm.forge import IssueState
    from sm.workflow.context import Context

    wanted = None if state == "all" else IssueState(state)
    found, problems = Context(config, project).forge.issues(wanted, labels)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("#", "Title", "State", "Labels", "Author"),
            [(str(i.number), i.title, i.state, ", ".join(i.labels), i.author) for i in found],
        )
    end_with(problems)


@command.command()
@number_argument
@json_option
@project_option
@pass_config
def show(config: Config, project: Project, number: int, as_json: bool) -> None:
    """Show an issue with its comments."""
    from sm.cli.times import moment
    from sm.workflow.context import Context

    found = Context(config, project).forge.issue(number)
    if as_json:
        print_json(found)
        return
    say(Styled(f"#{found.number} {one_line(found.title)}", bold=True))
    labels = f" · {one_line(', '.join(found.labels))}" if found.labels else ""
    say(f"{found.state} · {one_line(found.author)}, {moment(found.at)}{labels}")
    print_text(found.body)
    print_remarks(found.comments)


@command.command()
@number_argument
@project_option
@pass_config
def close(config: Config, project: Project, number: int) -> None:
    """Close an issue; a session that works on it is stopped, its work is kept."""
    from sm.workflow.context import Context

    Context(config, project).forge.close_issue(number)
    say(f"closed #{number}")


@command.command()
@number_argument
@click.option("-a", "--add", "added", multiple=True, metavar="LABEL", help="Give it this label.")
@click.option("-r", "--remove", "removed", multiple=True, metavar="LABEL", help="Take it off.")
@project_option
@pass_config
def label(
    config: Config,
    project: Project,
    number: int,
    added: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    """Give an issue labels, or take them off. Prints those that it has then."""
    from sm.workflow.context import Context

    forge = Context(config, project).forge
    for name in removed:
        forge.remove_label(number, name)
    for name in added:
        forge.add_label(number, name)
    say(one_line(", ".join(forge.issue(number).labels)))


@command.command()
@number_argument
@body_option
@file_option
@author_option
@project_option
@pass_config
def comment(
    config: Config,
    project: Project,
    number: int,
    body: str | None,
    file: Path | None,
    author: str | None,
) -> None:
    """Comment on an issue or pull request.

    On an issue whose agent has asked something, a comment is an answer.
    """
    from sm.workflow.context import Context

    text = text_of(body, file)
    if not text.strip():
        raise UsageError("the comment is empty: give it with --body or --file")
    Context(config, project).forge.comment(number, text, author=author_name(project, author))
    say(f"commented on #{number}")
