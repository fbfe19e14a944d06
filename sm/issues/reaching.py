"""Access to sessions elsewhere: finds them, and runs commands on their nodes."""

from __future__ import annotations

from collections.abc import Sequence

from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.text import one_line
from sm.config.schema import Config
from sm.issues import awaited
from sm.issues.placements import read_placement, read_seen
from sm.issues.runners import Answer, NoAnswerError, Placement, Runner, Standing, list_runners
from sm.issues.runners import Elsewhere as Elsewhere
from sm.sessions.address import OF_ISSUE
from sm.sessions.caller import Caller
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.paths import name_session, prefix_sessions

TEXT_LIMIT = 2000
"""Greatest number of characters of a node's line about a failure."""


def find_elsewhere(config: Config, text: str) -> Elsewhere | None:
    """Return the session elsewhere that `text` means: `PROJECT#ISSUE`, or its id."""
    meant = find_issue(config, text)
    return find_for(*meant) if meant else None


def find_issue(config: Config, text: str) -> tuple[Project, int] | None:
    """Return the issue that `text` means: `PROJECT#ISSUE`, or the id of its session."""
    wanted = OF_ISSUE.fullmatch(text)
    if wanted:
        settings = config.project(wanted[1])
        return (Project(config, settings), int(wanted[2])) if settings else None
    for settings in config.projects:
        head = prefix_sessions(settings.name)
        number = text.removeprefix(head)
        if text.startswith(head) and number.isascii() and number.isdecimal() and len(number) < 10:
            return Project(config, settings), int(number)
    return None


def find_for(project: Project, issue: int) -> Elsewhere | None:
    """Return the session elsewhere that works on the issue; None if there is none."""
    placement = read_placement(project.root.project(project.name), issue)
    return Elsewhere(project, placement) if placement else None


def find_past(project: Project, issue: int) -> Elsewhere | None:
    """Return where the last session of the issue, which is over, was, if that was elsewhere.

    Its node still has the journal, as long as that is kept there.
    """
    session, last = name_session(project.name, issue), None
    if project.root.session(session).identity.exists() or find_for(project, issue):
        return None
    for event in journal.read(project.root.journal, session):
        if isinstance(event, events.Placed):
            last = event
        elif isinstance(event, events.Claimed | events.Started):
            last = None
    if last is None:
        return None
    runner = last.runner or next(iter(list_runners(project.settings)), "")
    placement = Placement(project.name, issue, session, runner, last.host, last.attempt, "")
    return Elsewhere(project, placement)


def call(
    there: Elsewhere,
    runner: Runner,
    argv: Sequence[str],
    stdin: str = "",
    patience_s: float | None = None,
) -> Answer:
    """Run the node's own `sm` with these arguments.

    Raises:
        TemporaryError: the node does not answer; the text says if it may have been done.

    """
    try:
        return runner.call(there.project, there.placement, argv, stdin, patience_s=patience_s)
    except NoAnswerError as error:
        if not error.sent:
            raise
        doubt = f"{error.message}; it may be done all the same: look before you say it again"
        raise NoAnswerError(doubt, sent=True) from error


def is_lost(there: Elsewhere) -> bool:
    """Whether the last tick has found the host lost, so that nobody need wait for it."""
    seen = read_seen(there.project.directory).get(there.placement.session)
    return seen is not None and seen.standing is Standing.LOST


def await_turn(there: Elsewhere, ident: str, caller: Caller) -> None:
    """Let the calling session know when the turn ends in which that message arrives there.

    Raises:
        UsageError: a person has called.
        StateError: it cannot be recorded.

    """
    if caller.session is None:
        raise UsageError("--notify-on-stop tells a session: a person waits with 'sm wait'")
    one = awaited.Awaited(ident, there.placement.session, caller.name)
    awaited.add(there.project.directory, one)


def forget_turn(there: Elsewhere, ident: str) -> None:
    """Remove the wait for a message that was refused: nothing comes of it."""
    awaited.remove(there.project.directory, ident)


def name_there(there: Elsewhere) -> str:
    """Return what people call the session."""
    return f"{there.placement.project}#{there.placement.issue}"


def explain(there: Elsewhere) -> str:
    """Say where a session runs."""
    return f"'{name_there(there)}' runs on '{there.placement.host}'"


def explain_failure(answer: Answer) -> SmError:
    """Return the error that the node's `sm` has reported."""
    lines = [one_line(line, TEXT_LIMIT) for line in answer.stderr.splitlines() if line.strip()]
    said = lines[-1].removeprefix("sm: ") if lines else f"it ended with {answer.code} there"
    kind = TemporaryError if answer.code == TemporaryError.exit_code else SmError
    return kind(said)
