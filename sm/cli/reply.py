"""`sm reply`: answer an agent that waits for a person."""

from __future__ import annotations

import click

from sm.base.output import say
from sm.cli.agent_forge import leave_to_others
from sm.cli.arguments import issue_and_text
from sm.cli.words import read_text, tell_paused
from sm.sessions.project import Project


@click.command("reply")
@issue_and_text
def command(project: Project, issue: int, text: tuple[str, ...]) -> None:
    """Answer the question that the session of ISSUE has asked.

    The agent gets TEXT as a message, and the issue gets it as a comment. '-' reads it from standard
    input. An agent may not answer its own questions.
    """
    from sm.issues.reply import reply
    from sm.sessions import registry
    from sm.sessions.project import find_person

    leave_to_others(project, "answer its questions", issue=issue)
    session = registry.load_for(project, issue)
    reply(project, issue, find_person(), read_text(text))
    say(f"answered #{issue}: the agent gets it as soon as it can be typed")
    tell_paused(session)
