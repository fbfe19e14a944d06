"""Project at a glance: its sessions, what is next, what waits, and what a person should know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from sm.adapters.forge.model import Issue, IssueState, PullState
from sm.adapters.tmux import Tmux
from sm.base.errors import SmError
from sm.base.issue_id import IssueId, rank, spell
from sm.base.text import one_line
from sm.config.schema import MachineSettings
from sm.issues import meters
from sm.issues.act.unblock import spell_unblock
from sm.issues.look import backlog
from sm.issues.look.backlog import explain_circle, find_circle, list_blockers
from sm.issues.look.snapshot import Snapshot
from sm.issues.look.tick_record import TickSilence
from sm.issues.work import claim, kept_worktrees
from sm.sessions import pause, registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.paths import Root
from sm.views import family
from sm.views.family import People, find_people, look_near
from sm.views.figures import NO_FIGURES, OfSession, Subject, read_figures
from sm.views.needs import collect_needs, list_orphans, make_orphans_need, sort_needs
from sm.views.open_need import OpenNeed, list_account_needs
from sm.views.place import begin_remote_rows, list_remote_issues
from sm.views.poll_absence import START, find_missed, find_silence, word_silence
from sm.views.records import read_or
from sm.views.session import NOTHING_SEEN, make_row, make_rows, read_last_look
from sm.views.session_row import AD_HOC, SessionRow, tell, tell_status

RowMaker = Callable[[Project, float, list[IssueSession], Snapshot, People], Sequence[SessionRow]]
"""Function that makes the rows of a project's sessions."""
NAMED = 3
"""Greatest number of worktrees that a hint names."""
LOOK_S = 60.0
"""Seconds after the last tick from which a look at the forge was another program's."""
RECENT_S = 24 * 3600
"""Age up to which a merge is news, in seconds."""


class WaitingIssue(Struct, frozen=True):
    """Open issue that no session here works on; `why` says why it is not ready, '' if it is."""

    issue: IssueId
    title: str
    why: str = ""

    @property
    def ready(self) -> bool:
        """Whether the next tick may pick it up."""
        return not self.why


class KeptWorktree(Struct, frozen=True):
    """Worktree that was kept when its session ended."""

    issue: IssueId
    worktree: str


class MergedPull(Struct, frozen=True):
    """Pull request that was merged `age_s` seconds ago; `issue` is 0 if it belongs to none."""

    issue: IssueId
    pull: int
    title: str
    age_s: float


class Objection(Struct, frozen=True):
    """Limit that keeps issues from being begun now, and what is used of it.

    `until` is when it ends by itself, in seconds since 1970, 0 if a person has to decide. `told`
    says both in words.
    """

    shown: str
    until: float
    told: str


class Overview(Struct, frozen=True):
    """Overview of a project; `seen_at` is the last look at the forge, in seconds since 1970, or 0.

    `needs` is what waits for a person. `ad_hoc` are sessions of no project. `unlisted` are open
    issues that no session works on and that lack the label `backlog`, by which an issue is taken
    up. `merged` are the pull requests that were merged within the last day, the latest first.
    `silent_s` is how long no dev-poll has run although something waits for one, 0 otherwise.
    `paused` says what is paused, since when, and how it goes on. `objection` is the limit that
    keeps issues from being begun, None if none does. Without `configured` there are sessions, but
    the configuration lacks the project.
    """

    project: str
    seen_at: float
    needs: tuple[OpenNeed, ...] = ()
    sessions: tuple[SessionRow, ...] = ()
    waiting: tuple[WaitingIssue, ...] = ()
    merged: tuple[MergedPull, ...] = ()
    kept: tuple[KeptWorktree, ...] = ()
    problems: tuple[str, ...] = ()
    hint: str = ""
    ad_hoc: tuple[SessionRow, ...] = ()
    unlisted: tuple[IssueId, ...] = ()
    backlog: str = ""
    silent_s: float = 0.0
    paused: tuple[str, ...] = ()
    objection: Objection | None = None
    configured: bool = True


def tell_overview(one: Overview, now: float) -> dict[str, Any]:
    """Return what `sm status --json` has of a project at the moment `now`."""
    return structs.asdict(one) | {
        "sessions": [tell_status(row, now) for row in one.sessions],
        "ad_hoc": [tell(row, AD_HOC, now) for row in one.ad_hoc],
    }


