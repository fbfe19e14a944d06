"""`sm kill`: end a session by hand, or all of them."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from sm.base.errors import SmError, UsageError
from sm.base.issue_id import IssueId
from sm.base.output import confirm, say, warn
from sm.cli.arguments import find_place
from sm.cli.options import load_machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sm.sessions.project import Project
    from sm.sessions.session import AnySession
    from sm.store.paths import Root


def _find_place(
    ctx: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> AnySession | tuple[Project, IssueId] | None:
    return find_place(ctx, param, words) if words else None


@click.command("kill")
@click.option("--all", "everything", is_flag=True, help="End every session; asks first.")
@click.option("--block", is_flag=True, help="With --all: label each issue blocked.")
@click.option("--yes", "-y", is_flag=True, help="With --all: do not ask.")
@click.argument("place", metavar="TARGET | PROJECT ISSUE", callback=_find_place, nargs=-1)
@click.pass_context
def command(
    click_context: click.Context,
    place: AnySession | tuple[Project, IssueId] | None,
    everything: bool,
    block: bool,
    yes: bool,
) -> None:
    """End a session: by id, name or PROJECT#ISSUE, or the one of PROJECT ISSUE.

    If it works on an issue, the issue is labelled blocked, unless it is merged or closed by then.
    Uncommitted and unpushed work stays in the worktree, pushed work on its branch, and the pull
    request stays as it is. It prints the command by which the issue is worked on again.

    If sm new has begun it, its agent ends and its record is removed. What its terminal showed is
    kept for a while, as for any session: sm logs ID.

    --all ends every session, after it has listed them and asked once. If any works on an issue, the
    issues go back to the backlog, and everything is paused, so that nothing is taken up again until
    you say sm resume. With --block they are labelled blocked instead, and nothing is paused.

    A session may end only itself and those that it has begun.
    """
    if everything and place is None:
        _end_all(load_machine(click_context).root, block=block, yes=yes)
        return
    if everything or place is None:
        raise UsageError("name one session, or end all of them with --all")
    if block or yes:
        raise UsageError("'--block' and '--yes' belong to '--all'")
    _print_all(_end(place))


def _print_all(lines: Iterator[str]) -> None:
    """Print what is done line by line: it is done as the next line is asked for."""
    # A session that ends itself ends the terminal that this runs in.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for line in lines:
            say(line)
    finally:
        signal.signal(signal.SIGHUP, before)


def _end(place: AnySession | tuple[Project, IssueId]) -> Iterator[str]:
    from sm.acts.execution import end
    from sm.sessions import registry
    from sm.sessions.caller import identify

    session = registry.load_for(*place) if isinstance(place, tuple) else place
    yield from end(session, identify(session.root, os.environ))


# All of them


def _end_all(root: Root, *, block: bool, yes: bool) -> None:
    from sm.sessions import registry
    from sm.sessions.caller import identify
    from sm.sessions.session import IssueSession

    if agent := identify(root, os.environ).session:
        raise UsageError(f"this is the session '{agent.label}': a person ends all sessions")
    sessions = registry.list_all(root)
    if not sessions:
        say("there is no session")
        return
    pauses = not block and any(isinstance(one, IssueSession) for one in sessions)
    if not yes:
        _ask(sessions, block=block, pauses=pauses)
    if pauses:
        _pause_everything(root)
    failed = 0
    for session in sessions:
        try:
            _print_all(_end_one(session, block=block))
        except SmError as error:
            failed += 1
            warn(f"'{session.address}' is not ended: {error.message}")
    if pauses:
        say("everything is paused, so that nothing is taken up again: sm resume")
    if failed:
        raise SmError("some sessions are still there: mend that, then call this again")


def _ask(sessions: list[AnySession], *, block: bool, pauses: bool) -> None:
    """Have a person agree.

    Raises:
        UsageError: there is nobody to ask.
        SmError: the person does not.

    """
    from sm.sessions.session import IssueSession

    if not sys.stdin.isatty():
        raise UsageError("it asks before it ends all sessions: in a script add --yes")
    for session in sessions:
        title = f" {session.record.title}" if isinstance(session, IssueSession) else ""
        say(f"to be ended: {session.address}{title}")
    more = ", and label their issues blocked" if block else ", and pause everything" * pauses
    if not confirm(f"end all of them{more}?", default=False):
        raise SmError("nothing was changed")


def _pause_everything(root: Root) -> None:
    from sm.messages import suspension
    from sm.sessions.caller import Caller
    from sm.sessions.pause import EVERYTHING

    by = suspension.name_caller(root, Caller(), [EVERYTHING])
    suspension.begin(root, [EVERYTHING], by, "sm kill --all")


def _end_one(session: AnySession, *, block: bool) -> Iterator[str]:
    from sm.issues.by_hand import give_back
    from sm.sessions.session import AdHocSession

    if block or isinstance(session, AdHocSession):
        yield from _end(session)
    else:
        yield from give_back(session.project, session.issue)
