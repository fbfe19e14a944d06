"""Page of an ended session: its story, figures, and what leads on from there."""

from __future__ import annotations

import contextlib

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.issue_id import IssueId, read_part
from sm.base.redact import redact
from sm.base.text import printable
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.errors import GoneError
from sm.plugins.page.session_parts import ShownStory, shorten
from sm.sessions import terminal
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.paths import Root, check_name, prefix_sessions
from sm.views import logs
from sm.views.figures import Subject, tell_figures
from sm.views.trace import read_story_of, sum_up

SCREEN_LINES = 60
"""Lines of its terminal that are shown."""


class EndedSession(Struct, frozen=True):
    """Facts about an ended session. `outcome` is a sentence; a link is '' where there is none."""

    name: str
    title: str
    outcome: str
    told: ShownStory
    figures: tuple[str, ...] = ()
    issue_link: str = ""
    pull: int = 0
    pull_link: str = ""
    has_log: bool = False


def read_ended(looks: BoardReader, ident: str) -> EndedSession:
    """Read what is left of the session of that id.

    Raises:
        GoneError: nothing is known of it.

    """
    root = looks.machine.root
    try:
        story = read_story_of(root, check_name(ident, "session"), ident)
    except SmError as error:
        raise GoneError("there is no such session any more") from error
    title, pull = _find_facts(root, ident)
    project, issue = _find_issue(looks, ident)
    settings = project.settings if project else None
    return EndedSession(
        name=f"{project.name}#{issue}" if project else ident,
        title=title,
        outcome=sum_up(story.summary),
        told=shorten(story),
        figures=tuple(tell_figures(looks.machine.settings, Subject(ident))),
        issue_link=settings.link_issue(issue) if settings else "",
        pull=pull,
        pull_link=settings.forge.link_pull(pull) if settings and pull else "",
        has_log=bool(terminal.list_kept_logs(root, ident)),
    )


def _find_facts(root: Root, ident: str) -> tuple[str, int]:
    """Find its title, and the number of its pull request, 0 for none."""
    title, pull = "", 0
    for event in journal.read(root.journal, ident):
        match event:
            case events.Started():
                title = event.title or title
            case events.StepDone(verb=StepVerb.OPEN_PULL) if event.result[1:].isdecimal():
                pull = int(event.result[1:])  # the forge's name for it, such as #24
    return title, pull


def _find_issue(looks: BoardReader, ident: str) -> tuple[Project | None, IssueId]:
    """Find the project and the issue that it worked on; None and 0 for neither."""
    with contextlib.suppress(SmError):  # the configuration cannot be used any more
        for project in looks.list_projects():
            part = ident.removeprefix(prefix_sessions(project.name))
            if part != ident and (issue := read_part(part)):
                return project, issue
    return None, 0


def read_screen(root: Root, ident: str) -> str:
    """Return the last lines that its terminal has shown.

    Raises:
        SmError: its log is not kept any more.

    """
    path = logs.find_kept_file(root, check_name(ident, "session"))
    try:
        shown = logs.read_shown_lines(path, SCREEN_LINES, end=path.stat().st_size)
    except FileNotFoundError as error:  # removed between the two looks
        raise GoneError("its terminal log is not kept any more") from error
    return printable(redact(shown))
