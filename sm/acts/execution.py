"""Carries acts out, by the same functions and words for the page, `sm top`, HTTP and the verbs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from sm.acts.permission import check_not_own, find_author_name
from sm.base.act import Act, ActKind
from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, spell
from sm.sessions.caller import CallerError
from sm.sessions.session import AdHocSession, IssueSession

if TYPE_CHECKING:
    from sm.adapters.forge.model import ReviewState
    from sm.context.rotation import RotationRecord
    from sm.issues.meters import SetLimit
    from sm.messages.send import Sent
    from sm.sessions.caller import Caller
    from sm.sessions.pause import PauseTarget
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession
    from sm.store.paths import Root
    from sm.views.place import Place


class Finder(Protocol):
    """Lookups by which a face finds what an act is about. Each raises SmError if it is gone."""

    @property
    def root(self) -> Root:
        """Root of the sessions' state."""

    def find_project(self, name: str) -> Project:
        """Find a project, as it is configured now."""

    def list_projects(self) -> list[Project]:
        """List the projects of the configuration; none without one."""

    def find_session(self, ident: str) -> AnySession:
        """Find a session of this machine by its id."""

    def find_place(self, ident: str) -> Place:
        """Find where the session of that id is."""

    def find_limit(self, act: Act) -> SetLimit:
        """Find the limit that an act is about."""


def carry_out(finder: Finder, act: Act, text: str, caller: Caller) -> list[str]:
    """Carry the act out, with a person's words; return lines that say what came of it.

    Raises:
        SmError: it cannot be done, or the caller may not do it; then nothing was done.

    """
    from sm.messages.delivery import TEXT_LIMIT

    if len(text) > TEXT_LIMIT:
        raise UsageError(f"the text is above {TEXT_LIMIT:,} characters")
    if act.kind in OF_SESSION and act.session:
        return finder.find_place(act.session).carry_out(act, text, caller)
    if act.kind in FOR_PEOPLE and caller.session:
        raise CallerError(f"only a person may {FOR_PEOPLE[act.kind]} here")
    return ACTS[act.kind](finder, act, text, caller)


OF_SESSION = frozenset(
    {
        *(ActKind.REPLY, ActKind.SEND, ActKind.PAUSE, ActKind.RESUME),
        *(ActKind.ROTATE, ActKind.RECOVER, ActKind.KILL),
    }
)
"""Acts that are carried out where the session is; all others on the forge, or by a limit."""
FOR_PEOPLE = {
    ActKind.APPROVE: "approve it",
    ActKind.REQUEST_CHANGES: "review it",
    ActKind.MERGE: "merge it",
    ActKind.RERUN: "run CI again",
    ActKind.ALLOW: "allow it",
    ActKind.RAISE: "raise a limit",
    ActKind.LOWER: "lower a limit",
}
"""Acts that only a person may carry out where sessions are shown, with their names in a refusal."""


# Messages and answers


def answer(
    project: Project, issue: IssueId, text: str, caller: Caller, ident: str | None = None
) -> list[str]:
    """Answer the question of an issue's session; return lines that say what came of it.

    An answer that the session has had under this `ident` is not given again.

    Raises:
        SmError: it is refused.

    """
    from sm.issues.reply import reply
    from sm.sessions import registry
    from sm.sessions.project import find_person
    from sm.store.paths import check_name

    session = registry.load_for(project, issue)
    by = caller.session
    author = by.address if by else find_person()
    key = check_name(ident, "id") if ident else None
    if not reply(project, issue, author, text, by_session=by is not None, key=key):
        return [
            f"answered {spell(issue)} already: the same answer was taken before, and not given "
            "again"
        ]
    told = f"answered {spell(issue)}: the agent gets it as soon as it can be typed"
    return [told, *list_paused(session)]


def _reply(finder: Finder, act: Act, text: str, caller: Caller) -> list[str]:
    if act.number:
        project, issue = finder.find_project(act.project), act.number
    else:
        session = finder.find_session(act.session)
        if not isinstance(session, IssueSession):
            raise UsageError(f"'{session.address}' works on no issue: send it a message")
        project, issue = session.project, session.issue
    check_not_own(caller, project, "answer its questions", issue=issue)
    return answer(project, issue, text, caller)


def _send(finder: Finder, act: Act, text: str, caller: Caller) -> list[str]:
    from sm.messages.send import Letter, send

    session = finder.find_session(act.session)
    return [tell_sent(session, send(caller, session, Letter(text)))]


