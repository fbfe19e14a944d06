"""Acts that a person can do to a session in `sm top`, by the functions and words of each verb."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sm.acts import here
from sm.acts.execution import FOR_PEOPLE
from sm.acts.offer import list_answers
from sm.base.act import Act, ActKind
from sm.base.errors import SmError, UsageError
from sm.base.need import NeedKind
from sm.issues import meters, review
from sm.issues.meters import SetLimit
from sm.plugins.top.listing import ListEntry
from sm.sessions import pause, registry
from sm.sessions.caller import identify
from sm.sessions.project import Project
from sm.sessions.session import AnySession
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow

if TYPE_CHECKING:
    from sm.views.place import Place

Projects = Mapping[str, Project]
"""Projects that are shown, by their names."""
NO_PROJECTS: Projects = MappingProxyType({})


class ActPlan(Struct, frozen=True):
    """An act upon an entry, before it is done; `says` is what it will do.

    `asks` is what a person is to write, '' for nothing; it may be left out if `optional`, and
    `proposal` is there to be changed. `raised` is the limit that an act raises.
    """

    act: Act
    key: str
    says: str
    asks: str = ""
    optional: bool = False
    proposal: str = ""
    raised: SetLimit | None = None

    @property
    def kind(self) -> ActKind:
        """Kind of the planned act."""
        return self.act.kind


OF_PULL = frozenset({ActKind.APPROVE, ActKind.REQUEST_CHANGES, ActKind.MERGE})
"""Acts that are decided by what a pull request changes, which is shown before."""
PATCH_LIMIT = 200_000
"""Bytes of a patch that are shown; the page shows more."""


class ShownChange(Struct, frozen=True):
    """Change in an entry's pull request up to the commit `head`, or why that is not known.

    `plan` is the act upon that very commit.
    """

    key: str
    head: str = ""
    patch: str = ""
    plan: ActPlan | None = None
    problem: str = ""


def read_change(root: Root, plan: ActPlan, entry: ListEntry, projects: Projects) -> ShownChange:
    """Read what the act is about; the commit and its changes are from one look at the forge."""
    try:
        project = TopFinder(root, projects).find_project(plan.act.project)
        change = review.read_change(project, plan.act.pull, limit=PATCH_LIMIT)
        at = bind(root, plan.kind, entry, projects, change.head)
    except SmError as error:
        return ShownChange(plan.key, problem=error.message)
    patch = change.patch.decode("utf-8", "replace")
    return ShownChange(plan.key, change.head, patch, at)


def bind(root: Root, act: ActKind, entry: ListEntry, projects: Projects, head: str) -> ActPlan:
    """Plan the act upon the commit `head`, which may be newer than what the list knows."""
    if entry.row and entry.need and entry.row.head != head:
        need = structs.replace(entry.need, merges=False)  # what is missing there is not known yet
        entry = structs.replace(entry, row=structs.replace(entry.row, head=head), need=need)
    return plan(root, act, entry, projects)


TYPED = frozenset({ActKind.REPLY, ActKind.SEND})
"""Acts that answer a need by words alone."""
ASKED = dict.fromkeys(TYPED, "type here")


def choose_answer(entry: ListEntry) -> ActKind | None:
    """Choose the act that answers the entry's need; None if there are several ways."""
    kind = entry.need.act.kind if entry.need else ActKind.SEND
    if entry.need is None or entry.over or kind in TYPED:
        return kind if kind in TYPED else ActKind.SEND
    if entry.need.kind is NeedKind.BUDGET:
        return ActKind.RAISE
    offers = list_answers(entry.need, entry.row)
    if len(offers) > 1:
        return None
    return offers[0].act.kind if offers else ActKind.SEND


KEYS = {"A": ActKind.APPROVE, "C": ActKind.REQUEST_CHANGES, "M": ActKind.MERGE, "B": ActKind.RAISE}
"""Acts by their keys; only some needs offer them."""


def list_keys(entry: ListEntry | None) -> list[str]:
    """List the keys of `KEYS` that answer the entry's need."""
    if entry is None or entry.need is None or entry.over:
        return []
    if entry.need.kind is NeedKind.BUDGET:
        return ["B"]
    acts = {offer.act.kind for offer in list_answers(entry.need, entry.row)}
    return [key for key, act in KEYS.items() if act in acts]


