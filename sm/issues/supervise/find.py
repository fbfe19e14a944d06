"""Finds leftovers and missing things of a project; the table says what they mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property

from msgspec import Struct

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import Issue, IssueState
from sm.adapters.git import WorktreeEntry
from sm.adapters.tmux import Pane
from sm.base.errors import StateError, Unable
from sm.base.issue_id import IssueId, rank, read_part, spell
from sm.config.schema import ProjectSettings
from sm.issues.look.snapshot import Snapshot
from sm.issues.rules.leftover import IssueStanding, Left, Owner, Thing
from sm.issues.rules.supervision import ProjectWords
from sm.issues.start import is_started
from sm.issues.work import claim, kept_worktrees, leftovers, remnants
from sm.sessions import agent_process, monitors, pause, registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import OF_ISSUES, name_session, prefix_sessions


class Scene(Struct, frozen=True, dict=True):
    """Scene of a search: a project, the forge as it was seen, the sessions on record.

    `thoroughly`: also for what takes requests to the forge, or does not concern a tick.
    """

    project: Project
    seen: Snapshot
    sessions: list[IssueSession]
    thoroughly: bool = False

    @cached_property
    def place(self) -> ProjectWords:
        """Words of the project."""
        settings, socket = self.project.settings, self.project.tmux.socket
        return ProjectWords(
            project=settings.name,
            repo=str(settings.repo),
            remote=settings.remote,
            backlog=settings.labels.backlog,
            tmux=f"tmux -L {socket}" if socket else "tmux",
        )

    @cached_property
    def by_issue(self) -> dict[IssueId, IssueSession]:
        """Sessions by issue."""
        return {session.issue: session for session in self.sessions}

    @cached_property
    def panes(self) -> dict[str, Pane]:
        """The tmux sessions by name; a tick that has no session asks for none."""
        return self.project.tmux.panes() if self.sessions or self.thoroughly else {}

    @cached_property
    def pauses(self) -> pause.Pauses:
        """Record of all pauses."""
        return pause.read(self.project.root)

    def is_paused(self, name: str) -> bool:
        """Whether a person has paused the session of that name, or more."""
        return self.pauses.find(self.project.name, name) is not None

    @cached_property
    def entries(self) -> dict[IssueId, WorktreeEntry]:
        """Git's records of the worktrees that were made for issues."""
        return kept_worktrees.list_entries(self.project)

    def stand(self, number: IssueId) -> IssueStanding:
        """Return the issue's standing; one out of sight is asked for if that is worth a request.

        Otherwise that one counts as open: it may have been filed just now.
        """
        issue = self.seen.issue(number)
        if issue is None and self.thoroughly:
            try:
                issue = self.project.forge.issues.read(number)
            except NotFoundError:
                return IssueStanding.UNKNOWN
        return judge_issue(self.project.settings, issue) if issue else IssueStanding.OPEN

    def has_session(self, number: IssueId) -> bool:
        """Whether there is a session of the issue, which may have been begun just now."""
        name = name_session(self.project.name, number)
        return number in self.by_issue or self.project.root.session(name).identity.exists()

    def is_claimed(self, number: IssueId) -> bool:
        """Whether anybody has claimed the issue."""
        return claim.is_held(number, self.seen.refs)


def judge_issue(project: ProjectSettings, issue: Issue) -> IssueStanding:
    """Return the standing of an issue that the forge has shown."""
    if issue.state is not IssueState.OPEN:
        return IssueStanding.CLOSED
    return IssueStanding.BLOCKED if project.labels.blocked in issue.labels else IssueStanding.OPEN


def find_left(scene: Scene, *things: Thing) -> Iterator[Left | Unable]:
    """Yield what is found of these kinds, and a line for each session that cannot be looked at."""
    for thing in things:
        yield from FINDERS[thing](scene)


def _find_locks(scene: Scene) -> Iterator[Left]:
    for lock in leftovers.find_locks(scene.project):
        yield Left(thing=Thing.LOCK, name=lock.path, age_s=lock.age_s)


def _find_records(scene: Scene) -> Iterator[Left]:
    """Yield damaged records: of the project's issues, and of sessions that have none."""
    ours = prefix_sessions(scene.project.name)
    for name, error in registry.list_damaged(scene.project.root).items():
        number = read_part(name.removeprefix(ours)) or 0 if name.startswith(ours) else 0
        if number or not name.startswith(OF_ISSUES):
            known = number and scene.seen.issue(number)
            yield Left(
                thing=Thing.RECORD,
                name=name,
                issue=number,
                standing=IssueStanding.OPEN if known else IssueStanding.UNKNOWN,
                detail=error.message,
            )


def _find_sessions(scene: Scene) -> Iterator[Left | Unable]:
    for session in scene.sessions:
        try:
            yield Left(
                thing=Thing.SESSION,
                name=session.name,
                issue=session.issue,
                has_session=True,
                is_started=is_started(session),
                is_watched=monitors.is_watched(session) and not monitors.stands_in(session),
                has_terminal=session.name in scene.panes,
                is_paused=scene.is_paused(session.name),
            )
        except StateError as error:  # only its files are damaged: the others go on
            yield Unable(f"cannot look after {spell(session.issue)}: {error.message}")