def tell_sent(session: AnySession, sent: Sent) -> str:
    """Say in a line what has become of a message."""
    from sm.base.refusal import Status

    name = session.address
    match sent.outcome.status:
        case Status.ACCEPTED:
            return f"accepted by {name}"
        case Status.TYPED:
            return f"typed to {name} (its client cannot confirm)"
        case Status.WAITING:
            return f"queued for {name}: {_explain_waiting(session, sent)} ({sent.ident})"
        case _:
            return f"indeterminate: typed to {name}, not confirmed yet; sm queue {name} tells more"


def _explain_waiting(session: AnySession, sent: Sent) -> str:
    """Say what the message waits for; of a pause also since when, and the command that ends it."""
    from sm.base.refusal import Refusal
    from sm.sessions import pause

    found = pause.find(session.root, session.project_name, session.name)
    is_paused = sent.outcome.refusal is Refusal.PAUSED
    return found.sentence if found and is_paused else sent.outcome.sentence


def list_paused(session: AnySession) -> list[str]:
    """Return the sentence that says that the session is paused, or an empty list."""
    from sm.sessions import pause

    found = pause.find(session.root, session.project_name, session.name)
    return [found.sentence] if found else []


# Pull requests and issues


def _approve(finder: Finder, act: Act, text: str, _caller: Caller) -> list[str]:
    from sm.adapters.forge.model import ReviewState

    return _review(finder, act, text, ReviewState.APPROVED)


def _request_changes(finder: Finder, act: Act, text: str, _caller: Caller) -> list[str]:
    from sm.adapters.forge.model import ReviewState

    if not text.strip():
        raise UsageError("say what is to change: nothing was sent")
    return _review(finder, act, text, ReviewState.CHANGES_REQUESTED)


def _review(finder: Finder, act: Act, text: str, verdict: ReviewState) -> list[str]:
    from sm.adapters.forge.model import ReviewState
    from sm.issues import review

    project = finder.find_project(act.project)
    _check_head(act)
    approves = verdict is ReviewState.APPROVED
    merges = approves and review.merges_when_approved(project, act.pull)
    given = review.review(
        project,
        act.pull,
        verdict,
        text,
        author=find_author_name(project, None),
        head=act.head,
        known=act.known,
    )
    return [review.tell_verdict(given, act.pull, merges=merges)]


def _merge(finder: Finder, act: Act, _text: str, _caller: Caller) -> list[str]:
    from sm.issues import review

    project = finder.find_project(act.project)
    _check_head(act)
    author = find_author_name(project, None)
    return [review.tell_merge(review.merge(project, act.pull, head=act.head, author=author))]


def _check_head(act: Act) -> None:
    if not act.head:
        raise UsageError("say which commit is meant: load the page again")


def _rerun(finder: Finder, act: Act, _text: str, _caller: Caller) -> list[str]:
    from sm.issues.review import rerun_ci

    head = rerun_ci(finder.find_project(act.project), act.number)
    return [f"CI runs again on {head[:12]}"]


def _allow(finder: Finder, act: Act, _text: str, _caller: Caller) -> list[str]:
    from sm.issues.act.unblock import unblock

    unblock(finder.find_project(act.project), act.number)
    return [
        f"issue {spell(act.number)} is in the backlog again: the next tick of dev-poll takes it up"
    ]


# Sessions


def _pause(finder: Finder, act: Act, text: str, caller: Caller) -> list[str]:
    from sm.base.text import one_line
    from sm.messages import suspension

    part = _find_paused(finder, act)
    by = suspension.name_caller(finder.root, caller, [part])
    told = suspension.begin(finder.root, [part], by, one_line(text))
    return [*told, *(said for said, _ in tell_nodes(finder.list_projects(), [part], "pause"))]


def _resume(finder: Finder, act: Act, _text: str, caller: Caller) -> list[str]:
    from sm.messages import suspension

    part = _find_paused(finder, act)
    told = suspension.end(finder.root, [part], suspension.name_caller(finder.root, caller, [part]))
    return [*told, *(said for said, _ in tell_nodes(finder.list_projects(), [part], "resume"))]


