"""`sm issue`: file, list, show, edit and close issues."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.acts.permission import find_author_name, leave_to_others
from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, check_pull, spell
from sm.base.output import Styled, say, warn
from sm.base.text import one_line
from sm.cli.agent_forge import ask_for, find_agent, list_issues
from sm.cli.forges import (
    author_option,
    check_labels,
    end_with,
    file_option,
    issue_argument,
    make_state_option,
    number_argument,
    print_remarks,
    print_table,
    print_text,
    read_text,
)
from sm.cli.options import json_option, project_option
from sm.cli.words import print_json
from sm.sessions.project import Project

if TYPE_CHECKING:
    from sm.adapters.forge.protocol import AnyForge

new_option = click.option(
    "--new", is_flag=True, help="Make new labels, even if they are nearly like known ones."
)
body_option = click.option("-b", "--body", metavar="TEXT", help="The text, Markdown.")


def _take_title(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str | None:
    """Take the title in one word; several are a title without quotes, or begin with a project."""
    if len(words) > 1:
        quoted = shlex.join([" ".join(words)])
        raise UsageError(f"the title is to be in quotes: {ctx.command_path} {quoted}")
    return words[0] if words else None


@click.group()
def command() -> None:
    """File, list, show, edit, close and reopen issues.

    On the embedded forge each is a Markdown file in the forge's folder, which you may edit, too.
    """


@command.command()
@click.argument("title", required=False, nargs=-1, callback=_take_title)
@body_option
@file_option
@click.option("-e", "--edit", "edited", is_flag=True, help="Write it in $EDITOR.")
@click.option(
    "-l", "--label", "labels", multiple=True, help="A label; default: the one for new work."
)
@new_option
@author_option
@project_option
def add(
    project: Project,
    title: str | None,
    body: str | None,
    file: Path | None,
    edited: bool,
    labels: tuple[str, ...],
    new: bool,
    author: str | None,
) -> None:
    """File an issue; dev-poll has an agent work on it.

    Without a title you write it in $EDITOR. If the text says 'Depends on #7', the issue waits until
    issue 7 is closed. It prints project and number, such as shop#8.
    """
    forge, text, name = project.forge, read_text(body, file), title or ""
    check_labels(forge, project, labels, new=new)
    author = find_author_name(project, author)
    by_hand = edited or title is None
    if by_hand:
        name, text = edit_text(name, text)
    given = labels or (project.settings.labels.backlog,)
    with keep_text(f"{name}\n\n{text}\n") if by_hand else nullcontext():
        made = forge.issues.add(name, text, given, author=author)
    say(f"{project.name}#{made.number}")
    if project.settings.labels.backlog in given:
        _say_what_it_waits_for(project)


def _say_what_it_waits_for(project: Project) -> None:
    """Tell a person if nothing would take the issue up now."""
    from sm.sessions import pause
    from sm.views.poll_absence import START, word_absence

    if paused := pause.read(project.root).find(project.name):
        say(paused.sentence, err=True)
    elif absence := word_absence(project):
        say(f"{absence}, so nothing takes it up: {START}", err=True)


@command.command()
@issue_argument
@click.option("-t", "--title", metavar="TEXT", help="Another title.")
@body_option
@file_option
@click.option("--add-label", "added", multiple=True, metavar="LABEL", help="Give it this label.")
@click.option("--remove-label", "removed", multiple=True, metavar="LABEL", help="Take it off.")
@new_option
@project_option
def edit(
    project: Project,
    number: IssueId,
    title: str | None,
    body: str | None,
    file: Path | None,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    new: bool,
) -> None:
    """Change the title, the text or the labels of an issue; without options, in $EDITOR.

    The agent that works on it is told what has changed.
    """
    leave_to_others(project, "change it", issue=number)
    forge = project.forge
    check_labels(forge, project, (*added, *removed), new=new)
    text = None if body is None and file is None else read_text(body, file)
    if title is None and text is None and not (added or removed):
        known = forge.issues.read(number)
        title, body = edit_text(known.title, known.body)
        with keep_text(f"{title}\n\n{body}\n"):
            forge.issues.edit(number, title=title, body=body, instead_of=known.body)
    else:
        if title is not None and not title.strip():
            raise UsageError("the title is empty: say in a few words what it is about")
        forge.issues.edit(number, title=title or "", body=text)
        _change_labels(forge, number, added, removed)
    say(f"changed {spell(number)}")


def _change_labels(
    forge: AnyForge, number: IssueId, added: tuple[str, ...], removed: tuple[str, ...]
) -> None:
    for name in removed:
        forge.issues.remove_label(number, name)
    for name in added:
        forge.issues.add_label(number, name)


@command.command("list")
@make_state_option("open", "closed")
@click.option("-l", "--label", "labels", multiple=True, help="Only those with this label.")
@json_option
@project_option
def list_(project: Project, state: str, labels: tuple[str, ...], as_json: bool) -> None:
    """List issues, oldest first.

    An agent gets those of trusted people as they were last seen.
    """
    from sm.adapters.forge.model import IssueState

    wanted = None if state == "all" else IssueState(state)
    if agent := find_agent(project):
        found, problems = list_issues(agent, wanted, labels)
    else:
        forge = project.forge
        check_labels(forge, project, labels)
        found, problems = forge.issues.find(wanted, labels)
    if as_json:
        print_json(found)
    else:
        print_table(
            ("#", "Title", "State", "Labels", "Author"),
            [(str(i.number), i.title, i.state, ", ".join(i.labels), i.author) for i in found],
            empty="no issues like that" if labels or wanted is IssueState.CLOSED else "no issues",
        )
    end_with(problems)


@command.command()
@issue_argument
@json_option
@project_option
def show(project: Project, number: IssueId, as_json: bool) -> None:
    """Show an issue with its comments.

    To an agent it shows only what trusted people have written.
    """
    from sm.adapters.forge.model import Issue
    from sm.issues.act.forge_requests import ForgeVerb
    from sm.views.times import format_moment

    if agent := find_agent(project):
        found = ask_for(agent, ForgeVerb.ISSUE, number, Issue)
    else:
        found = project.forge.issues.read(number)
    if as_json:
        print_json(found)
        return
    say(Styled(f"{spell(found.number)} {one_line(found.title)}", bold=True))
    labels = f" · {one_line(', '.join(found.labels))}" if found.labels else ""
    say(f"{found.state} · {one_line(found.author)}, {format_moment(found.at)}{labels}")
    print_text(found.body)
    print_remarks(found.comments)


command.add_command(show, "view")  # as gh calls it


@command.command()
@issue_argument
@project_option
def reopen(project: Project, number: IssueId) -> None:
    """Open a closed issue again; with the backlog label an agent takes it up."""
    leave_to_others(project, "open it again", issue=number)
    found = project.forge.issues.reopen(number)
    say(f"reopened {spell(number)}")
    if project.settings.labels.backlog not in found.labels:
        name = f"{project.name}#{number}"
        hint = f"sm issue label {name} --add {project.settings.labels.backlog}"
        say(f"to have it worked on: {hint}", err=True)


@command.command()
@issue_argument
@project_option
def close(project: Project, number: IssueId) -> None:
    """Close an issue; its session is stopped, its pull request closed, its work kept."""
    leave_to_others(project, "close it", issue=number)
    project.forge.issues.close(number)
    say(f"closed {spell(number)}")


@command.command()
@issue_argument
@click.option("-a", "--add", "added", multiple=True, metavar="LABEL", help="Give it this label.")
@click.option("-r", "--remove", "removed", multiple=True, metavar="LABEL", help="Take it off.")
@new_option
@project_option
def label(
    project: Project,
    number: IssueId,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    new: bool,
) -> None:
    """Give an issue labels, or take them off; print the labels that it has then."""
    leave_to_others(project, "label it", issue=number)
    forge = project.forge
    check_labels(forge, project, (*added, *removed), new=new)
    _change_labels(forge, number, added, removed)
    say(one_line(", ".join(forge.issues.read(number).labels)))


def make_comment(*, on_pull: bool) -> click.Command:
    """Make the verb that comments, of `sm issue` or of `sm pr`: a forge may number them apart."""

    @click.command()
    @(number_argument if on_pull else issue_argument)
    @body_option
    @file_option
    @author_option
    @project_option
    def comment(
        project: Project,
        number: IssueId,
        body: str | None,
        file: Path | None,
        author: str | None,
    ) -> None:
        """Comment on an issue or pull request.

        On an issue whose agent has asked something, a comment is an answer. For an agent its
        session writes the comment, without well-known secrets.
        """
        from sm.issues.act.forge_requests import ForgeVerb

        text = read_text(body, file)
        if not text.strip():
            raise UsageError("the comment is empty: give it with --body or --file")
        if agent := find_agent(project):
            ask_for(agent, ForgeVerb.COMMENT, number, bool, text=text, on_pull=on_pull)
        else:
            name = find_author_name(project, author)
            forge = project.forge
            if on_pull:
                forge.pulls.comment(check_pull(number), text, author=name)
            else:
                forge.issues.comment(number, text, author=name)
        say(f"commented on {spell(number)}")

    return comment


command.add_command(make_comment(on_pull=False))


SCISSORS = "<!-- sm: the first line is the title, the rest the text; this line and all below go -->"


def edit_text(title: str = "", body: str = "") -> tuple[str, str]:
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
def keep_text(text: str) -> Iterator[None]:
    """Keep a person's text in a file, if it cannot be used or Ctrl-C ends the wait."""
    try:
        yield
    except BaseException:
        import tempfile

        handle, path = tempfile.mkstemp(prefix="sm-text-", suffix=".md")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        warn(f"what you wrote is in '{path}'")
        raise
