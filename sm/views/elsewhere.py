"""The sessions of a project that run elsewhere, as rows of the same tables.

A row is what the node's own `sm` has said. What it says is foreign: of each field only what has its
type is taken, and a command that a person is to copy must be one of `sm`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from sm.base.decoding import convert
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.base.text import one_line
from sm.config import duration
from sm.config.forges import ForgeSettings
from sm.issues.hindrances import list_hindrances
from sm.issues.look.snapshot import Snapshot
from sm.issues.placements import list_placements
from sm.issues.runners import Placement, Shown, load_runner
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.store.files import list_names
from sm.views.open_need import OpenNeed
from sm.views.quotation import bound
from sm.views.session import StatusRow
from sm.views.states import ShownState

COMMAND = re.compile(r"sm [a-z]+[A-Za-z0-9 #_./:@=+-]{0,200}")
"""A command that can be copied into a shell: it can do no more than `sm` does."""
PAGE = re.compile(r"https?://[A-Za-z0-9./_:~-]{1,300}")
"""An address that is one word to a shell, too."""
NUMBER = re.compile(r".*/([0-9]{1,9})")
"""The address of a pull request, with its number."""
TEXT_LIMIT = 500


def read_elsewhere(
    project: Project, now: float, known: Snapshot, report: Callable[[SmError], None]
) -> list[StatusRow]:
    """Return a row for each session of the project that runs elsewhere, by issue.

    `known` is what was seen of the forge. `report` gets a problem for each host that does not
    answer. It takes half a second if one does not, and no time if nothing runs elsewhere.
    """
    return begin_to_read(project)(now, known, report)


Finish = Callable[[float, Snapshot, Callable[[SmError], None]], list[StatusRow]]


def begin_to_read(project: Project) -> Finish:
    """Have the hosts asked, and return what waits for their answers: as `read_elsewhere`.

    Who has something to read here does that meanwhile.
    """
    directory = project.root.project(project.name)
    if not list_names(directory.placements):
        return lambda now, known, report: []
    from concurrent.futures import ThreadPoolExecutor

    placements, unasked = list_placements(directory), list[SmError]()
    pool = ThreadPoolExecutor(1)
    asked = pool.submit(_ask, project, placements, unasked.append)
    pool.shutdown(wait=False)

    def finish(now: float, known: Snapshot, report: Callable[[SmError], None]) -> list[StatusRow]:
        shown = asked.result()
        silent = _list_silent(placements, shown, now)
        for problem in (*unasked, *silent, *_list_short(placements, shown)):
            report(problem)
        rows = (make_row(one, shown.get(one.session), now) for one in placements)
        forge = project.settings.forge
        return [take_on_review(forge, _add_title(row, known)) for row in rows]

    return finish


def _add_title(row: StatusRow, known: Snapshot) -> StatusRow:
    """Give a row the issue's title as the forge has it, if no node has said it yet."""
    issue = None if row.title else known.issue(row.issue)
    return structs.replace(row, title=one_line(issue.title)) if issue else row


def take_on_review(forge: ForgeSettings, row: StatusRow) -> StatusRow:
    """Have a person review by the account that is set here, where the node has none."""
    need = row.need
    found = NUMBER.fullmatch(need.command) if need and forge.reviewer else None
    if need is None or found is None or forge.link_pull(int(found[1])) != need.command:
        return row
    command = f"sm review {row.project}#{found[1]} --approve"
    return structs.replace(row, need=structs.replace(need, command=command))


def _ask(
    project: Project, placements: Sequence[Placement], report: Callable[[SmError], None]
) -> dict[str, Shown]:
    found: dict[str, Shown] = {}
    for name in dict.fromkeys(one.runner for one in placements):
        try:
            there = [one for one in placements if one.runner == name]
            found.update(load_runner(name).show(project, there))
        except SmError as error:
            report(error)
    return found


def _list_silent(
    placements: Sequence[Placement], shown: Mapping[str, Shown], now: float
) -> Iterator[SmError]:
    """A sentence for each host that does not answer, with the issues that it has."""
    silent: dict[tuple[str, float], list[str]] = {}
    for one in placements:
        seen = shown.get(one.session)
        if seen and seen.trouble:
            silent.setdefault((seen.trouble, seen.known_at), []).append(f"#{one.issue}")
    for (trouble, known_at), issues in silent.items():
        heard = f"last heard {_format_age(now - known_at)} ago" if known_at else "never heard"
        yield SmError(f"{one_line(trouble, TEXT_LIMIT)}: {heard}, with {', '.join(issues)}")