def read_sessions_without_project(
    root: Root,
    tmux: Tmux | None = None,
    settings: MachineSettings | None = None,
    *,
    near: bool = False,
) -> Overview | None:
    """Return the sessions that work for no project, under the name ''; None if there are none.

    They have figures if the machine's `settings` are given. `near` is as for `read_all`.
    """
    found = family.list_ad_hoc(root, tmux, near=near)
    if not found:
        return None
    # A reading that fails is a problem of the projects, which read the same.
    rows = _add_figures(settings, found, lambda _: None) if settings else tuple(found)
    own = (one.need for one in rows if one.need)
    needs = tuple(sort_needs((*own, *list_account_needs(root))))
    paused = _list_paused(root, "", [one.id for one in rows])
    return Overview(project="", seen_at=0.0, needs=needs, ad_hoc=rows, paused=paused)


def read_orphans(
    machine: Machine, projects: Iterable[Project], now: float, *, near: bool = False
) -> list[Overview]:
    """Return an overview of each project with sessions that is no longer in the configuration.

    `projects` are all that are in it. Without its configuration, the state of its sessions is
    unknown. `near` is as for `read_all`.
    """
    found = list[Overview]()
    for name, sessions in list_orphans(machine, projects).items():
        rows = [make_row(now, session) for session in sessions]
        if near:
            rows = [look_near(row, one) for row, one in zip(rows, sessions, strict=True)]
        found.append(
            Overview(
                project=name,
                seen_at=0.0,
                needs=(make_orphans_need(name, sessions),),
                sessions=_add_figures(machine.settings, rows, lambda _: None),
                configured=False,
            )
        )
    return found


def read_all(
    machine: Machine,
    projects: Collection[Project],
    now: float,
    make: RowMaker = make_rows,
    *,
    near: bool = False,
) -> list[Overview]:
    """Read every project, those that were taken out, and the sessions without a project.

    `projects` are all that the configuration has, and `make` is as for `read_overview`. `near` is
    for a board: contexts and last words, which `make` adds to its rows, and no kept worktrees.
    """
    seen = [read_overview(project, now, make, with_kept=not near) for project in projects]
    others = read_sessions_without_project(machine.root, machine.tmux, machine.settings, near=near)
    orphans = read_orphans(machine, projects, now, near=near)
    return [*seen, *orphans, *([others] if others else [])]


def _add_figures(
    settings: MachineSettings, rows: Iterable[SessionRow], report: Callable[[SmError], None]
) -> tuple[SessionRow, ...]:
    listed = list(rows)
    figures = read_figures(
        settings, [Subject(one.id, one.project, one.issue) for one in listed], report
    )
    return tuple(_put_figures(row, figures.get(row.id)) for row in listed)


def _put_figures(row: SessionRow, found: OfSession | None) -> SessionRow:
    """Return the row with these figures; one that has them stays the same object."""
    if found is None:
        found = row.figures if row.host else NO_FIGURES  # of a host, what its own `sm` has said
    return row if row.figures == found else structs.replace(row, figures=found)


def _list_paused(root: Root, project: str, sessions: Iterable[str]) -> tuple[str, ...]:
    """List the pauses of the project or of one of these sessions."""
    ids = ("", *sessions)
    found = (one for one in pause.read(root).pauses if any(one.covers(project, i) for i in ids))
    return tuple(one.sentence for one in found)


def read_overview(
    project: Project, now: float, make: RowMaker = make_rows, *, with_kept: bool = True
) -> Overview:
    """Read the project as it is on disk; whatever cannot be read is among the problems.

    `make` makes the rows, for a caller that looks again and again. git is asked for the worktrees
    that were kept, and for nothing else.
    """
    problems: list[str] = []

    def report(error: SmError) -> None:
        problems.append(error.message)

    read_remote = begin_remote_rows(project)
    sessions = registry.list_for(project, report)
    known = read_or(report, lambda: read_last_look(project), NOTHING_SEEN)
    problems.extend(known.problems)
    kept = dict[IssueId, str]()
    if with_kept:
        kept = read_or(report, lambda: kept_worktrees.list_kept(project, sessions), kept)
    at_work = {one.issue for one in sessions} | list_remote_issues(project)
    waits = tuple(_list_waiting(project, at_work, known))
    rows = [
        *make(project, now, sessions, known, find_people(project.tmux, sessions, now)),
        *read_remote(now, known, report),
    ]
    silence = read_or(report, lambda: find_missed(project, sessions, known), None)
    shown = _add_figures(project.config, rows, report)
    return Overview(
        project=project.name,
        seen_at=known.taken_at,
        needs=tuple(collect_needs(project, now, rows, sessions, known, silence)),
        sessions=shown,
        waiting=waits,
        merged=tuple(_list_merged(project, known, now)),
        kept=tuple(KeptWorktree(issue, path) for issue, path in kept.items()),
        problems=tuple(problems),
        unlisted=tuple(one.number for one in _idle(at_work, known) if not _is_listed(project, one)),
        backlog=project.settings.labels.backlog,
        paused=_list_paused(project.root, project.name, [one.name for one in sessions]),
        hint=_hint(project, sessions, known, silence, kept)
        or _hint_at_limit(project, len(sessions), waits),
        silent_s=silence.for_s if silence else 0.0,
        objection=_find_objection(project, now),
    )


