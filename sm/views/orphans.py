"""Sessions of projects that were taken out of the configuration: dev-poll passes them over."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sm.base.act import run
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.text import format_count
from sm.sessions import registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import OF_ISSUES, prefix_sessions
from sm.views.open_need import OpenNeed


def list_orphans(
    machine: Machine, projects: Iterable[Project]
) -> dict[str, tuple[IssueSession, ...]]:
    """Return the orphans by project. `projects` are all that the configuration has now.

    Sessions of another configuration, which may share the state root, are not orphans.
    """
    if machine.source is None:
        return {}
    known = tuple(prefix_sessions(one.name) for one in projects)
    names = registry.list_session_names(machine.root)
    strangers = [one for one in names if one.startswith(OF_ISSUES) and not one.startswith(known)]
    found: dict[str, tuple[IssueSession, ...]] = {}
    for name in strangers:
        try:
            session = registry.find(machine.root, name)
        except SmError:  # a damaged record does not say whose it is
            continue
        if isinstance(session, IssueSession) and session.record.config == machine.source:
            project = session.project_name
            found[project] = (*found.get(project, ()), session)
    return found


def make_orphans_need(project: str, sessions: Collection[IssueSession]) -> OpenNeed:
    """Return what the sessions of such a project need a person for."""
    count = format_count(len(sessions), "session")
    named = ", ".join(one.address for one in sessions)
    return OpenNeed(
        key=f"{project}:orphans",
        kind=NeedKind.MACHINE,
        project=project,
        text=f"Nobody looks after {count} ({named}): the project is not in the configuration",
        act=run("sm config check"),
    )
