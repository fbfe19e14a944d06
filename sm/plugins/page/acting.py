"""Does what a person wants on the page, by the functions behind the verbs of `sm`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sm.adapters.forge.model import Hold, ReviewState
from sm.base.errors import UsageError
from sm.cli.forges import find_author_name
from sm.context import cycle
from sm.issues import ci, kill, meters, recover, reply, review
from sm.issues.act.unblock import unblock
from sm.issues.meters import SetLimit
from sm.messages import pausing
from sm.messages.delivery import TEXT_LIMIT
from sm.messages.send import Letter, send
from sm.personal import lifecycle
from sm.plugins.page.limits import find_limit, list_limits
from sm.plugins.page.looks import Looks
from sm.sessions.caller import Caller
from sm.sessions.project import Project, find_person
from sm.sessions.session import AdHocSession
from sm.views import steering
from sm.views.offers import Act


class Wish(Struct, frozen=True):
    """What a form asks for: the act, what it is about, and a person's words."""

    act: Act
    session: str = ""
    project: str = ""
    number: int = 0
    head: str = ""
    limit: str = ""
    known: str | None = None
    text: str = ""


def carry_out(looks: Looks, wish: Wish) -> str:
    """Do it, and say what came of it.

    Raises:
        SmError: it cannot be done; then nothing was.

    """
    if len(wish.text) > TEXT_LIMIT:
        raise UsageError(f"the text is above {TEXT_LIMIT:,} characters")
    if wish.act in steering.STEERS and (there := looks.find_there(wish.session)):
        return " ".join(steering.carry_out(Caller(), there, wish.act, wish.text))
    return ACTS[wish.act](looks, wish)


def _reply(looks: Looks, wish: Wish) -> str:
    reply.reply(_project(looks, wish), wish.number, find_person(), wish.text)
    return "Answered: the agent gets it as soon as it can be typed."


def _send(looks: Looks, wish: Wish) -> str:
    session = looks.find_session(wish.session)
    outcome = send(Caller(), session, Letter(wish.text)).outcome
    said = f": {outcome.sentence}" if outcome.sentence else ""
    return f"Message to {session.address} {outcome.status}{said}."


def _approve(looks: Looks, wish: Wish) -> str:
    return _review(looks, wish, ReviewState.APPROVED)


def _request_changes(looks: Looks, wish: Wish) -> str:
    if not wish.text.strip():
        raise UsageError("say what is to change: nothing was sent")
    return _review(looks, wish, ReviewState.CHANGES_REQUESTED)


def _review(looks: Looks, wish: Wish, state: ReviewState) -> str:
    project = _project(looks, wish)
    if not wish.head:
        raise UsageError("say which commit is meant: load the page again")
    merges = state is ReviewState.APPROVED and review.merges_when_approved(project, wish.number)
    given = review.review(
        project,
        wish.number,
        state,
        wish.text,
        author=find_author_name(project, None),
        head=wish.head,
        known=wish.known,
    )
    then = "; nothing else is missing, so it is merged now" if merges else ""
    return f"Pull request {wish.number}: {given.state} at {given.head[:12]}{then}."


def _merge(looks: Looks, wish: Wish) -> str:
    project = _project(looks, wish)
    if not wish.head:
        raise UsageError("say which commit is meant: load the page again")
    author = find_author_name(project, None)
    pull = review.merge(project, wish.number, head=wish.head, author=author)
    at = f"Pull request {wish.number} at {pull.head[:12]}"
    if pull.hold is Hold.QUEUED:
        return f"{at} is queued: the forge merges it."
    return f"{at} is merged as {pull.merged_as[:12]}."


def _rerun(looks: Looks, wish: Wish) -> str:
    head = ci.rerun(_project(looks, wish), wish.number)
    return f"CI runs again on {head[:12]}."


def _allow(looks: Looks, wish: Wish) -> str:
    unblock(_project(looks, wish), wish.number)
    return f"Issue #{wish.number} is in the backlog again: the next tick of dev-poll takes it up."


def _pause(looks: Looks, wish: Wish) -> str:
    root, part = looks.machine.root, pausing.name_session(looks.find_session(wish.session))
    by = pausing.name_caller(root, Caller(), [part])
    return " ".join(pausing.begin(root, [part], by))


def _resume(looks: Looks, wish: Wish) -> str:
    root, part = looks.machine.root, pausing.name_session(looks.find_session(wish.session))
    return " ".join(pausing.end(root, [part], pausing.name_caller(root, Caller(), [part])))


def _rotate(looks: Looks, wish: Wish) -> str:
    session = looks.find_session(wish.session)
    record = cycle.start(session)
    return f"{session.address} is asked for a handoff document in {record.folder}."


def _recover(looks: Looks, wish: Wish) -> str:
    session = recover.recover(_project(looks, wish), wish.number)
    return f"{session.address} is restarted in {session.worktree}."


def _kill(looks: Looks, wish: Wish) -> str:
    session = looks.find_session(wish.session)
    if isinstance(session, AdHocSession):
        return lifecycle.end(session)
    return " ".join(kill.kill(session.project, session.issue))


def _raise(looks: Looks, wish: Wish) -> str:
    return f"The limit was {_limit(looks, wish).raise_by(wish.text.strip())}."


def _lower(looks: Looks, wish: Wish) -> str:
    return f"The limit was {_limit(looks, wish).lower_by(wish.text.strip())}."


def _limit(looks: Looks, wish: Wish) -> SetLimit:
    limit = find_limit(list_limits(looks, wish.session, wish.project), wish.limit)
    meters.check_unchanged(limit, wish.known)
    return limit


def _project(looks: Looks, wish: Wish) -> Project:
    return looks.find_project(wish.project)


ACTS: dict[Act, Callable[[Looks, Wish], str]] = {
    Act.REPLY: _reply,
    Act.SEND: _send,
    Act.APPROVE: _approve,
    Act.REQUEST_CHANGES: _request_changes,
    Act.MERGE: _merge,
    Act.RERUN: _rerun,
    Act.ALLOW: _allow,
    Act.PAUSE: _pause,
    Act.RESUME: _resume,
    Act.ROTATE: _rotate,
    Act.RECOVER: _recover,
    Act.KILL: _kill,
    Act.RAISE: _raise,
    Act.LOWER: _lower,
}
