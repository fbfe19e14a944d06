"""Takes a person's reply to an escalation: from the command line, or from a chat."""

from __future__ import annotations

from sm.base.errors import SmError, UsageError
from sm.issues.look import answers
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import snapshot
from sm.sessions import monitors, registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.repair import repair


class UntoldError(SmError):
    """The answer is on its way to the agent, but could not be put on the issue."""


def reply(project: Project, issue: int, author: str, text: str) -> None:
    """Give `text` to the session of `issue`, and leave a comment on record.

    Raises:
        UsageError: the issue has no session, it has asked nothing, or the text is empty.

    """
    if not text.strip():
        raise UsageError("the answer is empty: nothing was sent")
    session = registry.load_for(project, issue)
    repair(session.root, session.dir)
    with lock.hold(session.dir.lock, timeout_s=120):  # the question may be just on its way
        facts = recall(session, snapshot(project)).facts
    if not facts.escalated:
        raise UsageError(f"'{session.name}' has asked nothing: see sm status")
    if facts.dialog_at is not None and facts.about == facts.matter:
        raise UsageError(
            f"'{session.name}' has a dialog open in its terminal, which is answered there: "
            f"sm attach {session.record.project} {issue}"
        )
    give(session, author, text)


def give(session: IssueSession, author: str, text: str, *, key: str | None = None) -> None:
    """Keep the answer to the session's question; a second call with the same `key` does nothing.

    Raises:
        UntoldError: the answer is on its way, but the forge could not take it.

    """
    kept = answers.find(session.dir, key) if key else None
    if kept is None:
        kept = answers.add(session.dir, author, text, key)
        session.project.record(events.Reply(session=session.name, author=author, text=text))
        # Before the forge is told: that may fail, and the agent waits for the answer.
        monitors.ensure(session)
        registry.poke(session.dir)
    body = f"{author} answered:\n\n{text}"
    try:
        session.project.forge.issues.comment(session.issue, body, author=author, marker=kept.id)
    except SmError as error:
        raise UntoldError(
            f"the agent gets the answer, but issue #{session.issue} does not show it: "
            f"{error.message}"
        ) from error
