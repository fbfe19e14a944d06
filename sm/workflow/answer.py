"""A person's answer to an escalation, given on the command line."""

from __future__ import annotations

from sm.errors import SmError, UsageError
from sm.session import registry
from sm.session.registry import IssueSession
from sm.store import lock
from sm.store.paths import session_name
from sm.store.repair import repair
from sm.workflow import monitors, replies
from sm.workflow.context import Context
from sm.workflow.observe import last_known
from sm.workflow.snapshot import snapshot


class UntoldError(SmError):
    """An answer is kept and on its way to the agent, but could not be put on the issue."""


def answer(ctx: Context, issue: int, author: str, text: str) -> None:
    """Hand `text` to the session of `issue`, and leave a comment for the record.

    Raises:
        UsageError: it has no session, has asked nothing, or the text is empty.

    """
    if not text.strip():
        raise UsageError("the answer is empty: nothing was sent")
    session = registry.of_issue(ctx.root, session_name(ctx.project.name, issue))
    repair(session.root, session.dir)
    with lock.hold(session.dir.lock, timeout_s=120):  # the question may be on its way out
        facts = last_known(ctx, session, snapshot(ctx)).facts
    if not facts.escalated:
        raise UsageError(f"'{session.name}' has asked nothing: see sm status")
    if facts.dialog_at is not None and facts.about == facts.matter:
        raise UsageError(
            f"'{session.name}' has a dialog open in its terminal, which is answered there: "
            f"sm attach {session.project} {issue}"
        )
    give(ctx, session, author, text)


def give(
    ctx: Context, session: IssueSession, author: str, text: str, *, key: str | None = None
) -> None:
    """Keep the answer to what the session has asked; given again with the same `key` it is one.

    Raises:
        UntoldError: the answer is on its way, but the forge could not be told.

    """
    reply = replies.find(session.dir, key) if key else None
    if reply is None:
        reply = replies.add(session.dir, author, text, key)
        ctx.record("reply", session.name, f"{author}: {text}")
        # Before the forge is told: that may fail, and the agent waits for the answer.
        monitors.ensure(session)
        registry.poke(session.dir)
    body = f"{author} answered:\n\n{text}"
    try:
        ctx.forge.comment(session.issue, body, author=author, marker=reply.id)
    except SmError as error:
        raise UntoldError(
            f"the agent gets the answer, but issue #{session.issue} does not show it: "
            f"{error.message}"
        ) from error
