"""Takeover: claims issues for sessions elsewhere, and takes one over from a host that is lost.

A takeover moves three things in one push: the claim goes to the next attempt, the branch gets an
empty commit on top, and the ref of the last attempt's work is closed. So the remote itself refuses
what the last attempt still sends by git, and the forge a merge at its head; before anything else
that attempt checks the claim. Its work is kept out of the successor's way.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from sm.adapters.git import Git
from sm.adapters.git_call import call
from sm.adapters.git_push import ABSENT, PushRefusedError, RefMovedError, Update
from sm.adapters.git_snapshot import commit_tree, find_tree, take
from sm.base.errors import TemporaryError
from sm.base.issue_id import IssueId, name_part, spell
from sm.base.nonce import make_nonce
from sm.config.schema import ProjectSettings
from sm.issues import placements
from sm.issues.runners import Placement
from sm.issues.work import claim, wip, worktree
from sm.issues.work.claim import LOOKS, Assignment, Claim
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point
from sm.store.paths import name_session


class LostClaimError(TemporaryError):
    """The claim is no longer ours: another installation has taken the issue."""


def claim_for(project: Project, issue: IssueId, runner: str, host: str) -> Placement | None:
    """Claim the issue for its first attempt, on `host`; None if another installation has it.

    An attempt that we have claimed already is returned as it is, wherever that is: a process may
    have died before it could record it.
    """
    first = Assignment(host, 1)
    git, settings = project.git, project.settings
    ours = claim.make_object(git, settings, issue, project.root, first)
    if claim.claim(git, settings, issue, project.root, ours=ours) is not Claim.TAKEN:
        return _make(project, issue, runner, first, ours)
    return recall(project, issue, runner)


def recall(project: Project, issue: IssueId, runner: str) -> Placement | None:
    """Return the placement that our claim on the remote tells of; None if it is not ours."""
    git, ref = project.git, claim.name_ref(issue)
    sha = git.ls_remote(project.settings.remote, ref).get(ref, "")
    return recall_from(project, issue, runner, sha) if sha else None


def recall_from(project: Project, issue: IssueId, runner: str, sha: str) -> Placement | None:
    """Return that placement, if the claim was just seen to be the commit `sha`."""
    found = claim.read_assignment(project.git, project.settings, issue, project.root, sha)
    return _make(project, issue, runner, found, sha) if found else None


def _make(project: Project, issue: IssueId, runner: str, on: Assignment, sha: str) -> Placement:
    name = name_session(project.name, issue)
    return Placement(
        project=project.name,
        issue=issue,
        session=name,
        runner=runner,
        host=on.host,
        attempt=on.attempt,
        claim=sha,
        placed_at=time.time(),
    )


class _Scene(NamedTuple):
    """State of the remote: the branch, '' for none, the next attempt's base, and its work."""

    head: str
    base: str
    closing: list[Update]


def take_over(project: Project, placement: Placement, host: str) -> Placement:
    """Move the claim to the next attempt, on `host`; return what is to be placed.

    Only one of several takers succeeds. A takeover whose process died before recording it is found
    on the remote.

    Raises:
        LostClaimError: another installation has the issue, or it was given up.
        RemoteUnreachableError: and the other errors of `Git`.

    """
    git, settings, issue = project.git, project.settings, placement.issue
    next_one = Assignment(host, placement.attempt + 1)
    ours = claim.make_object(git, settings, issue, project.root, next_one)
    before: dict[str, str] | None = None
    for _ in range(LOOKS):
        seen = claim.look(git, settings, issue)
        held = seen.get(claim.name_ref(issue), "")
        if held != placement.claim:
            return _find_taken(project, placement, held)
        try:
            scene = _survey(git, settings, placement, seen, ours)
            _push(git, settings, placement, ours, scene)
        except RefMovedError:
            continue  # its agent has pushed, or another taker was faster
        except PushRefusedError:
            if before == seen:
                raise
            before = seen  # a race inside the remote looks like a refusal
            continue
        made = _make(project, issue, placement.runner, next_one, ours)
        return structs.replace(made, handle="")
    raise TemporaryError(f"the branch of issue {issue} keeps changing on the remote: try again")


def seize(project: Project, issue: IssueId) -> Claim:
    """Claim the issue for this machine, because a person decided so, whoever has it.

    An attempt elsewhere is taken over as by another attempt.

    Raises:
        RefMovedError: the claim or the branch has changed meanwhile.

    """
    git, settings = project.git, project.settings
    seen = claim.look(git, settings, issue)
    held = seen.get(claim.name_ref(issue), "")
    number = claim.read_attempt(git, settings, issue, held) if held else 0
    if not number:
        return claim.seize(git, settings, issue, project.root)
    name = name_session(project.name, issue)
    there = Placement(project.name, issue, name, "", "", number, held)
    ours = claim.make_object(git, settings, issue, project.root)
    _push(git, settings, there, ours, _survey(git, settings, there, seen, ours))
    placements.forget(project.directory, issue)
    return Claim.WON


