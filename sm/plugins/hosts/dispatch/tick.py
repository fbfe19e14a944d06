"""Tick's part in work elsewhere: places issues, follows them, and moves those that are lost.

A claim is taken or moved before anything is placed, and each step can be repeated: what a killed
tick did is found on the remote, or at the runner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from sm.adapters.forge.model import Issue
from sm.adapters.git_call import call
from sm.base.errors import SmError, TemporaryError, Unable
from sm.base.issue_id import IssueId, read_part, spell
from sm.issues import placements, runners
from sm.issues.look import backlog, issue_text
from sm.issues.look.backlog import is_workable
from sm.issues.look.issue_text import UntrustedTextError
from sm.issues.runners import KnownState, NodeRefusedError, Placement, Runner, Standing
from sm.issues.start import is_due
from sm.issues.work import claim, takeover
from sm.issues.work.takeover import LostClaimError
from sm.plugins.hosts.dispatch.bearer import bring
from sm.plugins.hosts.dispatch.orders import StartOrder
from sm.plugins.hosts.dispatch.rules import AGAIN_S, Holder, PlacementCase, PlacementDeed, judge
from sm.plugins.hosts.dispatch.survey import Survey
from sm.plugins.hosts.messages import outbox
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.failpoint import crash_point


class Round:
    """Work elsewhere in one tick: `Away` of sm/issues/dispatch.py, by what a survey has found."""

    def __init__(self, survey: Survey) -> None:
        """Do nothing yet."""
        self._survey = survey

    def divide(self, issues: list[Issue]) -> tuple[list[Issue], list[Issue]]:
        """Return the issues for this machine, and those for others that nobody has yet."""
        return self._survey.divide(issues)

    def tend(self, is_paused: Callable[[str], bool], *, dry_run: bool = False) -> Iterator[str]:
        """Follow all sessions elsewhere, and do what is due; yield a line for each thing done.

        The caller calls `finish` in the end.
        """
        away = self._survey
        if not dry_run:
            yield from _find_unrecorded(away)
            yield from _bring(away)
        yield from _follow(away)
        for placement in list(away.placed):
            known = away.standings.get(placement.session) or away.find_refusal(placement)
            deed = judge(_describe(away, placement, known, is_paused))
            if deed is PlacementDeed.LEAVE:
                continue
            if dry_run:
                here = f"{spell(placement.issue)}, attempt {placement.attempt} on {placement.host}"
                yield f"{here}: would {deed}"
                continue
            yield from _attempt(away, placement, DEEDS[deed])

    def finish(self) -> Iterator[str]:
        """Wait for the sessions that this tick has begun, and keep what is known; yield lines."""
        away = self._survey
        for one in away.dispatch.take_all():
            yield from _settle(away, one)
        _keep_seen(away)
        outbox.give_back(away.project, {one.session for one in away.placed})

    def place(self, issue: Issue, *, dry_run: bool) -> Iterator[str]:
        """Claim and begin an issue, if its runner has a free place; `finish` waits for that.

        Raises:
            SmError: its runner cannot say which places are free.

        """
        away = self._survey
        runner = runners.choose_runner(away.project.settings, issue.labels)
        host = away.take_host(runner)
        if not host:
            return
        if dry_run:
            yield f"would place {spell(issue.number)} {issue.title} on {host}"
            return
        there = away.list_there(runner, host)

        def take_up(project: Project, order: StartOrder) -> Placement | None:
            claimed = _claim(away, project, order)
            if (
                claimed is None or claimed.host != host
            ):  # a tick that has died had placed it elsewhere
                return claimed
            return _begin(away, project, claimed, there)

        away.dispatch.order(StartOrder((runner, host), issue=issue), take_up)
        for one in away.dispatch.take_done():
            yield from _settle(away, one)


def _settle(away: Survey, order: StartOrder) -> Iterator[str]:
    """Record what has become of a session that was to begin."""
    if order.placement is None:
        yield from _tell_unclaimed(away, order)
        return
    if order.issue:
        away.note(order.placement)

    def put_on_record(away: Survey, placement: Placement) -> Iterator[str]:
        try:
            placed = order.outcome.result()
        except NodeRefusedError as error:
            standing = Standing.REFUSED if error.of_host else Standing.UNFIT
            seen = KnownState(standing, placement.host, time.time(), error.message)
            away.standings[placement.session] = seen
            raise
        if placed is None or not placed.handle:
            return
        crash_point("placement:placed")
        away.keep(placed)
        said = events.Placed(
            session=placed.session, host=placed.host, attempt=placed.attempt, runner=placed.runner
        )
        away.project.record(said)
        yield f"placed {spell(placed.issue)} on {placed.host}, attempt {placed.attempt}"

    yield from _attempt(away, order.placement, put_on_record)


def _tell_unclaimed(away: Survey, order: StartOrder) -> Iterator[str]:
    """Say why an issue was not claimed, unless it was not due, or there was no time for it."""
    issue = order.issue
    assert issue is not None  # else it has a placement
    try:
        order.outcome.result()
    except UntrustedTextError as error:
        yield backlog.tell_doubt(away.project, issue, "place", error.message)
    except SmError as error:
        yield Unable(f"cannot place {spell(issue.number)} {issue.title}: {error.message}")


def _attempt(
    away: Survey,
    placement: Placement,
    act: Callable[[Survey, Placement], Iterator[str]],
) -> Iterator[str]:
    """Act on a placement; what is in the way is told, and tried again at the next tick."""
    try:
        yield from act(away, placement)
    except LostClaimError:
        pass  # the next look at the forge shows whose it is
    except TemporaryError as error:
        yield f"{spell(placement.issue)} on {placement.host}: {error.message}"
    except SmError as error:
        problem = events.Problem(session=placement.session, text=error.message)
        journal.record_once(away.project.root.journal, problem)
        yield Unable(f"cannot place {spell(placement.issue)} on {placement.host}: {error.message}")


# Knowledge


def _follow(away: Survey) -> Iterator[str]:
    """Ask each runner once. Older knowledge decides nothing: it may be about another attempt.

    A runner without any session is asked, too: a host that comes back has to be noticed.
    """
    named = (one.runner for one in away.placed if one.handle)
    for name in dict.fromkeys((*named, *runners.list_runners(away.project.settings))):
        of_runner = [one for one in away.placed if one.runner == name and one.handle]
        try:
            away.standings |= away.open(name).follow(away.project, of_runner)
        except SmError as error:
            yield Unable(f"runner '{name}' says nothing: {error.message}")


def _bring(away: Survey) -> Iterator[str]:
    """Tell the sessions that ran at the last tick what was seen of the forge.

    This comes first, as somebody may wait for it.
    """
    known = placements.read_seen(away.project.directory) if away.placed else {}
    running = [one for one in away.placed if _is_running(known.get(one.session))]
    for name in dict.fromkeys(one.runner for one in running):
        yield from _bring_by(away, name, [one for one in running if one.runner == name])


def _bring_by(away: Survey, name: str, placed: list[Placement]) -> Iterator[str]:
    yield from _bring_to(away, away.project, away.open(name), placed)


def _bring_to(
    away: Survey, project: Project, runner: Runner, placed: list[Placement]
) -> Iterator[str]:
    sharers = 1 + away.count_hosts()
    return bring(
        project, away.seen, runner, placed, hears_wishes=away.hears_wishes, sharers=sharers
    )


def _is_running(known: KnownState | None) -> bool:
    return known is not None and known.standing is Standing.RUNNING


def _keep_seen(away: Survey) -> None:
    """Keep for people what is known of each session: if its runner is silent, what was known."""
    directory, before = away.project.directory, set(away.asked)
    now = away.standings.keys()
    staying = {one.session for one in away.placed if one in before or one.session in now}
    if not staying and not directory.placed_seen.exists():
        return
    known = away.known | away.standings
    placements.keep_seen(directory, {name: known[name] for name in staying & known.keys()})


def _describe(
    away: Survey, placement: Placement, known: KnownState | None, is_paused: Callable[[str], bool]
) -> PlacementCase:
    issue = away.seen.issue(placement.issue)
    settings = away.project.settings
    return PlacementCase(
        holder=_find_holder(away, placement),
        standing=known.standing if known else None,
        is_placed=bool(placement.handle),
        is_workable=issue is None or is_workable(settings, issue),
        is_paused=is_paused(placement.session),
        tried_for_s=time.time() - placement.placed_at,
    )


def _find_holder(away: Survey, placement: Placement) -> Holder:
    if away.seen.taken_at <= placement.placed_at:
        return Holder.OURS  # it was claimed since that look
    held = away.seen.refs.get(claim.name_ref(placement.issue), "")
    if held == placement.claim:
        return Holder.OURS
    if not held:
        return Holder.NOBODY
    found = takeover.recall_from(away.project, placement.issue, placement.runner, held)
    if found is None:
        return Holder.OTHERS
    # An earlier attempt: the look is older than the record.
    return Holder.LATER if found.attempt > placement.attempt else Holder.OURS


def _find_unrecorded(away: Survey) -> Iterator[str]:
    """Record our claims for elsewhere that are not on record: a tick has died, or a disk.

    What others have claimed is no object of our clone, so it is not fetched at each tick.
    """
    project, known = away.project, {one.issue for one in away.placed}
    head = claim.name_ref(0).removesuffix("0")
    found = {
        number: sha
        for ref, sha in away.seen.refs.items()
        if ref.startswith(head) and (number := read_part(ref.removeprefix(head)))
        if number not in known
        if not claim.is_ours(project.git, project.settings, number, project.root, away.seen.refs)
    }
    for number in _select_known(away, found):
        runner = _choose_runner(away, away.seen.issue(number))
        # Asked for again: since that look it may have been given up.
        if placement := takeover.recall(project, number, runner):
            away.keep(placement)
            yield f"found the claim of {spell(number)} for {placement.host} again"


def _select_known(away: Survey, claims: dict[IssueId, str]) -> list[IssueId]:
    if not claims:
        return []
    lines = "".join(f"{sha}\n" for sha in claims.values()).encode()
    said = call(away.project.git.repo, "cat-file", "--batch-check", stdin=lines).lines
    there = {line.split(" ")[0] for line in said if not line.endswith(" missing")}
    return [number for number, sha in claims.items() if sha in there]


def _choose_runner(away: Survey, issue: Issue | None) -> str:
    settings = away.project.settings
    named = runners.choose_runner(settings, issue.labels if issue else ())
    return named if named != runners.LOCAL else next(iter(runners.list_runners(settings)), named)


# Actions


def _claim(away: Survey, project: Project, order: StartOrder) -> Placement | None:
    """Claim an issue if it still is to be worked on, and record that; None if it is not.

    Raises:
        UntrustedTextError: no trusted person vouches for its text.
        SmError: it cannot be claimed.

    """
    assert order.issue is not None
    number, (runner, host) = order.issue.number, order.host
    with away.dispatch.claiming:
        now = project.forge.issues.read(number)
        if not is_due(project.settings, now, ours=False):
            return None
        issue_text.check_source(project, number, project.forge.issues.read_source(number))
        placement = takeover.claim_for(project, number, runner, host)
        if placement is None:
            return None
        crash_point("placement:claimed")
        placements.keep(project.directory, placement)
        order.placement = placement
    crash_point("placement:kept")
    project.record(events.Claimed(session=placement.session, how="won"))
    return placement


def _place(away: Survey, placement: Placement) -> Iterator[str]:
    """Order its start, beside all else; `finish` waits for that."""
    there = away.list_there(placement.runner, placement.host)

    def begin(project: Project, order: StartOrder) -> Placement:
        return _begin(away, project, placement, there)

    away.dispatch.order(StartOrder((placement.runner, placement.host), placement=placement), begin)
    yield from ()


def _begin(
    away: Survey, project: Project, placement: Placement, there: Iterable[Placement]
) -> Placement:
    """Begin it, on a host that has the placements `there`."""
    runner = away.open(placement.runner)
    beside = [one for one in there if one.issue != placement.issue] + [placement]
    # Its host would look up by itself what it is not told before it begins.
    for _ in _bring_to(away, project, runner, beside):
        pass
    return runner.place(project, placement)


def _place_again(away: Survey, placement: Placement) -> Iterator[str]:
    """Order its start again, unless its host has just refused it."""
    refusal = away.find_refusal(placement)
    if refusal is None or not 0 <= time.time() - refusal.known_at < AGAIN_S:
        yield from _place(away, placement)


def _move(away: Survey, placement: Placement) -> Iterator[str]:
    """Begin the next attempt on another host; one that never began stays if there is no other."""
    host = away.take_host(placement.runner, but="" if placement.handle else placement.host)
    if not host and not placement.handle:
        yield from _place_again(away, placement)
        return
    if not host:
        yield f"{spell(placement.issue)} is lost on {placement.host}, and waits for a free host"
        return
    moved = takeover.take_over(away.project, placement, host)
    crash_point("placement:moved")
    away.keep(moved)
    yield from _place(away, moved)


def _adopt(away: Survey, placement: Placement) -> Iterator[str]:
    found = takeover.recall(away.project, placement.issue, placement.runner)
    if found and found.attempt > placement.attempt:
        away.keep(found)
        yield from _place(away, found)


def _let_go(away: Survey, placement: Placement) -> Iterator[str]:
    takeover.let_go(away.project, placement)
    crash_point("placement:released")
    away.forget(placement)
    yield f"gave up the claim of {spell(placement.issue)} on {placement.host}, which is settled"


def _withdraw(away: Survey, placement: Placement) -> Iterator[str]:
    away.open(placement.runner).end(away.project, placement)
    yield from _let_go(away, placement)


def _drop(away: Survey, placement: Placement) -> Iterator[str]:
    away.open(placement.runner).end(away.project, placement)
    away.forget(placement)
    yield (
        f"took {spell(placement.issue)} from {placement.host}: it is claimed by others, or by "
        "nobody"
    )


def _forget(away: Survey, placement: Placement) -> Iterator[str]:
    away.forget(placement)
    yield f"{spell(placement.issue)} has ended on {placement.host}"


DEEDS: dict[PlacementDeed, Callable[[Survey, Placement], Iterator[str]]] = {
    PlacementDeed.PLACE: _place_again,
    PlacementDeed.MOVE: _move,
    PlacementDeed.ADOPT: _adopt,
    PlacementDeed.LET_GO: _let_go,
    PlacementDeed.WITHDRAW: _withdraw,
    PlacementDeed.DROP: _drop,
    PlacementDeed.FORGET: _forget,
}
