"""Takes a person's reply to an escalation: from the command line, or from a chat."""

from __future__ import annotations

import time

from sm.base.errors import AnsweredError, SmError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.base.redact import redact
from sm.base.text import one_line
from sm.channels.channel import PersonReply
from sm.config import duration
from sm.issues.look import answers
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import snapshot
from sm.sessions import monitors, registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.repair import repair

SHOWN = 200
"""Characters of the first answer that the second person is shown."""


class UntoldError(SmError):
    """The answer is on its way to the agent, but could not be put on the issue."""


def reply(
    project: Project,
    issue: IssueId,
    author: str,
    text: str,
    *,
    by_session: bool = False,
    key: str | None = None,
) -> bool:
    """Give `text` to the session of `issue`, and leave a comment on record.

    `by_session`: the answer is that of another session's agent, whose address is `author`. An
    answer whose `key` the session has had already is not given again: the result is False.

    Raises:
        UsageError: the issue has no session, it has asked nothing, or the text is empty.
        AnsweredError: somebody else was first; then the agent gets that answer, and not this one.

    """
    if not text.strip():
        raise UsageError("the answer is empty: nothing was sent")
    session = registry.load_for(project, issue)
    repair(session.root, session.dir)
    # The question may be just on its way, and another answer, too: one is kept at a time.
    with lock.hold(session.dir.lock, timeout_s=120):
        given = answers.find(session.dir, key) if key else None
        if given is None:
            _check_asked(session)
            kept = _keep(session, author, text, key, by_session=by_session)
    _tell(session, given or kept)  # one that was given before may not be on the issue yet
    return given is None


def _check_asked(session: IssueSession) -> None:
    """Refuse an answer where none is wanted."""
    seen = recall(session, snapshot(session.project))
    facts = seen.facts
    if seen.replies:
        raise AnsweredError(_tell_first(session, seen.replies[0]))
    if not facts.escalated:
        last = answers.find_last(session.dir)
        if last:
            raise AnsweredError(
                f"'{session.name}' has asked nothing since: {_tell_first(session, last)}"
            )
        raise UsageError(f"'{session.name}' has asked nothing: see sm status")
    if facts.dialog_at is not None and facts.about == facts.matter:
        raise UsageError(
            f"'{session.name}' has a dialog open in its terminal, which is answered there: "
            f"sm attach {session.record.project} {session.issue}"
        )


def _tell_first(session: IssueSession, first: PersonReply) -> str:
    ago = duration.show(max(0, round(time.time() - first.at)))
    said = f" ('{one_line(redact(first.text), SHOWN)}')" if first.text else ""
    more = f"to say more: sm send {session.address} TEXT"
    return f"{first.author} answered first, {ago} ago{said}; {more}"


def give(session: IssueSession, author: str, text: str, *, key: str | None = None) -> None:
    """Keep the answer to the session's question; a second call with the same `key` does nothing.

    Raises:
        UntoldError: the answer is on its way, but the forge could not take it.

    """
    kept = answers.find(session.dir, key) if key else None
    _tell(session, kept or _keep(session, author, text, key))


def _keep(
    session: IssueSession,
    author: str,
    text: str,
    key: str | None = None,
    *,
    by_session: bool = False,
) -> PersonReply:
    kept = answers.add(session.dir, author, text, key, by_session=by_session)
    session.project.record(events.Reply(session=session.name, author=author, text=text))
    return kept


def _tell(session: IssueSession, kept: PersonReply) -> None:
    """Send the answer to the agent, and leave it on the issue, where others see who was first."""
    # Before the forge is told: that may fail, and the agent waits for the answer.
    monitors.ensure(session)
    registry.poke(session.dir)
    body = f"{kept.author} answered:\n\n{kept.text}"
    forge = session.project.forge
    try:
        forge.issues.comment(session.issue, body, author=kept.author, marker=kept.id)
    except SmError as error:
        raise UntoldError(
            f"the agent gets the answer, but issue {spell(session.issue)} does not show it: "
            f"{error.message}"
        ) from error