def _find_claims(scene: Scene) -> Iterator[Left]:
    """Yield claims without a session; before one is given up, the forge is asked again."""
    project = scene.project
    head = claim.name_ref(0).removesuffix("0")
    numbers = (read_part(ref.removeprefix(head)) for ref in scene.seen.refs if head in ref)
    unknown = (one for one in numbers if one and one not in scene.by_issue)
    for number in sorted(unknown, key=rank):
        unseen = scene.seen.issue(number) is None and not scene.thoroughly
        owner, was_at = Owner.OURS, ""
        if not claim.is_ours(project.git, project.settings, number, project.root, scene.seen.refs):
            if scene.thoroughly:
                was_at = claim.find_former_place(
                    project.git, project.settings, number, project.root
                )
            owner = Owner.MOVED if was_at else Owner.ELSEWHERE
        yield Left(
            thing=Thing.CLAIM,
            name=claim.name_ref(number),
            issue=number,
            standing=IssueStanding.UNKNOWN if unseen else scene.stand(number),
            owner=owner,
            is_claimed=True,
            is_paused=owner is Owner.OURS and scene.is_paused(name_session(project.name, number)),
            detail=was_at,
        )


def _find_issues(scene: Scene) -> Iterator[Left]:
    """Yield the issues that sessions work on, and those whose label says that one does."""
    labels = scene.project.settings.labels
    for number, session in scene.by_issue.items():
        yield Left(
            thing=Thing.ISSUE,
            name=session.name,
            issue=number,
            standing=scene.stand(number),
            has_session=True,
        )
    for issue in scene.seen.issues:
        if labels.in_progress in issue.labels:
            yield Left(
                thing=Thing.ISSUE,
                name=spell(issue.number),
                issue=issue.number,
                standing=judge_issue(scene.project.settings, issue),
                has_session=issue.number in scene.by_issue,
                is_claimed=scene.is_claimed(issue.number),
                is_marked=labels.backlog not in issue.labels,
            )


def _find_terminals(scene: Scene) -> Iterator[Left]:
    """Yield terminals that have a session's name, while no such session is on record."""
    project = scene.project
    ours = prefix_sessions(project.name)
    known = {session.name for session in scene.sessions}
    for name, pane in scene.panes.items():
        number = read_part(name.removeprefix(ours)) if name.startswith(ours) else None
        # Asked for again: it may have been begun after the sessions were listed.
        if not number or name in known or project.root.session(name).identity.exists():
            continue
        yield Left(
            thing=Thing.TERMINAL,
            name=name,
            issue=number,
            standing=scene.stand(number),
            owner=_find_maker(scene, pane),
            is_claimed=scene.is_claimed(number),
            age_s=measure_age(pane),
        )


def measure_age(pane: Pane) -> float:
    """Return how many seconds ago the tmux session was made."""
    return time.time() - pane.created


def _find_maker(scene: Scene, pane: Pane) -> Owner:
    if agent_process.is_ours(pane, scene.project.root.session(pane.session)):
        return Owner.OURS
    return Owner.ELSEWHERE if agent_process.is_of_sm(pane) else Owner.NOBODY


def _find_worktrees(scene: Scene) -> Iterator[Left]:
    settings = scene.project.settings
    for number, entry in scene.entries.items():
        used, linked = scene.has_session(number), kept_worktrees.is_linked(entry)
        if used and linked:
            continue
        # Without a branch, git's record may be all that is left of its commits. The disk of a place
        # that a person has chosen may not be mounted. Git locks one that it is making.
        on_branch = entry.branch == settings.branch(number)
        certain = on_branch and entry.locked is None and settings.worktree_root is None
        gone = not entry.path.exists()
        yield Left(
            thing=Thing.WORKTREE,
            name=str(entry.path),
            issue=number,
            standing=scene.stand(number),
            owner=Owner.OURS if certain or not gone else Owner.NOBODY,
            is_claimed=scene.is_claimed(number),
            has_session=used,
            is_there=not gone,
            is_linked=linked,
        )
    if scene.thoroughly:
        for number, path in kept_worktrees.list_unknown(
            scene.project, scene.project.git.worktrees()
        ).items():
            yield Left(
                thing=Thing.WORKTREE,
                name=str(path),
                issue=number,
                owner=Owner.NOBODY,
                has_session=scene.has_session(number),
                is_linked=False,
            )


def _find_pulls(scene: Scene) -> Iterator[Left]:
    for pull in remnants.list_own_pulls(scene.project, scene.seen):
        number = kept_worktrees.parse_issue(scene.project.settings, pull.branch)
        yield _of_branch(scene, Thing.PULL, pull.name, number)


def _find_branches(scene: Scene) -> Iterator[Left]:
    settings = scene.project.settings
    for number in remnants.list_empty_branches(scene.project, scene.seen):
        yield _of_branch(scene, Thing.BRANCH, settings.branch(number), number)
    if scene.thoroughly:
        for number, branch in remnants.list_local_branches(scene.project).items():
            if number not in scene.entries:
                yield _of_branch(scene, Thing.BRANCH, branch, number, is_local=True)


def _of_branch(
    scene: Scene, thing: Thing, name: str, number: IssueId, *, is_local: bool = False
) -> Left:
    return Left(
        thing=thing,
        name=name,
        issue=number,
        standing=scene.stand(number),
        has_session=scene.has_session(number),
        is_claimed=scene.is_claimed(number),
        is_local=is_local,
    )


FINDERS: dict[Thing, Callable[[Scene], Iterator[Left | Unable]]] = {
    Thing.LOCK: _find_locks,
    Thing.RECORD: _find_records,
    Thing.SESSION: _find_sessions,
    Thing.CLAIM: _find_claims,
    Thing.ISSUE: _find_issues,
    Thing.TERMINAL: _find_terminals,
    Thing.WORKTREE: _find_worktrees,
    Thing.PULL: _find_pulls,
    Thing.BRANCH: _find_branches,
}
"""Finders of things in a project; the processes of ended agents belong to the machine."""
