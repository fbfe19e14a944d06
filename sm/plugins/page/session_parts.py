"""What the page of one session has beside its row: its story, its changes, CI, reviews, messages.

What asks git or a forge is read when a person opens that part, not before.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sm.adapters.forge.model import Check, PullRequest
from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import printable
from sm.context import rotation_files
from sm.issues.look.snapshot import full_check
from sm.messages.send import QueuedMessage, list_entries
from sm.sessions import pause
from sm.sessions.session import AnySession, IssueSession
from sm.store.files import read_harmless
from sm.store.paths import Root, check_name
from sm.views.trace import Story, StoryEvent, read_story_of

STORY = 200
"""Events of a story that are shown; the earlier ones are counted."""
LINES = 3000
"""Lines of a patch that are shown."""
WIDEST = 500
"""Characters of a line of it."""
HEADS = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")
LOG_LINES = 200
"""Lines of the log of CI that are shown: those before its end, where it failed."""


class Told(Struct, frozen=True):
    """The last events of a story, the newest first, how many came before, and how it stands."""

    entries: tuple[StoryEvent, ...]
    earlier: int
    outcome: str


def read_told(root: Root, ident: str) -> Told | None:
    """The story of the session of that id, also when it is over; None if nothing is known of it."""
    try:
        story = read_story_of(root, check_name(ident, "session"), ident)
    except SmError:
        return None
    return _shorten(story)


def _shorten(story: Story) -> Told:
    shown = story.entries[-STORY:]
    earlier = len(story.entries) - len(shown)
    return Told(tuple(reversed(shown)), earlier, story.summary.outcome)


class Line(Struct, frozen=True):
    """A line of a patch. `kind` is `add`, `del`, `head`, `hunk` or `same`."""

    kind: str
    text: str


class Patch(Struct, frozen=True):
    """What the branch changes since it left the primary branch; `left` lines are not shown.

    `shown` is how git gives an overview of it.
    """

    stat: str
    lines: tuple[Line, ...]
    left: int = 0


def read_patch(session: IssueSession) -> Patch:
    """What its branch changes, also what is not pushed yet.

    Raises:
        SmError: git cannot tell.

    """
    base, git = _find_base(session), session.project.git.at(session.worktree)
    lines = git.diff(base).splitlines()
    shown = tuple(_sort_lines(lines[:LINES]))
    return Patch(printable(git.diff_stat(base)), shown, max(0, len(lines) - LINES))


def _find_base(session: IssueSession) -> str:
    return f"refs/remotes/{session.record.remote}/{session.record.base}"


def _sort_lines(lines: list[str]) -> Iterator[Line]:
    for line in lines:
        yield Line(_find_kind(line), printable(line[:WIDEST]))


def _find_kind(line: str) -> str:
    if line.startswith(HEADS):
        return "head"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")


class Judged(Struct, frozen=True):
    """What CI and reviewers say of a pull request.

    `log` is the end of the failing step's output, without the first `cut` lines.
    """

    pull: PullRequest
    check: Check
    log: str
    cut: int


def read_judged(session: IssueSession, number: int) -> Judged:
    """Ask the forge what is said of the pull request.

    Raises:
        SmError: the forge cannot tell.

    """
    pull = session.project.forge.pulls.read(number)
    check = full_check(session.project, pull)
    lines = printable(redact(check.log)).splitlines()
    return Judged(pull, check, "\n".join(lines[-LOG_LINES:]), max(0, len(lines) - LOG_LINES))


def list_messages(session: AnySession) -> list[QueuedMessage]:
    """Its messages with what became of them, the newest first."""
    return list(reversed(list_entries(session)))


def read_document(session: AnySession) -> str:
    """The handoff document with which its context began; '' for none."""
    if rotation_files.read_last_document(session.dir) is None:
        return ""
    return printable(read_harmless(session.dir.document).decode("utf-8", "replace"))


def is_paused(session: AnySession) -> bool:
    """Whether it is paused, alone or with others."""
    return pause.find(session.root, session.project_name, session.name) is not None
