"""Parts of a session's page beside its row: its story, CI, reviews, messages.

A part that asks a forge is read when a person opens it, not before.
"""

from __future__ import annotations

import time
from enum import StrEnum

from msgspec import Struct

from sm.adapters.forge.model import Check, PullRequest
from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.text import printable
from sm.issues.look.snapshot import full_check
from sm.messages import queue
from sm.messages.send import PLACES, QueuedMessage
from sm.sessions.project import Project
from sm.views.place import Place
from sm.views.trace import Story, StoryEvent

STORY = 200
"""Events of a story that are shown; the earlier ones are counted."""
DELIVERED = 20
"""Delivered messages that are shown."""
LOG_LINES = 200
"""Lines of the log of CI that are shown: those before its end, where it failed."""


class ShownStory(Struct, frozen=True):
    """The last events of a story, the newest first, how many came before, and how it stands."""

    entries: tuple[StoryEvent, ...]
    earlier: int
    outcome: str


def read_told(place: Place) -> ShownStory | None:
    """Read the story of the session there; None if nothing is known of it.

    Raises:
        SmError: its machine does not answer.

    """
    try:
        return shorten(place.read_story())
    except SmError:
        if place.host:
            raise
        return None


def shorten(story: Story) -> ShownStory:
    """Return the end of a story."""
    shown = story.entries[-STORY:]
    earlier = len(story.entries) - len(shown)
    return ShownStory(tuple(reversed(shown)), earlier, story.summary.outcome)


class Judged(Struct, frozen=True):
    """Verdict of CI and reviewers on a pull request.

    `log` is the end of the failing step's output, without the first `cut` lines.
    """

    pull: PullRequest
    check: Check
    log: str
    cut: int


def read_judged(project: Project, number: int) -> Judged:
    """Ask the forge what is said of the pull request.

    Raises:
        SmError: the forge cannot tell.

    """
    pull = project.forge.pulls.read(number)
    check = full_check(project, pull)
    lines = printable(redact(check.log)).splitlines()
    return Judged(pull, check, "\n".join(lines[-LOG_LINES:]), max(0, len(lines) - LOG_LINES))


class MessageStage(StrEnum):
    """Progress of a message, as a person follows it."""

    WAITING = "waiting"
    TYPED = "typed"
    SEEN = "seen"


class ShownMessage(Struct, frozen=True):
    """A message, how far it has come, and since when or why no further."""

    message: QueuedMessage
    stage: MessageStage
    sent_at: float
    tells: str = ""


def list_messages(place: Place) -> list[ShownMessage]:
    """List the messages of the session there with what became of them, the newest first.

    Raises:
        SmError: its machine does not answer.

    """
    now, found = time.time(), place.read_messages(DELIVERED)
    return [_follow(one, now, confirms=place.confirms) for one in reversed(found)]


def _follow(message: QueuedMessage, now: float, *, confirms: bool) -> ShownMessage:
    """Say how far a message is: `seen` if the agent's own hook or transcript has confirmed it."""
    if message.place == PLACES[queue.MessageFolder.WAITING]:
        stage, tells = MessageStage.WAITING, message.why or "the agent gets it as soon as it can"
    elif message.place == PLACES[queue.MessageFolder.HANDED]:
        stage, tells = MessageStage.TYPED, "the agent has not confirmed it yet"
    elif confirms:
        stage, tells = MessageStage.SEEN, ""
    else:
        stage, tells = MessageStage.TYPED, "its client cannot confirm it"
    return ShownMessage(message, stage, round(now - message.age_s, 1), tells)