def _find_objection(project: Project, now: float) -> Objection | None:
    found = meters.find_objection(project)
    if found is None:
        return None
    return Objection(found.shown, found.until or 0.0, one_line(meters.describe(found, now)))


def _list_merged(project: Project, known: Snapshot, now: float) -> Iterator[MergedPull]:
    recent = (
        pull
        for pull in known.pulls
        if pull.state is PullState.MERGED and pull.closed_at > now - RECENT_S
    )
    for pull in sorted(recent, key=lambda pull: pull.closed_at, reverse=True):
        issue = kept_worktrees.parse_issue(project.settings, pull.branch)
        yield MergedPull(issue, pull.number, pull.title, max(0.0, now - pull.closed_at))


def _list_waiting(
    project: Project, at_work: Collection[IssueId], known: Snapshot
) -> Iterator[WaitingIssue]:
    for issue in _idle(at_work, known):
        if _is_listed(project, issue):
            yield WaitingIssue(issue.number, issue.title, _why(project, known, issue))


def _idle(at_work: Collection[IssueId], known: Snapshot) -> list[Issue]:
    """List the open issues that no session works on, here or elsewhere, in order."""
    found = (
        one for one in known.issues if one.state is IssueState.OPEN and one.number not in at_work
    )
    return sorted(found, key=lambda issue: rank(issue.number))


def _is_listed(project: Project, issue: Issue) -> bool:
    labels = project.settings.labels
    return labels.backlog in issue.labels or labels.blocked in issue.labels


def _why(project: Project, known: Snapshot, issue: Issue) -> str:
    """Say what keeps the issue from being picked up: as `list_ready` decides, in words."""
    labels = project.settings.labels
    if labels.blocked in issue.labels:
        return (
            f"labelled {labels.blocked}: sm issue show {project.name}#{issue.number} says why; "
            f"to have it worked on: {spell_unblock(project.settings, issue.number)}"
        )
    if not known.trust(project.settings).includes(issue.author):
        return f"filed by '{issue.author}', who is not trusted"
    if doubt := backlog.find_doubt(project.root.project(project.name), issue):
        return doubt
    if needed := list_blockers(known, issue):
        circle = find_circle(issue.number, lambda number: _list_needs(known, number))
        return "depends on " + ", ".join(map(spell, needed)) + explain_circle(circle)
    if issue.waits:
        return f"depends on {issue.waits} (set on the forge)"
    if claim.is_held(issue.number, known.refs):
        return "claimed: worked on elsewhere, or about to be taken up again"
    return ""


def _list_needs(known: Snapshot, number: IssueId) -> list[IssueId]:
    found = known.issue(number)
    return list_blockers(known, found) if found else []


def _hint(
    project: Project,
    sessions: Collection[IssueSession],
    known: Snapshot,
    silence: TickSilence | None,
    kept: Mapping[IssueId, str],
) -> str:
    if silence:
        return f"{word_silence(silence)}: {START}"
    # The ticks of another installation ask for the sessions that it has placed here.
    stopped = find_silence(project, known) if known.taken_at and not sessions else None
    if stopped and known.taken_at <= stopped.since + LOOK_S:
        return f"{word_silence(stopped)}, so what was filed since is not known: {START}"
    if known.taken_at or lock.is_held(project.root.project(project.name).poll_lock):
        return ""
    if kept:  # state in /tmp is gone after a restart of the machine, work is not
        named = [
            f"{spell(issue)} in '{one_line(path)}'" for issue, path in list(kept.items())[:NAMED]
        ]
        more = f" and {len(kept) - NAMED} more" if len(kept) > NAMED else ""
        return (
            "dev-poll has not looked yet, as after a restart of the machine: "
            f"{', '.join(named)}{more} may wait for it: run dev-poll --loop, which takes up what "
            "is still open"
        )
    return "dev-poll has not looked yet: run dev-poll --loop, and file issues with sm issue add"


def _hint_at_limit(project: Project, count: int, waits: tuple[WaitingIssue, ...]) -> str:
    """Say why nothing is taken up although an issue is ready."""
    settings = project.settings
    if not any(one.ready for one in waits) or count < settings.open_limit:
        return ""
    if not settings.max_sessions:
        return "no issue is taken up: max_sessions is 0"
    return f"{count} sessions are open, so no issue is taken up (max_open): see what each waits for"
