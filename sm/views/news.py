"""What happens to issues, told as it happens: `dev-poll --loop` prints it between its ticks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.errors import StateError
from sm.base.phase import Phase
from sm.base.redact import redact
from sm.base.text import one_line
from sm.issues.look import phase_file
from sm.issues.rules.needs import CAUSES
from sm.sessions.history import Verb
from sm.store import events, journal
from sm.store.events import Event, StepDone
from sm.store.paths import Root, name_session
from sm.views.trace import OUTCOMES

ASKED_LIMIT = 200
"""Characters of a question in a line."""

DECIDED = OUTCOMES | {
    "ci-passed": "CI passed",
    "ci-failed": "CI failed, its agent is told",
    "review-red": "CI failed, its agent is told",
    "review-changes": "review: changes requested, its agent is told",
    "approved": "review: approved, its agent merges",
    "approved-merge": "review: approved, sm merges",
    "conflict": "it conflicts with its base, its agent is told",
    "recover": "its agent is gone, another one is started",
}
"""What a decision tells, by its row; the others are told by what is done, or not at all."""


MERGED = OUTCOMES["merged"]


def tell(event: Event, asked: str = "") -> str:
    """What is told of the event, '' for nothing; what a tick does, its own lines say.

    `asked` is what the agent has asked, if it asks a person.
    """
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
            return _step(event, asked)
    return ""


def _step(event: StepDone, asked: str) -> str:
    result = event.result or event.trouble
    match event.verb:
        case Verb.OPEN_PULL if result:
            return f"pull request {result} opened"
        case Verb.NOTIFY:
            return f"a person is needed: {CAUSES.get(result, result)}{asked and f' ({asked})'}"
        case Verb.REMIND:
            return "a person is reminded"
        case Verb.PARK:
            return f"its agent has to wait {result}".rstrip()
    return ""


class Followed(Struct, frozen=True):
    """A project whose news are told.

    Merged work comes into a person's clone by `remote` and `branch`; '' if that is not known.
    """

    project: str
    remote: str = ""
    branch: str = ""

    @property
    def source(self) -> str:
        """What `git pull` is told."""
        return f"{self.remote} {self.branch}".strip()


def read_news(path: Path, position: int, projects: Iterable[Followed]) -> tuple[list[str], int]:
    """What the journal `path` says of `projects` behind byte `position`, and where it ends now.

    Raises:
        StateError: the journal is no plain file of ours.

    """
    found, end = journal.read_since(path, position)
    prefixes = {name_session(one.project, 0)[:-1]: one for one in projects}
    return list(_lines(found, prefixes, Root(path.parent.parent))), end


def _read_question(root: Root, project: str, issue: int, event: Event) -> str:
    """What the agent asks: the journal has that it asks, and its phase file has what."""
    if not (isinstance(event, StepDone) and event.result == "escalate"):
        return ""
    try:
        write = phase_file.read(root, project, issue)
    except StateError:
        return ""
    is_question = write is not None and write.phase is Phase.ESCALATE
    return one_line(redact(write.reason), ASKED_LIMIT) if write and is_question else ""


def _lines(found: Iterable[Event], prefixes: dict[str, Followed], root: Root) -> Iterator[str]:
    for event in found:
        prefix, dash, issue = event.session.rpartition("-")
        known = prefixes.get(prefix + dash)
        if known is None or not issue.isdecimal():
            continue
        project, source = known.project, known.source
        if told := tell(event, _read_question(root, project, int(issue), event)):
            clock = time.strftime("%H:%M:%S", time.localtime(event.at))
            arrives = f"; in your clone: git pull {source}" if told == MERGED and source else ""
            yield f"{clock} {project}: #{issue} {told}{arrives}"