def plan(root: Root, act: ActKind, entry: ListEntry, projects: Projects = NO_PROJECTS) -> ActPlan:
    """Plan what the act would do to the entry.

    Raises:
        SmError: it cannot be done to it, or not any more.

    """
    if entry.over:
        raise SmError(f"'{entry.name}' is over: {entry.over}")
    if act not in SAYS:
        return _plan_answer(root, act, entry, projects)
    if entry.row is None:
        command = f": {entry.need.command}" if entry.need else ""
        raise SmError(f"that is no session; a shell has the command for it{command}")
    if act is ActKind.PAUSE and _is_paused(root, entry.row):
        act = ActKind.RESUME
    says = SAYS[act].format(name=entry.name)
    return ActPlan(Act(act, session=entry.row.id), entry.key, says, asks=ASKED.get(act, ""))


def _is_paused(root: Root, row: SessionRow) -> bool:
    """Say whether the session rests, here or as its node says."""
    if row.host:
        return row.paused
    return pause.read(root).find(row.project, row.id) is not None


SAYS = {
    ActKind.REPLY: "reply to {name}: its agent gets it as a message, its issue as a comment",
    ActKind.SEND: "send to {name}: its agent gets it at the end of its turn",
    ActKind.PAUSE: "pause {name}? Its agent ends its turn, then rests",
    ActKind.RESUME: "let {name} go on? What was due meanwhile is done then",
}


def _plan_answer(root: Root, act: ActKind, entry: ListEntry, projects: Projects) -> ActPlan:
    """Plan the answer to the need, in the words of the page."""
    need = entry.need
    if need is None:
        raise SmError(f"'{entry.name}' needs nobody to {FOR_PEOPLE[act]}")
    found = list_limits(root, need, projects) if act is ActKind.RAISE else []
    limits = {one.act: one for one in found}
    for offer in list_answers(need, entry.row, limits):
        if offer.act.kind is act:
            return ActPlan(
                structs.replace(offer.act, project=offer.act.project or need.project),
                entry.key,
                offer.tells,
                asks=offer.asks,
                optional=offer.optional,
                proposal=offer.proposal,
                raised=limits.get(need.act),
            )
    raise SmError(f"'{entry.name}' needs something else: {need.command}")


def list_limits(root: Root, need: OpenNeed, projects: Projects) -> list[SetLimit]:
    """List the limits that the need may be about."""
    if need.session:
        try:
            return find_place(root, need.session, projects).list_limits(need)
        except UsageError:  # it has just ended
            return []
    project = projects.get(need.project)
    return meters.list_limits(project) if project else []


class TopFinder:
    """Finds the subject of an act; `limit` is the one that it would raise."""

    def __init__(self, root: Root, projects: Projects, limit: SetLimit | None = None) -> None:
        """Find among these projects."""
        self.root, self._projects, self._limit = root, projects, limit

    def find_project(self, name: str) -> Project:
        """Find a project, and open it again: what was opened before stays as it was."""
        project = self._projects.get(name)
        if project is None:
            raise SmError(f"the project '{name}' is not shown here")
        return Project(project.config, project.settings)

    def list_projects(self) -> list[Project]:
        """List the projects that are shown."""
        return list(self._projects.values())

    def find_session(self, ident: str) -> AnySession:
        """Find a session of this machine."""
        return registry.load(self.root, ident)

    def find_place(self, ident: str) -> Place:
        """Find where the session of that id is."""
        return here.find_place(self, self._projects.values(), ident)

    def find_limit(self, _act: Act) -> SetLimit:
        """Find the limit that was shown."""
        if self._limit is None:
            raise SmError("there is no such limit")
        return self._limit


def carry_out(
    root: Root, plan: ActPlan, text: str = "", projects: Projects = NO_PROJECTS
) -> list[str]:
    """Carry the act out; return what came of it.

    Raises:
        SmError: it is refused.

    """
    from sm.acts import execution

    found = TopFinder(root, projects, plan.raised)
    return execution.carry_out(found, plan.act, text, identify(root, os.environ))


def find_place(root: Root, session: str, projects: Projects) -> Place:
    """Find where the session of that id is."""
    return TopFinder(root, projects).find_place(session)
