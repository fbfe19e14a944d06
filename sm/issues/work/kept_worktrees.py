"""Worktrees that were kept after the end of their session."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.forge.model import IssueState, PullState
from sm.adapters.git import WorktreeEntry
from sm.adapters.git_call import RemoteUnreachableError
from sm.base.errors import SmError, UsageError
from sm.base.issue_id import IssueId, rank, read_issue, read_part
from sm.config.schema import ProjectSettings
from sm.issues.look.snapshot import Snapshot, is_open, last_snapshot
from sm.issues.work import worktree
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.files import follow_links, list_names

PATH_BYTES = 4096 + len("gitdir: \n")
"""Greatest number of bytes of a worktree's `.git` file: PATH_MAX of Linux."""


def list_kept(project: Project, sessions: list[IssueSession]) -> dict[IssueId, str]:
    """Return the worktrees of this project without a session: issue to path."""
    at_work = {session.issue for session in sessions}
    return {
        issue: str(entry.path)
        for issue, entry in list_entries(project).items()
        if issue not in at_work
    }


def list_entries(project: Project) -> dict[IssueId, WorktreeEntry]:
    """Return git's records of the worktrees that were made for issues."""
    entries = project.git.worktrees()[1:]
    return {issue: entry for entry in entries if (issue := _issue(project, entry))}


def list_unknown(project: Project, entries: Iterable[WorktreeEntry]) -> dict[IssueId, Path]:
    """Return the folders at the place of a worktree that are not among git's records."""
    known = {follow_links(entry.path) for entry in entries}
    found = dict[IssueId, Path]()
    for path in list_names(project.settings.worktrees):
        number = read_part(path.removeprefix(f"{project.name}-")) or 0
        place = project.settings.worktree(number)
        is_its_place = bool(number) and place.name == path
        # Git may leave an empty folder, which is in nobody's way.
        if is_its_place and follow_links(place) not in known and worktree.has_files(place):
            found[number] = place
    return found


