"""Row of a session: all that is known of it at one moment, from which each face takes fields.

`sm status`, `sm children`, `sm top`, the page, JSON and HTTP show the same row. A face in JSON is a
table of keys, each with the field that it tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from sm.adapters.forge.model import CheckState, ReviewState
from sm.base.decoder import convert
from sm.base.issue_id import IssueId
from sm.sessions.activity import Evidence, Proof
from sm.views.figures import NO_FIGURES, OfSession
from sm.views.open_need import OpenNeed
from sm.views.states import ShownState

CHECKS = {
    CheckState.SUCCESS: "passed",
    CheckState.FAILURE: "failed",
    CheckState.PENDING: "pending",
    CheckState.BROKEN: "broken",
}
VERDICTS = {ReviewState.APPROVED: "approved", ReviewState.CHANGES_REQUESTED: "changes"}
PASSED, FAILED, PENDING, BROKEN = CHECKS.values()
APPROVED, CHANGES = VERDICTS.values()
CONFLICTS = "conflicts"
"""Word for a review that cannot end in a merge."""


class Stop(StrEnum):
    """A stop on the way of an issue, in its order."""

    WORK = "work"
    CI = "CI"
    REVIEW = "review"
    MERGE = "merge"


class Mark(StrEnum):
    """Progress of an issue at a stop: past it, at it, turned back there, or not there yet."""

    DONE = "done"
    NOW = "now"
    BACK = "back"
    AHEAD = "ahead"


Track = tuple[tuple[Stop, Mark], ...]
"""Every stop in its order; () for a session that works on no issue."""


class PendingRotation(Struct, frozen=True):
    """A rotation that is about to replace the agent's context.

    `state` is `scheduled` until the turn ends, then the step under way; `path` the document that
    the next context begins with, null while it is not written yet; `since` seconds since 1970.
    """

    state: str
    path: str | None
    since: float


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session, of an issue or of `sm new`.

    What only the other kind has is empty, and so is what was not read, as no face of the reader
    shows it. Times are in seconds since 1970, 0 if they are not known. `name` is what people call
    it, such as `shop#7`. `title` is the issue's, or else its directory `cwd`. `parent` is an id, ''
    for a person, and `depth` its place below those that a list begins with.

    `state` holds since `state_since`, and `proof` proves it: how far its issue is, if that was
    read, otherwise what its agent is doing. `doing` is what the agent's hooks say; `monitor` and
    `alive` say whether its monitor and its agent run. `slotless`: it has work for its agent, and
    waits for a free slot. `rotation` is what is done with its context, `pending` the same for
    programs. `queued` messages wait for its agent. `percent` says how full its context is, `tokens`
    and `window` are what that is made of, None if unknown. `words` are what its agent said last.

    `pull` is 0 while there is no pull request, `link` leads to it, and it was seen at the commit
    `head`. `restarts` counts all of them. `reason` is what the agent wrote beside its phase, `why`
    a person is asked, `problem` why something cannot be done at the moment or the session cannot
    be read. `need` is what a person is needed for. `person` says what somebody in its terminal is
    doing; that takes nothing from `need`. `figures` are what plugins know, such as its cost.

    `host` is the machine that it runs on, '' for this one. Of another machine is known whether the
    session is `paused`, has handoff `documents`, whether that machine has `told` a person of the
    need (None: it says nothing of all this), and how many `reminders` it has sent.
    """

    id: str
    name: str
    project: str = ""
    issue: IssueId = 0
    title: str = ""
    provider: str = ""
    parent: str = ""
    depth: int = 0
    cwd: str = ""
    begun_at: float = 0.0
    state: ShownState
    state_since: float = 0.0
    proof: Proof
    doing: str = ""
    monitor: bool = False
    alive: bool = False
    slotless: bool = False
    rotation: str = ""
    pending: PendingRotation | None = None
    queued: int = 0
    percent: float | None = None
    tokens: int | None = None
    window: int | None = None
    words: str = ""
    transcript: str = ""
    document: str = ""
    pull: int = 0
    link: str = ""
    head: str = ""
    ci: str = ""
    review: str = ""
    fixes: int = 0
    rounds: int = 0
    restarts: int = 0
    event: str = ""
    event_at: float = 0.0
    reason: str = ""
    waits_for: str = ""
    why: str = ""
    problem: str = ""
    need: OpenNeed | None = None
    person: str = ""
    figures: OfSession = NO_FIGURES
    host: str = ""
    paused: bool = False
    documents: bool = False
    told: bool | None = None
    reminders: int = 0

    @property
    def alone(self) -> bool:
        """Whether it was started and has no monitor."""
        return not self.monitor and self.state not in (ShownState.STARTING, ShownState.DAMAGED)

    @property
    def track(self) -> Track:
        """How far its issue is: work, CI, review, merge."""
        if not self.issue:
            return ()
        if self.state in OVER:
            return tuple((stop, Mark.DONE) for stop in Stop)
        if self.state is ShownState.DAMAGED:
            return tuple((stop, Mark.AHEAD) for stop in Stop)
        ci, review = self._mark_ci(), self._mark_review()
        merge = Mark.NOW if (ci, review) == (Mark.DONE, Mark.DONE) else Mark.AHEAD
        return (
            (Stop.WORK, self._mark_work()),
            (Stop.CI, ci),
            (Stop.REVIEW, review),
            (Stop.MERGE, Mark.BACK if self.review == CONFLICTS else merge),
        )

    def _mark_work(self) -> Mark:
        if self.state in (ShownState.FAILED, ShownState.CRASHED):
            return Mark.BACK
        is_offered = self.state in (ShownState.AWAITING_CI, ShownState.AWAITING_REVIEW)
        is_accepted = (self.ci, self.review) == (PASSED, APPROVED)
        return Mark.DONE if is_offered or is_accepted else Mark.NOW

    def _mark_ci(self) -> Mark:
        if self.ci in (FAILED, BROKEN):
            return Mark.BACK
        if self.ci == PASSED or self.state is ShownState.AWAITING_REVIEW:
            return Mark.DONE
        awaited = self.ci == PENDING or self.state is ShownState.AWAITING_CI
        return Mark.NOW if awaited else Mark.AHEAD

    def _mark_review(self) -> Mark:
        if self.review == CHANGES:
            return Mark.BACK
        if self.review == APPROVED:
            return Mark.DONE
        return Mark.NOW if self.state is ShownState.AWAITING_REVIEW else Mark.AHEAD