def _list_short(placements: Sequence[Placement], shown: Mapping[str, Shown]) -> Iterator[SmError]:
    """A sentence for each host that lacks something."""
    lacking = {
        one.host: seen.short
        for one in placements
        if (seen := shown.get(one.session)) and seen.short
    }
    for host, short in lacking.items():
        said = one_line(short, TEXT_LIMIT)
        yield SmError(f"host '{one_line(host, TEXT_LIMIT)}' gets nothing new: {said}")


def make_row(placement: Placement, shown: Shown | None, now: float) -> StatusRow:
    """Return what is known of the session, as it is shown; its own name and issue are ours."""
    row = _read_row(shown.row) if shown and shown.row else None
    host = one_line(shown.host, TEXT_LIMIT) if shown and shown.host else placement.host
    if row is None or shown is None:
        words = one_line(shown.words, TEXT_LIMIT) if shown else ""
        return StatusRow(
            project=placement.project,
            issue=placement.issue,
            title="",
            session=placement.session,
            phase=ShownState.STARTING,
            age_s=max(0.0, now - placement.placed_at) if placement.placed_at else 0.0,
            worktree="",
            waits_for=words or f"host '{placement.host}' to say how it stands",
            monitor=True,
            proof=Proof(Evidence.RECORD, placement.placed_at),
            host=host,
        )
    later_s = max(0.0, now - shown.known_at)
    waits_for = row.waits_for
    if shown.trouble:
        waits_for = f"host '{placement.host}', which was heard last {_format_age(later_s)} ago"
    return structs.replace(
        row,
        project=placement.project,
        issue=placement.issue,
        session=placement.session,
        host=host,
        age_s=row.age_s + later_s,
        last_event_age_s=row.last_event_age_s + later_s,
        waits_for=waits_for,
        need=_check_need(placement, row.need),
    )


def _read_row(said: Mapping[str, Any]) -> StatusRow | None:
    """Return the row, if it is one of this version of `sm`, or of one that has less of it."""
    known = {name: value for name, value in said.items() if name in StatusRow.__struct_fields__}
    try:
        row = convert(known, StatusRow)
    except msgspec.ValidationError:
        return None
    texts: dict[str, Any] = {
        name: one_line(value, TEXT_LIMIT)
        for name in StatusRow.__struct_fields__
        if isinstance(value := getattr(row, name), str) and name != "phase"
    }
    inside = row.inside
    if inside:
        texts["inside"] = structs.replace(inside, words=one_line(inside.words, TEXT_LIMIT))
    return structs.replace(row, **texts)


def _check_need(placement: Placement, need: OpenNeed | None) -> OpenNeed | None:
    if need is None:
        return None
    name = f"{placement.project}#{placement.issue}"
    is_ours = COMMAND.fullmatch(need.command) or PAGE.fullmatch(need.command)
    return structs.replace(
        need,
        key=f"{placement.host}:{one_line(need.key, TEXT_LIMIT)}",
        project=placement.project,
        issue=placement.issue,
        session=placement.session,
        name=name,
        title=one_line(need.title, TEXT_LIMIT),
        text=one_line(need.text, TEXT_LIMIT),
        command=need.command if is_ours else f"sm attach {name}",
        link=need.link if need.link.startswith(("https://", "http://")) else "",
        whole=bound(need.whole),
    )


def list_of_hosts(project: Project) -> Iterator[OpenNeed]:
    """Yield what keeps hosts of the project from having sessions, from files alone."""
    for one in list_hindrances(project):
        yield OpenNeed(
            key=one.key,
            kind=NeedKind.HOST,
            project=project.name,
            since=one.since,
            text=one_line(one.text, TEXT_LIMIT),
            command=one.command,
        )


def _format_age(seconds: float) -> str:
    return duration.show(max(0, round(seconds)))


def list_issues(project: Project) -> set[int]:
    """Return the issues that are worked on elsewhere."""
    directory = project.root.project(project.name)
    if not list_names(directory.placements):
        return set()
    return {one.issue for one in list_placements(directory)}
