"""`sm reply`: answer an agent that waits for a person."""

from __future__ import annotations

import os

import click

from sm.acts.permission import leave_to_others
from sm.base.issue_id import IssueId
from sm.base.output import say_lines
from sm.cli.arguments import issue_and_text
from sm.cli.words import read_text
from sm.sessions.project import Project


@click.command("reply")
@click.option("--id", "ident", hidden=True, help="Answer under this id; twice is once.")
@issue_and_text
def command(project: Project, issue: IssueId, text: tuple[str, ...], ident: str | None) -> None:
    """Answer the question that the session of ISSUE has asked.

    The agent gets TEXT as a message, and the issue gets it as a comment. '-' reads it from standard
    input. An agent may not answer its own questions; that of another session answers in its name.
    """
    from sm.acts.execution import answer
    from sm.sessions.caller import identify

    leave_to_others(project, "answer its questions", issue=issue)
    caller = identify(project.root, os.environ)
    say_lines(answer(project, issue, read_text(text), caller, ident))
