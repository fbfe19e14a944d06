"""News of issues as they happen, in the lines that `dev-poll --loop` prints."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.issue_id import read_part, spell
from sm.issues.rules.needs import CAUSES, KINDS
from sm.sessions.history import StepVerb
from sm.store import events, journal
from sm.store.events import Event, StepDone
from sm.store.paths import prefix_sessions
from sm.views.trace import MERGED, OUTCOMES

INDENT = " " * 9
"""Spaces as wide as the time: a command stands below it, alone in its line, to be copied."""

DECIDED = {
    **{row: told for row, told in OUTCOMES.items() if row not in KINDS and told != MERGED},
    "merge-seen": MERGED,
    "ci-passed": "CI passed",
    "ci-failed": "CI failed, its agent is told",
    "review-red": "CI failed, its agent is told",
    "review-changes": "review: changes requested, its agent is told",
    "approved": "review: approved, its agent merges",
    "approved-merge": "review: approved, sm merges",
    "conflict": "it conflicts with its base, its agent is told",
    "recover": "its agent is gone, another one is started",
    "login-again": "its login is stale, its client is started again",
}
"""Words for decisions, by row; the others are told by their steps, or not at all."""


def find_need(event: Event) -> str:
    """Return why a person is needed from this event on; '' if nobody is."""
    match event:
        case StepDone(verb=StepVerb.NOTIFY | StepVerb.TELL):
            result = event.result or event.trouble
            return event.text or CAUSES.get(result, result)
        case StepDone(verb=StepVerb.COMMENT) if event.row in KINDS:
            return event.text  # the issue is blocked
    return ""


def tell(event: Event) -> str:
    """Tell the event, '' for nothing; the lines of a tick itself say what it does."""
    match event:
        case events.Decided(row=row):
            return DECIDED.get(row, "")
        case events.Reply(author=author):
            return f"answered by {author}"
        case events.Kill():
            return "a person has ended its session"
        case events.RecoverAsked():
            return "a person has its agent restarted"
        case StepDone():
            return _step(event)
    return ""


def _step(event: StepDone) -> str:
    result = event.result or event.trouble
    match event.verb:
        case StepVerb.OPEN_PULL if result:
            return f"pull request {result} opened"
        case StepVerb.REMIND:
            return "a person is reminded"
        case StepVerb.PARK:
            return f"its agent has to wait {result}".rstrip()
    return ""


class Followed(Struct, frozen=True):
    """Project whose news are told.

    `remote` and `branch` bring merged work into a person's clone; '' if they are not known.
    """

    project: str
    remote: str = ""
    branch: str = ""

    @property
    def source(self) -> str:
        """Arguments of `git pull`."""
        return f"{self.remote} {self.branch}".strip()


def read_news(path: Path, position: int, projects: Iterable[Followed]) -> tuple[list[str], int]:
    """Read what the journal `path` says of `projects` after byte `position`, and where it ends now.

    Raises:
        StateError: the journal is no plain file of ours.

    """
    found, end = journal.read_since(path, position)
    prefixes = {prefix_sessions(one.project): one for one in projects}
    return list(_lines(found, prefixes)), end


def _lines(found: Iterable[Event], prefixes: dict[str, Followed]) -> Iterator[str]:
    for event in found:
        prefix, dash, part = event.session.rpartition("-")
        known, issue = prefixes.get(prefix + dash), read_part(part)
        if known is None or issue is None:
            continue
        project, source = known.project, known.source
        whose = f"{time.strftime('%H:%M:%S', time.localtime(event.at))} {project}: {spell(issue)}"
        if why := find_need(event):
            yield f"{whose} needs you: {why}"
            if isinstance(event, StepDone) and event.command:
                yield f"{INDENT}{event.command}"
        elif told := tell(event):
            arrives = f"; in your clone: git pull {source}" if told == MERGED and source else ""
            yield f"{whose} {told}{arrives}"
