"""Acts of supervision on what was found: a function for each act of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from sm.adapters.forge.model import Issue, IssueState
from sm.adapters.git_push import PushRefusedError
from sm.base.errors import SmError, Unable
from sm.base.issue_id import spell
from sm.issues.rules.leftover import Left, Thing
from sm.issues.rules.supervision import By, RepairAct, Ruling, judge
from sm.issues.start import identify, put_on_record, settle
from sm.issues.supervise.find import Scene, find_left
from sm.issues.work import kept_worktrees, leftovers, remnants
from sm.issues.work.worktree import UnremovedWorktree
from sm.messages.presence import find_obstacle
from sm.sessions import agent_process, monitors, registry
from sm.sessions.presence_rule import Disturbance

BEFORE = (Thing.RECORD, Thing.SESSION, Thing.CLAIM)
"""Things that a tick looks at before it takes up anything new."""

AFTER = (Thing.TERMINAL, Thing.WORKTREE, Thing.PULL, Thing.BRANCH)
"""Things that a tick looks at last."""

STARTS = (RepairAct.START, RepairAct.LET_GO)
"""Acts that a tick leaves to its own start, which asks the forge again and reports."""

LET_GO = "let go of"
"""Words of a tick for the second one."""


class RepairOutcome(Struct, frozen=True):
    """Outcome for a thing.

    `kept` says why nothing was done, '' if it was. `failed`: it was tried, and could not be done.
    `refused`: the remote would refuse the same for others, too.
    """

    ruling: Ruling
    kept: str = ""
    failed: bool = False
    refused: bool = False


class DueIssue(NamedTuple):
    """Issue whose session is to be started, or let go of; `what` says in what sense."""

    issue: Issue
    what: str


Start = Callable[[Sequence[DueIssue]], Iterator[str]]
"""Function that starts or lets go of them, and yields a line for each."""


def tend(scene: Scene, *things: Thing, start: Start, dry_run: bool = False) -> Iterator[str]:
    """Do what is due at a tick about these things; yield a line for each that was done or failed.

    What is kept for a good reason is not told at each tick: `sm doctor` tells it.
    """
    for thing in things:
        due: list[DueIssue] = []
        for ruling in rule(scene, thing, by=(By.BOTH, By.TICK)):
            if isinstance(ruling, Unable):
                yield ruling
            elif ruling.row.act in STARTS:
                what = LET_GO if ruling.row.act is RepairAct.LET_GO else ruling.doing
                due.append(DueIssue(_find_issue(scene, ruling.left), what))
            elif dry_run:
                yield from (f"would {ruling.doing}",) if ruling.doing else ()
            else:
                outcome = carry_out(scene, ruling)
                yield from _tell(outcome)
                if outcome.refused:
                    break  # it keeps the others, too: at each tick one is tried
        if due:
            yield from start(due)


def _tell(outcome: RepairOutcome) -> Iterator[str]:
    ruling = outcome.ruling
    if outcome.failed and ruling.left.thing is Thing.SESSION:
        yield Unable(f"cannot look after {spell(ruling.left.issue)}: {outcome.kept}")
    elif outcome.failed:
        yield f"cannot {ruling.doing}: {outcome.kept}"
    elif ruling.done and not outcome.kept:
        yield ruling.done


def rule(scene: Scene, *things: Thing, by: tuple[By, ...]) -> Iterator[Ruling | Unable]:
    """Yield the rulings of the table on what is found, if one of those named acts on them."""
    for left in find_left(scene, *things):
        if isinstance(left, Unable):
            yield left
        elif (ruling := judge(left, scene.place)) and ruling.row.by in by:
            yield ruling


def carry_out(scene: Scene, ruling: Ruling) -> RepairOutcome:
    """Do what the row says about the thing."""
    assert ruling.row.act is not None
    try:
        return RepairOutcome(ruling, ACTS[ruling.row.act](scene, ruling.left))
    except SmError as error:
        refused = isinstance(error, PushRefusedError)
        return RepairOutcome(ruling, error.message, failed=True, refused=refused)


def foresee(scene: Scene, ruling: Ruling) -> str:
    """Return why `carry_out` would not do it, as far as that is known beforehand; '' if it would.

    Raises:
        SmError: that cannot be found out.

    """
    if ruling.row.act is RepairAct.REMOVE_WORKTREE:
        return kept_worktrees.find_keeper(scene.project, scene.seen, ruling.left.issue)
    return ""


def _find_issue(scene: Scene, left: Left) -> Issue:
    """Return the issue as seen; one that is not in sight may have been deleted: a start asks."""
    if known := scene.seen.issue(left.issue):
        return known
    session = scene.by_issue.get(left.issue)
    title = session.record.title if session else "(not in sight)"
    return Issue(left.issue, title, IssueState.OPEN, author="", at=0.0)


def _remove_lock(scene: Scene, left: Left) -> str:
    removed = leftovers.remove_lock(scene.project, left.name)
    return "" if removed else "a git at work there may have made it, or it is gone"


def _rebuild(scene: Scene, left: Left) -> str:
    monitors.ensure(put_on_record(scene.project, _find_issue(scene, left)))
    return ""


def _watch(scene: Scene, left: Left) -> str:
    monitors.ensure(scene.by_issue[left.issue])
    return ""


def _wake(scene: Scene, left: Left) -> str:
    registry.poke(scene.by_issue[left.issue].dir)
    return ""


def _let_go(scene: Scene, left: Left) -> str:
    over = settle(scene.project, _find_issue(scene, left))
    return "" if over else "it is to be worked on again, and the next dev-poll does that"


def _end_terminal(scene: Scene, left: Left) -> str:
    session = identify(scene.project, _find_issue(scene, left)).provide(project=scene.project)
    if refusal := find_obstacle(session, Disturbance.END):
        return refusal.sentence
    agent_process.stop(scene.project.tmux, session)
    return ""


def _relink(scene: Scene, left: Left) -> str:
    scene.project.git.repair_worktrees()
    entry = kept_worktrees.list_entries(scene.project).get(left.issue)
    linked = entry is not None and kept_worktrees.is_linked(entry)
    return "" if linked else "git could not repair it"


def _forget_worktree(scene: Scene, left: Left) -> str:
    entry = kept_worktrees.list_entries(scene.project).get(left.issue)
    if entry is None or entry.path.exists():
        return "it has changed meanwhile"
    leftovers.forget_missing(scene.project.git, entry)
    return ""


def _remove_worktree(scene: Scene, left: Left) -> str:
    removed = kept_worktrees.remove(scene.project, scene.seen, left.issue)
    return removed.reason if isinstance(removed, UnremovedWorktree) else ""


def _close_pull(scene: Scene, left: Left) -> str:
    branch = scene.project.settings.branch(left.issue)
    closed = remnants.close_pull(scene.project, left.issue, branch)
    return "" if closed else "it is not open any more"


def _delete_branch(scene: Scene, left: Left) -> str:
    return remnants.delete_branch(scene.project, left.name)


ACTS: dict[RepairAct, Callable[[Scene, Left], str]] = {
    RepairAct.REMOVE_LOCK: _remove_lock,
    RepairAct.REBUILD: _rebuild,
    RepairAct.WATCH: _watch,
    RepairAct.WAKE: _wake,
    RepairAct.LET_GO: _let_go,
    RepairAct.END_TERMINAL: _end_terminal,
    RepairAct.RELINK: _relink,
    RepairAct.FORGET_WORKTREE: _forget_worktree,
    RepairAct.REMOVE_WORKTREE: _remove_worktree,
    RepairAct.CLOSE_PULL: _close_pull,
    RepairAct.DELETE_BRANCH: _delete_branch,
}
"""Functions of the acts: each returns why nothing was done, '' if it is done."""