def _find_paused(finder: Finder, act: Act) -> PauseTarget:
    """Find what a pause is about: a session, a project, or everything."""
    from sm.messages import suspension
    from sm.sessions.pause import EVERYTHING

    if act.session:
        return suspension.name_session(finder.find_session(act.session))
    if act.project:
        return suspension.name_project(finder.find_project(act.project).name)
    return EVERYTHING


def tell_nodes(
    projects: Iterable[Project], parts: Collection[PauseTarget], *words: str
) -> Iterator[tuple[str, bool]]:
    """Have each node with sessions of these projects do it as well; yield its words.

    With them comes whether it has done it.
    """
    from sm.base.errors import SmError
    from sm.sessions.pause import EVERYTHING, Extent
    from sm.views.place import tell_remote

    named = {one.name for one in parts if one.extent is Extent.PROJECT}
    for project in projects:
        if EVERYTHING in parts or project.name in named:
            for told in tell_remote(project, *words, project.name):
                if isinstance(told, SmError):
                    yield f"{told.message}: say it again when it does", False
                else:
                    yield told, True


def _rotate(finder: Finder, act: Act, _text: str, caller: Caller) -> list[str]:
    session = finder.find_session(act.session)
    return [tell_rotation(session, rotate(session, caller)), *list_paused(session)]


def rotate(session: AnySession, caller: Caller) -> RotationRecord:
    """Begin to replace the context of a session.

    Raises:
        CallerError: the session is neither the caller's own nor one that it has begun.
        SmError: it cannot be done now.

    """
    from sm.context import cycle
    from sm.sessions import registry

    caller.check_may_rotate(session, registry.list_all(session.root, lambda _: None))
    return cycle.start(session)


def tell_rotation(session: AnySession, record: RotationRecord) -> str:
    """Say what follows now that a context is to be replaced."""
    name = session.address
    return (
        f"{name} is asked for a handoff document in {record.folder}; when it is whole, its context "
        f"is cleared, and it goes on from there: 'sm health {name}' has what came of it"
    )


def _recover(finder: Finder, act: Act, _text: str, caller: Caller) -> list[str]:
    project = finder.find_project(act.project)
    check_not_own(caller, project, "restart it", issue=act.number)
    return recover(project, act.number)


def recover(project: Project, issue: IssueId) -> list[str]:
    """Restart the agent of an issue; return lines that say what came of it.

    Raises:
        SmError: it cannot be restarted.

    """
    from sm.issues.by_hand import recover as recover_session

    session = recover_session(project, issue)
    return [f"recovering {session.name} in {session.worktree}", *list_paused(session)]


def _kill(finder: Finder, act: Act, _text: str, caller: Caller) -> list[str]:
    return list(end(finder.find_session(act.session), caller))


def end(session: AnySession, caller: Caller) -> list[str]:
    """End a session, as a person does; return lines that say what came of it.

    Raises:
        CallerError: the session is neither the caller's own nor one that it has begun.
        SmError: it cannot be ended.

    """
    from sm.issues.by_hand import kill
    from sm.personal import lifecycle
    from sm.sessions import registry

    caller.check_may_end(session, registry.list_all(session.root, lambda _: None))
    if isinstance(session, AdHocSession):
        return [lifecycle.end(session)]
    return kill(session.project, session.issue)


# Limits


def _raise(finder: Finder, act: Act, text: str, _caller: Caller) -> list[str]:
    return [f"the limit was {_find_limit(finder, act).raise_by(text.strip())}"]


def _lower(finder: Finder, act: Act, text: str, _caller: Caller) -> list[str]:
    return [f"the limit was {_find_limit(finder, act).lower_by(text.strip())}"]


def _find_limit(finder: Finder, act: Act) -> SetLimit:
    from sm.issues import meters

    limit = finder.find_limit(act)
    meters.check_unchanged(limit, act.known)
    return limit


ACTS: dict[ActKind, Callable[[Finder, Act, str, Caller], list[str]]] = {
    ActKind.REPLY: _reply,
    ActKind.SEND: _send,
    ActKind.APPROVE: _approve,
    ActKind.REQUEST_CHANGES: _request_changes,
    ActKind.MERGE: _merge,
    ActKind.RERUN: _rerun,
    ActKind.ALLOW: _allow,
    ActKind.PAUSE: _pause,
    ActKind.RESUME: _resume,
    ActKind.ROTATE: _rotate,
    ActKind.RECOVER: _recover,
    ActKind.KILL: _kill,
    ActKind.RAISE: _raise,
    ActKind.LOWER: _lower,
}
