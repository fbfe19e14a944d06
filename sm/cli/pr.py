"""`sm pr`: list, show, compare and merge pull requests."""

from __future__ import annotations

import re
import sys

import click

from sm.cli.forges import (
    author_name,
    author_option,
    end_with,
    number_argument,
    print_remarks,
    print_table,
    print_text,
)
from sm.cli.options import json_option, pass_config, project_option
from sm.cli.words import print_json
from sm.config.schema import Config, Project
from sm.output import Styled, pass_on, say
from sm.text import one_line

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
HEADS = ("diff ", "index ", "--- ", "+++ ")
STAT = re.compile(r"(.*\| +\d+ )(\+*)(-*)")

STATES = click.Choice(["open", "merged", "closed", "all"])


@click.group()
def command() -> None:
    """List, show, compare and merge pull requests."""


@command.command("list")
@click.option("--state", type=STATES, default="open", show_default=True, help="Only these.")
@json_option
@project_option
@pass_config
def list_(config: Config, project: Project, state: str, as_json: bool) -> None:
    """List pull requests, oldest first."""
    from sm.forge import PullState
    from sm.workflow.context import Context

    wanted = None if state == "all" else PullState(state)
    found, problems = Context(config, project).forge.pulls(wanted)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("#", "Title", "State", "Branch", "Into", "Head", "CI", "Merges"),
            [
                (
                    str(pull.number),
                    pull.title,
                    pull.state,
                    pull.branch,
                    pull.base,
                    pull.head[:12],
                    pull.check.state,
                    "conflicts" if pull.conflicts else "",
                )
                for pull in found
            ],
        )
    end_with(problems)


@command.command()
@number_argument
@json_option
@project_option
@pass_config
def show(config: Config, project: Project, number: int, as_json: bool) -> None:
    """Show a pull request with its checks, reviews and comments."""
    from sm.cli.times import moment
    from sm.workflow.context import Context

    pull = Context(config, project).forge.pull(number)
    if as_json:
        print_json(pull)
        return
    say(Styled(f"#{pull.number} {one_line(pull.title)}", bold=True))
    conflicts = " · conflicts" if pull.conflicts else ""
    say(f"{pull.state} · {one_line(pull.author)}, {moment(pull.at)}{conflicts}")
    say(f"{one_line(pull.branch)} at {pull.head[:12]} into {one_line(pull.base)}")
    step = f" ({one_line(pull.check.step)})" if pull.check.step else ""
    say(f"CI: {pull.check.state}{step} {one_line(pull.check.url)}".rstrip())
    if pull.merged_as:
        say(f"merged as {pull.merged_as[:12]}")
    print_text(pull.body)
    print_remarks([*pull.comments, *pull.reviews])


@command.command()
@number_argument
@click.option("--stat", is_flag=True, help="Only the files and how much changes in them.")
@project_option
@pass_config
def diff(config: Config, project: Project, number: int, stat: bool) -> None:
    """Show what a pull request changes; in a pipe it is the patch as it is."""
    from sm.workflow.context import Context

    options = ["--no-color", *(["--stat"] if stat else [])]
    found = Context(config, project).forge.diff(number, *options)
    if not sys.stdout.isatty():
        pass_on(found.encode("utf-8"))
        return
    for line in found.splitlines():
        say(*_coloured(line))


def _coloured(line: str) -> tuple[str | Styled, ...]:
    """A line of a patch, or of the overview with `--stat`, in git's colours."""
    if overview := STAT.fullmatch(line):
        return overview[1], Styled(overview[2], "green"), Styled(overview[3], "red")
    if line.startswith(HEADS):
        return (Styled(line, bold=True),)
    return (Styled(line, COLOURS.get(line[:1])),)


@command.command()
@number_argument
@click.option("--head", metavar="COMMIT", default="", help="Only if the branch is still at it.")
@click.option("-m", "--message", metavar="TEXT", default="", help="The merge commit's message.")
@author_option
@project_option
@pass_config
def merge(
    config: Config, project: Project, number: int, head: str, message: str, author: str | None
) -> None:
    """Merge a pull request on the forge, with a merge commit.

    Refused where it conflicts, where CI has not passed on the branch's last commit, where that
    is not approved though the project wants reviews, or where it is not the one that --head
    names.
    """
    from sm.workflow.context import Context

    forge = Context(config, project).forge
    name = author_name(project, author)
    pull = forge.merge(number, head=head, message=message, author=name)
    say(f"merged #{number} as {pull.merged_as[:12]}")
