"""Everything that waits for a person, for `sm needs`, `sm status`, HTTP and `dev-poll`.

Everything is read from files: no forge is asked.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

from sm.adapters.forge.model import IssueState
from sm.base.act import ASK_DOCTOR, LOOK_AT_STATUS, run
from sm.base.errors import SmError
from sm.base.issue_id import rank
from sm.base.need import NeedKind
from sm.base.text import format_count, one_line
from sm.issues.act.unblock import offer_unblock
from sm.issues.look.backlog import list_ready
from sm.issues.look.room import list_shortages
from sm.issues.look.snapshot import Snapshot, find_longest_interval
from sm.issues.look.tick_record import MISSED, TickSilence, read_polled
from sm.issues.meters import OF_ACCOUNT, find_objection
from sm.issues.rules.needs import KINDS
from sm.sessions import registry
from sm.sessions.history import StepVerb
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, journal
from sm.store.paths import OF_ISSUES, Root, name_session, prefix_sessions
from sm.views import family
from sm.views.open_need import OpenNeed, list_account_needs
from sm.views.place import begin_remote_rows, list_remote_issues, list_remote_needs
from sm.views.poll_absence import find_missed
from sm.views.records import read_or
from sm.views.session import NOTHING_SEEN, make_rows, read_last_look
from sm.views.session_row import SessionRow
from sm.views.trace import OUTCOMES

OF_THE_MACHINE = (NeedKind.MACHINE, NeedKind.POLL)
"""Needs that hold everything else up."""


def list_needs(project: Project, now: float | None = None) -> list[OpenNeed]:
    """List what the project needs a person for: first what holds all up, then what waits longest.

    What cannot be read is left out; `sm status` names it.
    """
    now = time.time() if now is None else now
    sessions = registry.list_for(project, _pass_over)
    known = read_or(_pass_over, lambda: read_last_look(project), NOTHING_SEEN)
    rows = make_rows(project, now, sessions, known)
    silence = read_or(_pass_over, lambda: find_missed(project, sessions, known), None)
    rows += begin_remote_rows(project)(now, known, _pass_over)
    return collect_needs(project, now, rows, sessions, known, silence)


def list_all_needs(projects: Iterable[Project], now: float | None = None) -> list[OpenNeed]:
    """List the needs of all these projects, each once."""
    return sort_needs(need for project in projects for need in list_needs(project, now))


def list_machine_needs(machine: Machine, projects: Collection[Project]) -> list[OpenNeed]:
    """List every need that is known on the machine, of all `projects` of the configuration."""
    orphans = list_orphans(machine, projects)
    return sort_needs(
        (
            *list_all_needs(projects),
            *list_own_needs(machine.root),
            *(make_orphans_need(project, sessions) for project, sessions in orphans.items()),
        )
    )


def list_own_needs(root: Root) -> list[OpenNeed]:
    """List the needs of the accounts, and of the sessions that work on no issue."""
    own = (one.need for one in family.list_ad_hoc(root) if one.need)
    return sort_needs((*own, *list_account_needs(root)))


def collect_needs(
    project: Project,
    now: float,
    rows: Iterable[SessionRow],
    sessions: list[IssueSession],
    known: Snapshot,
    silence: TickSilence | None,
) -> list[OpenNeed]:
    """List the needs of these rows of the project's sessions, and of all else known of it.

    `silence` is how long no dev-poll has run that should have.
    """
    return sort_needs(
        (
            *_list_short(project),
            *list_account_needs(project.root),
            *list_remote_needs(project),
            *_list_stopped(project, silence),
            *(() if silence else _list_unread(project, now, known)),
            *(row.need for row in rows if row.need),
            *_list_over_budget(project, now, sessions, known),
            *_list_blocked(project, sessions, known),
        )
    )


def sort_needs(needs: Iterable[OpenNeed]) -> list[OpenNeed]:
    """Return each need once, in the order in which they are shown."""

    def order(need: OpenNeed) -> tuple[bool, float, str, tuple[str, int]]:
        since = need.since or float("inf")
        return need.kind not in OF_THE_MACHINE, since, need.project, rank(need.issue)

    return sorted({need.key: need for need in needs}.values(), key=order)


def _pass_over(_: SmError) -> None:
    """Leave out what cannot be read."""


# The machine and dev-poll


def _list_short(project: Project) -> Iterator[OpenNeed]:
    """Yield what the machine lacks: nothing new is taken up meanwhile."""
    for short in list_shortages(project):
        yield OpenNeed(
            key=f"machine:{short.key}",
            kind=NeedKind.MACHINE,
            since=short.since,
            text=f"{short.text}: nothing new is taken up",
            act=run(short.command),
        )


def _list_stopped(project: Project, silence: TickSilence | None) -> Iterator[OpenNeed]:
    if silence:
        yield OpenNeed(
            key=f"{project.name}:{NeedKind.POLL}",
            kind=NeedKind.POLL,
            project=project.name,
            since=silence.since,
            text="No dev-poll runs: nothing is taken up or restarted",
            act=run("dev-poll --loop"),
        )


def _list_unread(project: Project, now: float, known: Snapshot) -> Iterator[OpenNeed]:
    """Yield a need for a forge that dev-poll cannot read: it is gone, or does not let us in."""
    last = read_polled(project.root.project(project.name))
    patience_s = MISSED * find_longest_interval(project.settings)
    if last and last.error and known.taken_at and now > known.taken_at + patience_s:
        yield OpenNeed(
            key=f"{project.name}:{NeedKind.REFUSED}",
            kind=NeedKind.REFUSED,
            project=project.name,
            since=known.taken_at,
            text=one_line(f"dev-poll fails at each tick: {last.error}"),
            act=ASK_DOCTOR,
        )


def _list_over_budget(
    project: Project, now: float, sessions: list[IssueSession], known: Snapshot
) -> Iterator[OpenNeed]:
    """Yield what keeps ready issues from being taken up until a person decides."""
    at_work = {session.issue for session in sessions} | list_remote_issues(project)
    if not any(one.number not in at_work for one in list_ready(project, known)):
        return
    limit = find_objection(project)
    if limit and limit.until is None and not limit.matter.startswith(OF_ACCOUNT):
        yield OpenNeed(
            key=f"{project.name}:{NeedKind.BUDGET}:{limit.matter}",
            kind=NeedKind.BUDGET,
            project=project.name,
            text=one_line(f"{limit.shown}: nothing new is taken up"),
            act=limit.act or LOOK_AT_STATUS,
        )


# Blocked issues


def _list_blocked(
    project: Project, sessions: list[IssueSession], known: Snapshot
) -> Iterator[OpenNeed]:
    """Yield open issues with the blocked label that no session works on, with the known reason.

    A person may have set the label, and the journal may not go back so far.
    """
    at_work = {session.issue for session in sessions} | list_remote_issues(project)
    blocked = {
        name_session(project.name, issue.number): issue
        for issue in known.issues
        if issue.state is IssueState.OPEN
        and project.settings.labels.blocked in issue.labels
        and issue.number not in at_work
    }
    if not blocked:
        return
    ended = journal.find_latest(project.root.journal, blocked.keys(), str(StepVerb.FORGET))
    for name, issue in blocked.items():
        event = ended.get(name)
        row = event.row if isinstance(event, events.StepDone) else ""
        kind = KINDS.get(row, NeedKind.BLOCKED)
        why = OUTCOMES.get(row, "") if row in KINDS else ""
        yield OpenNeed(
            key=f"{name}:{kind}:{event.at if event else 0:.0f}",
            kind=kind,
            project=project.name,
            issue=issue.number,
            name=f"{project.name}#{issue.number}",
            title=issue.title,
            since=event.at if event else 0.0,
            text=f"The issue is blocked ({why})" if why else "The issue is blocked",
            act=offer_unblock(project.settings, issue.number),
            link=project.settings.link_issue(issue.number),
        )


# Sessions of projects that were taken out of the configuration: dev-poll passes them over


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