OVER = (ShownState.DONE, ShownState.MERGED)


# Faces

Face = Mapping[str, str]
"""Keys of JSON, each with the field that it tells."""
AGES = frozenset(("age_s", "state_age_s", "last_event_age_s"))
"""Keys that tell the age of a moment, in seconds; 0 if the moment is not known."""


def _same(names: str) -> Face:
    return {name: name for name in names.split()}


KIN: Face = {
    **_same("id name state provider parent cwd"),
    "age_s": "begun_at",
    "state_age_s": "state_since",
    **_same("depth project issue"),
    "waiting": "queued",
    **_same("monitor rotation state_since proof"),
}
"""Face of any session in `sm children`, `sm whoami` and `sm new`."""
AD_HOC: Face = {**KIN, **_same("need person figures")}
"""Face of a session in `sm status` that works on no issue."""
STATUS: Face = {
    **_same("project issue title"),
    "session": "id",
    "phase": "state",
    **_same("ci review pull fixes rounds"),
    "recoveries": "restarts",
    "age_s": "begun_at",
    "last_event": "event",
    "last_event_age_s": "event_at",
    **_same("reason waits_for why problem"),
    "worktree": "cwd",
    **_same("doing rotation monitor"),
    "agent": "alive",
    **_same("state_since slotless proof need person figures head host"),
}
"""Face of an issue's session in `sm status`, which also says how it is `INSIDE`."""
INSIDE: Face = _same("percent queued words paused documents told reminders")
"""Facts that only the machine of a session can read, told by it to another machine."""


def tell(row: SessionRow, face: Face, now: float) -> dict[str, Any]:
    """Return what the face tells of the row, as plain keys and values."""
    told = {key: getattr(row, name) for key, name in face.items()}
    ages = {key: max(0.0, now - told[key]) for key in AGES & told.keys() if told[key]}
    return told | ages


def tell_status(row: SessionRow, now: float) -> dict[str, Any]:
    """Return what `sm status` tells of an issue's session."""
    inside = None if row.told is None else tell(row, INSIDE, now)
    return {**tell(row, STATUS, now), "inside": inside}


def read_status(said: Mapping[str, Any], now: float) -> SessionRow:
    """Return the row of which `tell_status` has said this at the moment `now`.

    Raises:
        msgspec.ValidationError: a value has another type.

    """
    inside = said.get("inside")
    values: dict[str, Any] = {"name": "", "proof": {"kind": Evidence.ERROR}}
    for face, told in ((STATUS, said), (INSIDE, inside if isinstance(inside, dict) else {})):
        values |= {name: told[key] for key, name in face.items() if key in told}
    row = convert(values, SessionRow)  # its moments are ages yet
    return structs.replace(row, begun_at=now - row.begun_at, event_at=now - row.event_at)
