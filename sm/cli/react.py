"""`sm react`: called by the monitor."""

from __future__ import annotations

import click

from sm.cli.options import ISSUE, Invocation, find_project, load_config
from sm.errors import UsageError


@click.command("react", help="React to what has happened in one session.")
@click.argument("words", metavar="SESSION | PROJECT ISSUE", nargs=-1, required=True)
@click.pass_context
def command(click_context: click.Context, words: tuple[str, ...]) -> None:
    """One pass of the reactor; a session that is gone is no error."""
    if len(words) == 1:
        _by_record(click_context, words[0])
    elif len(words) == 2 and ISSUE.fullmatch(words[1]):
        _by_issue(click_context, words[0], int(words[1]))
    else:
        raise UsageError("expected a session, or a project and an issue")


def _by_record(click_context: click.Context, name: str) -> None:
    """As what the session is on record decides. The monitor names the state root."""
    from sm.session import registry
    from sm.session.registry import AdHocSession
    from sm.store.rootcheck import check_root

    session = registry.find(check_root(click_context.ensure_object(Invocation).root), name)
    if isinstance(session, AdHocSession):
        from sm.workflow.tend import tend

        tend(session)
    elif session:
        from sm.workflow.host import context_of
        from sm.workflow.reactor import react

        react(context_of(session), name)


def _by_issue(click_context: click.Context, project: str, issue: int) -> None:
    from sm.store.paths import session_name
    from sm.workflow.context import Context
    from sm.workflow.reactor import react

    config = load_config(click_context)
    react(Context(config, find_project(config, project)), session_name(project, issue))