def is_linked(entry: WorktreeEntry) -> bool:
    """Say whether the worktree's folder, if it is there, finds the clone.

    Its `.git` is a file that names the clone's folder for it: gitrepository-layout(5).
    """
    try:
        fd = os.open(f"{entry.path}/.git", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True  # it is not there, or not what git has made
    try:
        said = os.read(fd, PATH_BYTES)
    except OSError:  # a folder
        return True
    finally:
        os.close(fd)
    place = os.fsdecode(said.removeprefix(b"gitdir: ").strip())
    return os.path.lexists(os.path.join(entry.path, place))  # noqa: PTH118 - at each tick, for all


def _issue(project: Project, entry: WorktreeEntry) -> IssueId:
    """Return the issue that a worktree was made for, by its branch, else by its place; 0: none."""
    if number := parse_issue(project.settings, entry.branch or ""):
        return number
    number = read_part(entry.path.name.removeprefix(f"{project.name}-")) or 0
    place = project.settings.worktree(number)
    return number if number and follow_links(entry.path) == follow_links(place) else 0


def parse_issue(project: ProjectSettings, branch: str) -> IssueId:
    """Return the issue of a branch by its name; 0 for none."""
    number = branch.removeprefix(f"{project.branch_prefix}/")
    return 0 if number == branch else read_issue(number) or 0


def remove(
    project: Project, seen: Snapshot, issue: IssueId
) -> worktree.Removed | worktree.UnremovedWorktree:
    """Remove the worktree of an issue without a session, and its local branch.

    A worktree is kept if removing it would lose work, or if somebody is in it.

    Raises:
        SmError: it is not known what would be lost.

    """
    found = worktree.examine(project.git, project.settings, issue)
    if reason := _find_keeper(project, seen, issue, found):
        return worktree.UnremovedWorktree(found.path, reason)
    return worktree.discard(project.git, project.settings, issue, found)


def find_keeper(project: Project, seen: Snapshot, issue: IssueId) -> str:
    """Return why `remove` would keep the worktree, '' if it would not.

    Raises:
        SmError: as `remove`.

    """
    found = worktree.examine(project.git, project.settings, issue)
    return _find_keeper(project, seen, issue, found)


def _find_keeper(project: Project, seen: Snapshot, issue: IssueId, found: worktree.Examined) -> str:
    return worktree.find_keeper(found, _losses(project, seen, issue, found))


class Listed(Struct, frozen=True):
    """Worktree of the project. `session` is the id of its session, '' for none.

    `lost` says what would be lost with it, `problem` why it cannot be removed or examined.
    """

    project: str
    issue: IssueId
    state: IssueState
    title: str
    path: str
    session: str = ""
    lost: tuple[str, ...] = ()
    problem: str = ""


def list_all(project: Project) -> list[Listed]:
    """Return every worktree of the project, by issue; a worktree in use is not examined."""
    sessions = registry.list_for(project)
    seen = last_snapshot(project.directory) or Snapshot(0.0)
    working = [
        _make_listed(project, seen, session.issue, str(session.worktree), session.name)
        for session in sessions
        if session.worktree.exists()
    ]
    left = [
        _examine(project, seen, _make_listed(project, seen, issue, path))
        for issue, path in list_kept(project, sessions).items()
    ]
    return sorted([*working, *left], key=lambda one: rank(one.issue))


def _make_listed(
    project: Project, seen: Snapshot, issue: IssueId, path: str, session: str = ""
) -> Listed:
    state = IssueState.OPEN if is_open(seen, issue) else IssueState.CLOSED
    known = seen.issue(issue)
    return Listed(project.name, issue, state, known.title if known else "", path, session)


def _examine(project: Project, seen: Snapshot, listed: Listed) -> Listed:
    try:
        found = worktree.examine(project.git, project.settings, listed.issue)
        lost = tuple(_losses(project, seen, listed.issue, found))
    except SmError as error:
        return structs.replace(listed, problem=error.message)
    return structs.replace(listed, lost=lost, problem=found.obstacle)


def _losses(
    project: Project, seen: Snapshot, issue: IssueId, found: worktree.Examined
) -> Iterator[str]:
    pull = seen.pull(project.settings.branch(issue))
    merged = pull.head if pull and pull.state is PullState.MERGED else ""
    return worktree.list_losses(project.git, project.settings, issue, found, merged_head=merged)


class WorkWouldBeLostError(SmError):
    """The worktree has work that exists nowhere else."""


def drop(project: Project, issue: IssueId, *, force: bool = False) -> list[str]:
    """Remove the worktree of an issue without a session, and its local branch.

    Returns what was lost with them; without `force` nothing is lost.

    Raises:
        UsageError: a session works in it, or there is no worktree.
        WorkWouldBeLostError: as it says; nothing was removed.

    """
    name = f"{project.name}#{issue}"
    with lock.hold(
        project.directory.poll_lock, timeout_s=120
    ):  # so that no agent starts in it meanwhile
        if issue not in list_kept(project, sessions := registry.list_for(project)):
            at_work = any(session.issue == issue for session in sessions)
            raise UsageError(
                f"a session works on {name}: end it first, by sm kill {name}"
                if at_work
                else f"there is no worktree of {name}: see sm worktree list"
            )
        return _drop(project, issue, name, force=force)


def _drop(project: Project, issue: IssueId, name: str, *, force: bool) -> list[str]:
    seen = last_snapshot(project.directory) or Snapshot(0.0)
    found = worktree.examine(project.git, project.settings, issue)
    lost = [] if found.obstacle else _find_lost(project, seen, issue, found, force=force)
    if lost and not force:
        raise WorkWouldBeLostError(
            f"'{found.path}' is kept: {'; '.join(lost)}. Push what you need of it, or let it be "
            f"lost: sm worktree drop {name} --force"
        )
    removed = worktree.discard(project.git, project.settings, issue, found, force=force)
    if isinstance(removed, worktree.UnremovedWorktree):
        raise SmError(str(removed))
    return lost


def _find_lost(
    project: Project, seen: Snapshot, issue: IssueId, found: worktree.Examined, *, force: bool
) -> list[str]:
    lost: list[str] = []
    try:
        for loss in _losses(project, seen, issue, found):
            lost.append(loss)
    except RemoteUnreachableError as error:
        if not force:
            raise
        lost.append(f"whether its commits are pushed is not known: {error.message}")
    return lost