def _find_taken(project: Project, placement: Placement, held: str) -> Placement:
    found = recall_from(project, placement.issue, placement.runner, held) if held else None
    if found is None or found.attempt <= placement.attempt:
        raise LostClaimError(f"{spell(placement.issue)} is worked on by others, or was given up")
    return found


def _survey(
    git: Git, settings: ProjectSettings, placement: Placement, seen: dict[str, str], ours: str
) -> _Scene:
    """Find what the branch has, and what the last attempt has committed on top of that."""
    issue, remote = placement.issue, settings.remote
    branch = settings.branch(issue)
    head = seen.get(f"refs/heads/{branch}", "")
    base = git.fetch_branch(remote, branch if head else settings.primary_branch)
    found = wip.find(git, remote, issue, up_to=placement.attempt)
    if found and git.is_ancestor(base, found.about.taken.tip):
        base = found.about.taken.tip
    return _Scene(head, base, _close(git, settings, placement, found, ours))


def _close(
    git: Git,
    settings: ProjectSettings,
    placement: Placement,
    found: wip.SavedWork | None,
    ours: str,
) -> list[Update]:
    """Give the work to the next attempt, and make the last one's ref useless to it.

    The ref stays, so that a push that is still on its way can neither move nor make it.
    """
    issue, last = placement.issue, claim.name_wip(placement.issue, placement.attempt)
    there = wip.list_refs(git, settings.remote, issue)
    closing = [Update(last, ours, there.get(last, ABSENT))]
    if found:
        moved = claim.name_wip(issue, placement.attempt + 1)
        closing.append(Update(moved, found.commit, there.get(moved, ABSENT)))
    return closing


def _push(
    git: Git, settings: ProjectSettings, placement: Placement, ours: str, scene: _Scene
) -> None:
    issue, number = placement.issue, placement.attempt + 1
    message = f"Go on elsewhere, attempt {number} at {spell(issue)}"
    empty = commit_tree(git, find_tree(git, scene.base), (scene.base,), message)
    branch = f"refs/heads/{settings.branch(issue)}"
    crash_point("takeover:before-push")
    git.push(
        settings.remote,
        Update(claim.name_ref(issue), ours, placement.claim),
        Update(branch, empty, scene.head or ABSENT),
        *scene.closing,
    )
    crash_point("takeover:after-push")


def delete_taken_over(project: Project, branch: str, merged: str) -> bool:
    """Delete a branch that was merged at that commit and taken over after that; say if it is gone.

    It is kept if somebody has pushed work to it: then its files are others.
    """
    git, remote = project.git, project.settings.remote
    head = git.fetch_branch(remote, branch)
    adds_nothing = find_tree(git, head) == find_tree(git, merged)
    if not (adds_nothing and git.is_ancestor(merged, head)):
        return False
    git.delete_ref(remote, f"refs/heads/{branch}", expect=head)
    return True


def let_go(project: Project, placement: Placement) -> bool:
    """Give up the claim of an issue that is over, with what was kept of its attempts.

    False if the claim is no longer ours.
    """
    crash_point("placement:before-release")
    return wip.give_up(project.git, project.settings.remote, placement.issue, placement.claim)


# The work of a session that another attempt has overtaken


def name_branch(issue: IssueId, attempt: int) -> str:
    """Return the branch of the clone that keeps the work of an attempt."""
    return f"sm/overtaken/{name_part(issue)}-{attempt}"


def keep_work(session: IssueSession) -> str:
    """Put the work into a branch of its own, and clear its worktree away; return what is kept.

    If a branch cannot hold everything, the worktree is moved aside.
    """
    git, settings, issue = session.project.git, session.own_settings, session.issue
    found = worktree.examine(git, settings, issue)
    name = name_branch(issue, session.attempt)
    taken = None
    if found.entry is not None and (found.path / ".git").exists():
        taken = take(git.at(found.path), settings.branch(issue))
    commit = taken.commit if taken else found.tip or ""
    if not commit:
        return ""
    if not git.is_ancestor(commit, f"refs/heads/{name}"):  # a try that was cut short may have more
        call(git.repo, "branch", "--force", "--no-track", name, commit)
    crash_point("yield:kept")
    if found.obstacle:
        return f"branch '{name}'; '{found.path}' stays: {found.obstacle}"
    if taken and taken.is_whole:
        worktree.discard(git, settings, issue, found, force=True)
        return f"branch '{name}'"
    aside = _move_aside(git, found.path) if found.entry else None
    if found.tip:
        git.delete_branch(settings.branch(issue), found.tip)
    return f"branch '{name}'" + (f" and '{aside}'" if aside else "")


def _move_aside(git: Git, path: Path) -> Path:
    """Move a worktree where no issue looks for its own, away from its branch."""
    aside = path.with_name(f"{path.name}-overtaken-{make_nonce(4)}")
    call(path, "checkout", "--quiet", "--detach", accept=(0, 1))
    call(git.repo, "worktree", "move", str(path), str(aside))
    return aside
