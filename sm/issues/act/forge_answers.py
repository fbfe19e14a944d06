"""Answers to what a session's agent asks of the forge: with words of trusted people alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec
from msgspec import structs

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.model import (
    BOT,
    Check,
    CheckState,
    Comment,
    Issue,
    PullRequest,
)
from sm.adapters.forge.trust import Trust
from sm.base.clock import is_ahead
from sm.base.errors import SmError, StateError, TemporaryError, UsageError
from sm.base.foreign import NAME_LIMIT
from sm.base.issue_id import check_pull
from sm.base.redact import redact
from sm.base.text import one_line
from sm.issues.act.forge_requests import (
    ForgeAnswer,
    ForgeRequest,
    ForgeVerb,
    answer,
    clear_answers,
    list_requests,
    put_off,
)
from sm.issues.look import issue_text, reviews
from sm.issues.look.snapshot import Snapshot, full_check, last_snapshot, whole_snapshot
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.failpoint import crash_point

DIFF_OPTIONS = frozenset({"--no-color", "--stat"})
AGAIN_S = 30.0
"""Seconds until a forge that has not answered is tried again: it may still write a comment."""


def answer_requests(session: IssueSession) -> float | None:
    """Answer all that the agent has asked for. The caller holds the session's lock.

    Returns when to try again what the forge has not taken, None if it has taken everything.
    """
    again_at = None
    for asked in list_requests(session.dir):
        if is_ahead(asked.not_before, AGAIN_S):
            again_at = asked.not_before
            continue
        try:
            data = ANSWERS[asked.verb](session, asked)
        except TemporaryError as error:
            if asked.verb is ForgeVerb.COMMENT:  # its mark tells whether it is there already
                again_at = time.time() + AGAIN_S
                put_off(session.dir, asked, again_at)
                continue
            given = ForgeAnswer(time.time(), error=error.message, code=error.exit_code)
        except SmError as error:
            given = ForgeAnswer(time.time(), error=error.message, code=error.exit_code)
        else:
            given = ForgeAnswer(time.time(), data=msgspec.json.encode(data).decode())
        crash_point("ask:done")
        _give(session, asked, given)
    clear_answers(session.dir)
    return again_at


def _give(session: IssueSession, asked: ForgeRequest, given: ForgeAnswer) -> None:
    """Give the answer, or say that no file can hold it: others wait behind it."""
    try:
        answer(session.dir, asked, given)
    except StateError:
        size = len(given.data)
        words = f"the answer is too large ({size:,} bytes): ask for less, or look at it by git"
        answer(session.dir, asked, ForgeAnswer(time.time(), error=words, code=1))


# Requests that read


def _show_issue(session: IssueSession, asked: ForgeRequest) -> Issue:
    project, trust = session.project, _read_last_look(session).trust(session.project.settings)
    found = project.forge.issues.read(asked.number)
    if asked.number == session.issue:
        known = issue_text.issue_of(session)
        title, body = known.title, known.body
    else:
        source = project.forge.issues.read_source(asked.number)
        issue_text.check_source(project, asked.number, source)
        title, body = source.title, source.body
    said = project.forge.issues.read_comments(asked.number) if found.comments else ()
    comments = tuple(_keep_trusted_comments(said, trust))
    return structs.replace(found, title=title, body=body, comments=comments)


def _show_pull(session: IssueSession, asked: ForgeRequest) -> PullRequest:
    trust = _read_last_look(session).trust(session.project.settings)
    found = session.project.forge.pulls.read(check_pull(asked.number))
    _check_readable(session, found, trust)
    forge, number = session.project.forge, check_pull(asked.number)
    said = forge.pulls.read_comments(number) if found.comments else ()
    # Reviews of trusted people, without what others have edited there.
    trusted = (reviews.leave_out(one, trust) for one in found.reviews if trust.includes(one.author))
    return structs.replace(
        found,
        comments=tuple(_keep_trusted_comments(said, trust)),
        reviews=reviews.keep_known(session.dir, trusted),
    )


def _show_diff(session: IssueSession, asked: ForgeRequest) -> bytes:
    project, seen = session.project, _read_last_look(session)
    pull = _find_pull(session, seen, check_pull(asked.number))
    _check_readable(session, pull, seen.trust(project.settings))
    options = asked.text.split()
    if not {*options} <= DIFF_OPTIONS:  # git has some that write files
        raise UsageError(f"no options for a diff: {one_line(asked.text, NAME_LIMIT)}")
    return project.forge.pulls.diff(pull.number, stat="--stat" in options)


def _check(session: IssueSession, asked: ForgeRequest) -> Check:
    """Return the check that the last look at the forge has shown; a failed one with its log."""
    project, seen = session.project, _read_last_look(session)
    pull = _find_pull(session, seen, check_pull(asked.number))
    _check_readable(session, pull, seen.trust(project.settings))
    if pull.check.state in (CheckState.FAILURE, CheckState.BROKEN):
        return full_check(project, pull)
    return pull.check


def _read_last_look(session: IssueSession) -> Snapshot:
    return last_snapshot(session.project.directory) or Snapshot(0.0)


def _find_pull(session: IssueSession, seen: Snapshot, number: int) -> PullRequest:
    found = _pick(seen, number)
    if found is None and seen.is_part:
        found = _pick(whole_snapshot(session.project), number)
    if found is None:
        raise NotFoundError(f"there is no pull request {number} that was open lately")
    return found


def _pick(seen: Snapshot, number: int) -> PullRequest | None:
    return next((pull for pull in seen.pulls if pull.number == number), None)


def _look(session: IssueSession, asked: ForgeRequest) -> float:
    """Look at everything; return when that was, in seconds since 1970."""
    return whole_snapshot(session.project).taken_at


def is_readable(project: Project, pull: PullRequest, trust: Trust) -> bool:
    """Whether an agent may read a pull request: only one by an agent or a trusted person."""
    ours = pull.branch.startswith(f"{project.settings.branch_prefix}/")
    return ours or trust.includes(pull.author)


def _check_readable(session: IssueSession, pull: PullRequest, trust: Trust) -> None:
    is_own = pull.branch == session.record.branch
    if not is_own and not is_readable(session.project, pull, trust):
        raise UsageError(
            f"pull request {pull.number} is by '{pull.author}', who is not trusted: "
            "it is not for agents"
        )


def _keep_trusted_comments(comments: Iterable[Comment], trust: Trust) -> Iterable[Comment]:
    """Return the comments of trusted people, and ours."""
    return (one for one in comments if one.marker or issue_text.is_trusted_comment(one, trust))


# Requests that write


def _comment(session: IssueSession, asked: ForgeRequest) -> bool:
    body = redact(asked.text)
    if asked.number == session.issue and not asked.on_pull:
        issue_text.refuse_another(session)
    # With a mark it is ours: an agent's words are no answer to what it has asked a person.
    forge = session.project.forge
    if asked.on_pull:
        pull = check_pull(asked.number)
        return forge.pulls.comment(pull, body, author=BOT, marker=asked.id)
    return forge.issues.comment(asked.number, body, author=BOT, marker=asked.id)


def _merge(session: IssueSession, asked: ForgeRequest) -> PullRequest:
    """Merge the session's own pull request by the project's rules."""
    settings, record = session.project.settings, session.record
    if settings.merge.by != "agent":
        raise UsageError("sm merges pull requests here itself, once they are approved: wait")
    pull = session.project.forge.pulls.find_newest(record.branch)
    if pull is None or pull.number != asked.number:
        raise UsageError(
            f"pull request {asked.number} is not the one of '{record.branch}': "
            "an agent merges only its own"
        )
    return session.project.forge.pulls.merge(
        pull.number, head=asked.head, message=redact(asked.text), author=BOT
    )


ANSWERS: dict[ForgeVerb, Callable[[IssueSession, ForgeRequest], object]] = {
    ForgeVerb.ISSUE: _show_issue,
    ForgeVerb.PULL: _show_pull,
    ForgeVerb.DIFF: _show_diff,
    ForgeVerb.CHECK: _check,
    ForgeVerb.LOOK: _look,
    ForgeVerb.COMMENT: _comment,
    ForgeVerb.MERGE: _merge,
}
