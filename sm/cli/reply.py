"""`sm reply`: answer an agent that waits for a person."""

from __future__ import annotations

import os

import click

from sm.base.output import say_lines
from sm.cli.agent_forge import leave_to_others
from sm.cli.arguments import issue_and_text
from sm.cli.words import list_paused, read_text
from sm.sessions.project import Project


@click.command("reply")
@click.option("--id", "ident", hidden=True, help="Answer under this id; twice is once.")
@issue_and_text
def command(project: Project, issue: int, text: tuple[str, ...], ident: str | None) -> None:
    """Answer the question that the session of ISSUE has asked.

    The agent gets TEXT as a message, and the issue gets it as a comment. '-' reads it from standard
    input. An agent may not answer its own questions; that of another session answers in its name.
    """
    say_lines(answer(project, issue, read_text(text), ident))


def answer(project: Project, issue: int, text: str, ident: str | None = None) -> list[str]:
    """Give the answer to the session; return what is said about it.

    One that the session has had under this `ident` is not given again.

    Raises:
        SmError: it is refused.

    """
    from sm.issues.reply import reply
    from sm.sessions import registry
    from sm.sessions.caller import identify
    from sm.sessions.project import find_person
    from sm.store.paths import check_name

    leave_to_others(project, "answer its questions", issue=issue)
    session = registry.load_for(project, issue)
    caller = identify(project.root, os.environ).session
    author = caller.address if caller else find_person()
    key = check_name(ident, "id") if ident else None
    if not reply(project, issue, author, text, by_session=caller is not None, key=key):
        return [f"answered #{issue} already: the same answer was taken before, and not given again"]
    told = f"answered #{issue}: the agent gets it as soon as it can be typed"
    return [told, *list_paused(session)]
