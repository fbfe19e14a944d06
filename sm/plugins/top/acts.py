"""What a person can do to a session here: each by the functions of the verb, in its words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from sm.adapters.forge.model import ReviewState
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.cli.agent_forge import is_agent
from sm.cli.forges import find_author_name
from sm.issues import meters, review
from sm.issues.meters import SetLimit
from sm.plugins.top.listing import Entry
from sm.sessions import pause, registry
from sm.sessions.caller import identify
from sm.sessions.project import Project
from sm.sessions.session import AnySession, IssueSession
from sm.store.paths import Root
from sm.views.board import BoardRow
from sm.views.offers import Act, list_answers
from sm.views.open_need import OpenNeed

if TYPE_CHECKING:
    from sm.issues.reaching import Elsewhere

Projects = Mapping[str, Project]
"""Those that are shown, by their names."""
NO_PROJECTS: Projects = MappingProxyType({})


class Plan(Struct, frozen=True):
    """An act upon an entry, before it is done; `says` is what it will do.

    `asks` is what a person is to write, '' for nothing; it may be left out if `optional`, and
    `proposal` is there to be changed. Some acts are about a `project` and a `number`, that of a
    pull request or an issue, at the commit `head`; another one raises a `limit`. `known` is what
    was decided before.
    """

    act: Act
    key: str
    says: str
    session: str = ""
    asks: str = ""
    optional: bool = False
    proposal: str = ""
    project: str = ""
    number: int = 0
    head: str = ""
    known: str = ""
    limit: SetLimit | None = None


OF_PULL = frozenset({Act.APPROVE, Act.REQUEST_CHANGES, Act.MERGE})
"""What is decided by what a pull request changes, which is shown before."""
PATCH_LIMIT = 200_000
"""Bytes of a patch that are shown; the page shows more."""


class ShownChange(Struct, frozen=True):
    """What the pull request of an entry changes up to the commit `head`, or why that is not known.

    `plan` is the act upon that very commit.
    """

    key: str
    head: str = ""
    patch: str = ""
    plan: Plan | None = None
    problem: str = ""


def read_change(root: Root, plan: Plan, entry: Entry, projects: Projects) -> ShownChange:
    """Read what the act is about; the commit and what it changes are of one look at the forge."""
    try:
        project = _open(plan, projects)
        change = review.read_change(project, plan.number, limit=PATCH_LIMIT)
        at = bind(root, plan.act, entry, projects, change.head)
    except SmError as error:
        return ShownChange(plan.key, problem=error.message)
    patch = change.patch.decode("utf-8", "replace")
    return ShownChange(plan.key, change.head, patch, at)


def bind(root: Root, act: Act, entry: Entry, projects: Projects, head: str) -> Plan:
    """What the act would do to the commit `head`, which may be newer than what the list knows."""
    if entry.row and entry.need and entry.row.head != head:
        need = structs.replace(entry.need, merges=False)  # what is missing there is not known yet
        entry = structs.replace(entry, row=structs.replace(entry.row, head=head), need=need)
    return plan(root, act, entry, projects)


TEXT_VERBS = {"sm reply ": Act.REPLY, "sm send ": Act.SEND}
"""How a command begins that answers a need by words."""
ASKED = {Act.REPLY: "type here", Act.SEND: "type here"}


def choose_answer(entry: Entry) -> Act | None:
    """What answers the entry's need; None if there are several ways."""
    command = entry.need.command if entry.need else ""
    by_words = next((act for start, act in TEXT_VERBS.items() if command.startswith(start)), None)
    if by_words or entry.need is None or entry.over:
        return by_words or Act.SEND
    if entry.need.kind is NeedKind.BUDGET:
        return Act.RAISE
    offers = list_answers(entry.need, entry.row)
    if len(offers) > 1:
        return None
    return offers[0].act if offers else Act.SEND


KEYS = {"A": Act.APPROVE, "C": Act.REQUEST_CHANGES, "M": Act.MERGE, "B": Act.RAISE}
"""What a key says of which only some needs have any."""


def list_keys(entry: Entry | None) -> list[str]:
    """Those of these keys that answer the entry's need."""
    if entry is None or entry.need is None or entry.over:
        return []
    if entry.need.kind is NeedKind.BUDGET:
        return ["B"]
    acts = {offer.act for offer in list_answers(entry.need, entry.row)}
    return [key for key, act in KEYS.items() if act in acts]


