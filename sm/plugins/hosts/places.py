"""Sessions on other hosts, as the core knows them: what a tick has placed, and where each is.

Loaded by each tick and each look at a project: all else is imported where something runs elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sm.base.issue_id import IssueId
from sm.issues import placements, runners
from sm.sessions.project import Project
from sm.store.files import list_names
from sm.store.paths import name_session

if TYPE_CHECKING:
    from sm.base.errors import SmError
    from sm.issues.dispatch import Away
    from sm.issues.look.snapshot import Snapshot
    from sm.plugins.hosts.there import There
    from sm.views.open_need import OpenNeed
    from sm.views.place import ReadRows


def has_any(project: Project) -> bool:
    """Whether any session of the project is on record elsewhere."""
    return bool(list_names(project.root.project(project.name).placements))


class HostDispatcher:
    """`Dispatcher` of sm/issues/dispatch.py."""

    def survey(self, project: Project, seen: Snapshot, *, hears_wishes: bool) -> Away | None:
        """Return the project's work elsewhere; None if it has none, and names no runner."""
        if not has_any(project) and not runners.list_runners(project.settings):
            return None
        from sm.plugins.hosts.dispatch.survey import survey
        from sm.plugins.hosts.dispatch.tick import Round

        found = survey(project, seen, hears_wishes=hears_wishes)
        return Round(found) if found else None


class HostPlaces:
    """`Places` of sm/views/place.py."""

    def find(self, project: Project, issue: IssueId) -> There | None:
        """Find the session elsewhere that works on the issue."""
        if not has_any(project):
            return None
        directory = project.root.project(project.name)
        placement = placements.read_placement(directory, issue)
        return _make_there(project, placement) if placement else None

    def find_past(self, project: Project, issue: IssueId) -> There | None:
        """Find where the last session of the issue was, which is over, if it was elsewhere.

        Its node still has the journal, as long as that is kept there.
        """
        from sm.store import events, journal

        session, last = name_session(project.name, issue), None
        if project.root.session(session).identity.exists() or self.find(project, issue):
            return None
        for event in journal.read(project.root.journal, session):
            if isinstance(event, events.Placed):
                last = event
            elif isinstance(event, events.Claimed | events.Started):
                last = None
        if last is None:
            return None
        runner = last.runner or next(iter(runners.list_runners(project.settings)), "")
        placed = runners.Placement(
            project.name, issue, session, runner, last.host, last.attempt, claim=""
        )
        return _make_there(project, placed)

    def list_issues(self, project: Project) -> set[IssueId]:
        """Return the issues that are worked on elsewhere."""
        if not has_any(project):
            return set()
        directory = project.root.project(project.name)
        return {one.issue for one in placements.list_placements(directory)}

    def begin_rows(self, project: Project) -> ReadRows:
        """Ask the hosts for the rows of the project's sessions."""
        if not has_any(project):
            return lambda now, known, report: []
        from sm.plugins.hosts.rows import begin_rows

        return begin_rows(project)

    def list_needs(self, project: Project) -> Iterator[OpenNeed]:
        """Yield what keeps hosts from sessions, or sessions from messages, by files alone."""
        lost = project.root.project(project.name).lost_messages
        if lost.exists() or has_any(project) or runners.list_runners(project.settings):
            from sm.plugins.hosts.host_needs import list_host_needs

            yield from list_host_needs(project)

    def tell_all(self, project: Project, argv: Sequence[str]) -> Iterator[str | SmError]:
        """Run `sm` on each node with sessions of the project; yield its words, or why not."""
        if has_any(project):
            from sm.plugins.hosts.there import tell_nodes

            yield from tell_nodes(project, argv)


def _make_there(project: Project, placement: runners.Placement) -> There:
    from sm.plugins.hosts.there import There

    return There(project, placement)


DISPATCHER = HostDispatcher()
PLACES = HostPlaces()
