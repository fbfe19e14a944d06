"""Sessions of a project on other hosts, as rows of the same tables.

A row is what the node's own `sm` has said. That is foreign text: a field is taken only if it has
its type. What a person is needed for is said in words of this machine, with a command of its own
about that very session; its pull request is the one that was seen here on the forge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import structs

from sm.adapters.forge.model import PullRequest, PullState
from sm.base.act import Act, ActKind
from sm.base.errors import SmError
from sm.base.issue_id import spell
from sm.base.redact import redact
from sm.base.text import one_line
from sm.config import duration
from sm.issues.look.escalation import find_review_page
from sm.issues.look.snapshot import Snapshot
from sm.issues.placements import list_placements
from sm.issues.rules.needs import Case, describe_need, find_approval_page
from sm.issues.runners import NodeRow, Placement, load_runner
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.views.open_need import NO_ACT, OpenNeed, bound_quotation, put_into_words
from sm.views.place import ReadRows
from sm.views.session_row import SessionRow, read_status
from sm.views.states import ShownState

TIME = re.compile(r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-9]{2}:[0-9]{2}")
"""Time of day, with its date if that is another one."""
TEXT_LIMIT = 500


def begin_rows(project: Project) -> ReadRows:
    """Ask the hosts for the rows of all sessions, by issue; return a function that waits for them.

    A host that does not answer is waited for half a second, and is a problem.
    """
    placements = list_placements(project.root.project(project.name))
    unasked = list[SmError]()
    pool = ThreadPoolExecutor(1)
    asked = pool.submit(_ask, project, placements, unasked.append)
    pool.shutdown(wait=False)

    def finish(now: float, known: Snapshot, report: Callable[[SmError], None]) -> list[SessionRow]:
        shown = asked.result()
        silent = _list_silent(placements, shown, now)
        for problem in (*unasked, *silent, *_list_short(placements, shown)):
            report(problem)
        return [make_row(project, one, shown.get(one.session), known, now) for one in placements]

    return finish


def _ask(
    project: Project, placements: Sequence[Placement], report: Callable[[SmError], None]
) -> dict[str, NodeRow]:
    found: dict[str, NodeRow] = {}
    for name in dict.fromkeys(one.runner for one in placements):
        try:
            there = [one for one in placements if one.runner == name]
            found.update(load_runner(name).show(project, there))
        except SmError as error:
            report(error)
    return found


def _list_silent(
    placements: Sequence[Placement], shown: Mapping[str, NodeRow], now: float
) -> Iterator[SmError]:
    """Yield a sentence for each host that does not answer, with the issues that it has."""
    silent: dict[tuple[str, float], list[str]] = {}
    for one in placements:
        seen = shown.get(one.session)
        if seen and seen.trouble:
            silent.setdefault((seen.trouble, seen.known_at), []).append(spell(one.issue))
    for (trouble, known_at), issues in silent.items():
        heard = f"last heard {_format_age(now - known_at)} ago" if known_at else "never heard"
        yield SmError(f"{one_line(trouble, TEXT_LIMIT)}: {heard}, with {', '.join(issues)}")


def _list_short(placements: Sequence[Placement], shown: Mapping[str, NodeRow]) -> Iterator[SmError]:
    """Yield a sentence for each host that lacks something."""
    lacking = {
        one.host: seen.short
        for one in placements
        if (seen := shown.get(one.session)) and seen.short
    }
    for host, short in lacking.items():
        said = one_line(short, TEXT_LIMIT)
        yield SmError(f"host '{one_line(host, TEXT_LIMIT)}' gets nothing new: {said}")


def make_row(
    project: Project, placement: Placement, shown: NodeRow | None, known: Snapshot, now: float
) -> SessionRow:
    """Return the row that shows what its node has said of the session.

    Its name, its issue and its pull request are what is `known` here.
    """
    row = _read_row(shown.row, shown.known_at) if shown and shown.row else None
    host = one_line(shown.host, TEXT_LIMIT) if shown and shown.host else placement.host
    issue = known.issue(placement.issue)
    title = one_line(issue.title, TEXT_LIMIT) if issue else ""
    if row is None or shown is None:
        words = one_line(shown.words, TEXT_LIMIT) if shown else ""
        return SessionRow(
            id=placement.session,
            name=f"{placement.project}#{placement.issue}",
            project=placement.project,
            issue=placement.issue,
            title=title,
            begun_at=placement.placed_at or now,
            state=ShownState.STARTING,
            waits_for=words or f"host '{placement.host}' to say how it stands",
            monitor=True,
            proof=Proof(Evidence.RECORD, placement.placed_at),
            host=host,
        )
    later_s = max(0.0, now - shown.known_at)
    pull = _find_pull(project, placement, known)
    made = structs.replace(
        row,
        id=placement.session,
        name=f"{placement.project}#{placement.issue}",
        project=placement.project,
        issue=placement.issue,
        title=title or row.title,
        host=host,
        pull=pull.number if pull else 0,
        link=project.settings.forge.link_pull(pull.number) if pull else "",
        head=pull.head if pull else "",
        problem=f"{host} says: {row.problem}" if row.problem else "",
    )
    is_open = pull is not None and pull.state is PullState.OPEN
    made = _take_need(project, placement, made, pull if is_open else None)
    if shown.trouble:
        silent = f"host '{placement.host}', which was heard last {_format_age(later_s)} ago"
        return structs.replace(made, waits_for=silent)
    return made


def _read_row(said: Mapping[str, Any], known_at: float) -> SessionRow | None:
    """Return the row, if this version of `sm`, or one with fewer fields, has made it."""
    try:
        row = read_status(said, known_at)
    except msgspec.ValidationError:
        return None
    texts = {
        name: one_line(value, TEXT_LIMIT)
        for name in SessionRow.__struct_fields__
        if type(value := getattr(row, name)) is str
    }
    # What another machine says has taken its time: each look finds the same moments.
    moments = {"begun_at": round(row.begun_at, 0), "event_at": round(row.event_at, 0)}
    return structs.replace(row, **texts, **moments)


def _find_pull(project: Project, placement: Placement, known: Snapshot) -> PullRequest | None:
    """Find the pull request of its branch; None if that was over before the session was placed."""
    pull = known.pull(project.settings.branch(placement.issue))
    return None if pull is None or 0 < pull.closed_at < placement.placed_at else pull


def _take_need(
    project: Project, placement: Placement, row: SessionRow, pull: PullRequest | None
) -> SessionRow:
    """Say again what the row needs a person for: of the node's words only the agent's are taken."""
    said = row.need
    if said is None:
        return row
    name = f"{placement.project}#{placement.issue}"
    case = said.case or Case(row="", address=name, unasked=True)
    need = describe_need(_readdress(project, placement, case, pull))
    entry = OpenNeed(
        key=f"{placement.host}:{one_line(said.key, TEXT_LIMIT)}",
        kind=need.kind or said.kind,
        project=placement.project,
        issue=placement.issue,
        session=placement.session,
        name=name,
        title=row.title,
        since=said.since,
        text="",
        act=NO_ACT,
        whole=bound_quotation(said.whole),
        merges=said.merges,
    )
    told = put_into_words(entry, need, project.settings, pull)
    asked = row.state is ShownState.ESCALATED
    return structs.replace(
        row,
        need=told,
        waits_for=f"{need.waits_for}: {need.command}" if asked else row.waits_for,
        why=one_line(need.why, TEXT_LIMIT) if asked else row.why,
    )


def _readdress(
    project: Project, placement: Placement, case: Case, pull: PullRequest | None
) -> Case:
    """Make it a case of the session that was placed, and of what was seen here of the forge."""
    texts: dict[str, Any] = {
        field: one_line(redact(value), TEXT_LIMIT)
        for field in Case.__struct_fields__
        if type(value := getattr(case, field)) is str
    }
    return structs.replace(
        case,
        **texts
        | {
            "address": f"{placement.project}#{placement.issue}",
            "pull": pull.number if pull else 0,
            "held": redact(pull.held) if pull else "",
            "reviewed_at": find_review_page(project.settings, pull),
            "approved_at": find_approval_page(pull.check) if pull else "",
            "first_until": case.first_until if TIME.fullmatch(case.first_until) else "",
            "raises": case.raises if case.raises in _list_raises(placement) else None,
        },
    )


def _list_raises(placement: Placement) -> tuple[Act, ...]:
    """List the acts that raise a limit of the session."""
    project, issue = placement.project, placement.issue
    limits = (
        *(f"{project} {issue}", f"{project} {issue} --session"),
        *(f"{project} --day", f"{project} --project", "--day"),
    )
    return tuple(Act(ActKind.RAISE, limit=limit) for limit in limits)


def _format_age(seconds: float) -> str:
    return duration.show(max(0, round(seconds)))