def plan(root: Root, act: Act, entry: Entry, projects: Projects = NO_PROJECTS) -> Plan:
    """What the act would do to the entry.

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
    if act is Act.PAUSE and _is_paused(root, entry.row):
        act = Act.RESUME
    says = SAYS[act].format(name=entry.name)
    return Plan(act, entry.key, says, entry.row.id, asks=ASKED.get(act, ""))


def _is_paused(root: Root, row: BoardRow) -> bool:
    """Whether it rests, here or as the node says that it is on."""
    if row.host:
        return row.inside is not None and row.inside.paused
    return pause.read(root).find(row.project, row.id) is not None


SAYS = {
    Act.REPLY: "reply to {name}: its agent gets it as a message, its issue as a comment",
    Act.SEND: "send to {name}: its agent gets it at the end of its turn",
    Act.PAUSE: "pause {name}? Its agent ends its turn, then rests",
    Act.RESUME: "let {name} go on? What was due meanwhile is done then",
}


def _plan_answer(root: Root, act: Act, entry: Entry, projects: Projects) -> Plan:
    """What answers the need, in the words of the page."""
    need = entry.need
    if need is None:
        raise SmError(f"'{entry.name}' needs nobody to {MEANT[act]}")
    found = list_limits(root, need, projects) if act is Act.RAISE else []
    limits = {one.command: one for one in found}
    for offer in list_answers(need, entry.row, limits):
        if offer.act is act:
            return Plan(
                act,
                entry.key,
                offer.tells,
                offer.session,
                asks=offer.asks,
                optional=offer.optional,
                proposal=offer.proposal,
                project=offer.project or need.project,
                number=offer.number,
                head=offer.head,
                known=offer.known,
                limit=limits.get(need.command),
            )
    raise SmError(f"'{entry.name}' needs something else: {need.command}")


MEANT = {
    Act.APPROVE: "approve it",
    Act.REQUEST_CHANGES: "review it",
    Act.MERGE: "merge it",
    Act.RERUN: "run CI again",
    Act.ALLOW: "allow it",
    Act.RAISE: "raise a limit",
}


def list_limits(root: Root, need: OpenNeed, projects: Projects) -> list[SetLimit]:
    """The limits that the need may be about."""
    if there := find_there(root, need.session, projects):
        from sm.views import steering

        return steering.list_limits(there, need)
    if need.session:
        session = registry.find(root, need.session)
        return meters.list_limits(session) if session else []
    project = projects.get(need.project)
    return meters.list_limits(project) if project else []


def carry_out(
    root: Root, plan: Plan, text: str = "", projects: Projects = NO_PROJECTS
) -> list[str]:
    """Do it; return what came of it.

    Raises:
        SmError: it is refused.

    """
    if plan.act in DEEDS and (there := find_there(root, plan.session, projects)):
        from sm.views import steering

        return steering.carry_out(identify(root, os.environ), there, plan.act, text)
    if plan.act in DEEDS:
        return DEEDS[plan.act](root, registry.load(root, plan.session), text)
    if is_agent(root):
        raise SmError(f"only a person may {MEANT[plan.act]} here")
    if plan.limit:
        return [f"the limit was {plan.limit.raise_by(text.strip())}"]
    return ANSWERS[plan.act](_open(plan, projects), plan, text)


def _open(plan: Plan, projects: Projects) -> Project:
    """The project of the plan. What was opened stays as it was: so it is opened anew."""
    project = projects.get(plan.project)
    if project is None:
        raise SmError(f"the project '{plan.project}' is not shown here")
    return Project(project.config, project.settings)


def find_there(root: Root, session: str, projects: Projects) -> Elsewhere | None:
    """The session elsewhere of that id; None if it is on record here, or is none."""
    if not session or root.session(session).identity.exists():
        return None
    from sm.views import steering

    return steering.find(list(projects.values()), session)


def _approve(project: Project, plan: Plan, text: str) -> list[str]:
    return _review(project, plan, ReviewState.APPROVED, text)


def _request_changes(project: Project, plan: Plan, text: str) -> list[str]:
    return _review(project, plan, ReviewState.CHANGES_REQUESTED, text)


def _review(project: Project, plan: Plan, verdict: ReviewState, text: str) -> list[str]:
    approves = verdict is ReviewState.APPROVED
    merges = approves and review.merges_when_approved(project, plan.number)
    given = review.review(
        project,
        plan.number,
        verdict,
        text,
        author=find_author_name(project, None),
        head=plan.head,
        known=plan.known,
    )
    return [review.tell_verdict(given, plan.number, merges=merges)]


def _merge(project: Project, plan: Plan, _text: str) -> list[str]:
    author = find_author_name(project, None)
    return [review.tell_merge(review.merge(project, plan.number, head=plan.head, author=author))]


def _rerun(project: Project, plan: Plan, _text: str) -> list[str]:
    from sm.issues import ci

    return [f"CI runs again on {ci.rerun(project, plan.number)[:12]}"]


def _allow(project: Project, plan: Plan, _text: str) -> list[str]:
    from sm.issues.act.unblock import unblock

    unblock(project, plan.number)
    return [f"issue #{plan.number} is in the backlog again"]


ANSWERS: dict[Act, Callable[[Project, Plan, str], list[str]]] = {
    Act.APPROVE: _approve,
    Act.REQUEST_CHANGES: _request_changes,
    Act.MERGE: _merge,
    Act.RERUN: _rerun,
    Act.ALLOW: _allow,
}
"""What answers a need that is no question."""


def _reply(_root: Root, session: AnySession, text: str) -> list[str]:
    from sm.cli.reply import answer

    if not isinstance(session, IssueSession):
        raise SmError(f"'{session.address}' works on no issue: send it a message")
    return answer(session.project, session.issue, text)


def _send(root: Root, session: AnySession, text: str) -> list[str]:
    from sm.cli.send import tell
    from sm.messages.send import Letter, send

    sent = send(identify(root, os.environ), session, Letter(text))
    return [tell(session, sent)]


def _pause(root: Root, session: AnySession, _text: str) -> list[str]:
    from sm.messages import pausing

    return pausing.begin(root, *_find_part(root, session))


def _resume(root: Root, session: AnySession, _text: str) -> list[str]:
    from sm.messages import pausing

    return pausing.end(root, *_find_part(root, session))


def _find_part(root: Root, session: AnySession) -> tuple[list[pause.Part], str]:
    """What is meant, and who has said it; an agent may do so only with what is its own."""
    from sm.messages import pausing

    parts = [pausing.name_session(session)]
    return parts, pausing.name_caller(root, identify(root, os.environ), parts)


DEEDS: dict[Act, Callable[[Root, AnySession, str], list[str]]] = {
    Act.REPLY: _reply,
    Act.SEND: _send,
    Act.PAUSE: _pause,
    Act.RESUME: _resume,
}
