"""Shapes of every body and every answer over HTTP, from which the description is made too.

Unknown keys are passed over. The names are those of the interface that scripts are written for
already.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from sm.messages.queue import Mode
from sm.views.open_need import OpenNeed
from sm.views.session_row import Face, SessionRow

Number = Annotated[float, Meta(ge=0, le=1e12)]
"""A count of tokens, a percentage: JSON makes no difference between 8 and 8.0."""
FilePath = Annotated[str, Meta(min_length=1, max_length=4096)]


class Health(Struct, frozen=True):
    """Sign that the server answers; `version` is that of sm."""

    status: Literal["healthy"]
    version: str


SESSION: Face = {
    "id": "id",
    "name": "name",
    "status": "state",
    "provider": "provider",
    "parent_session_id": "parent",
    "working_dir": "cwd",
    "tmux_session": "id",
    "transcript_path": "transcript",
    "created_at": "begun_at",
    "project": "project",
    "issue": "issue",
    "waiting": "queued",
    "tokens_used": "tokens",
    "used_percentage": "percent",
    "context_window_size": "window",
    "last_handoff_path": "document",
    "pending_rotation": "pending",
    "state_since": "state_since",
    "proof": "proof",
    "figures": "figures",
}
"""Fields of a row that a session has over HTTP."""
ALWAYS = ("id", "status", "proof")
"""Keys of a session that are known of a damaged one, too."""
ABOUT_SESSION = """\
A session, and how full its agent's context is; null stands for what is not known yet.

`transcript_path` is the file in which the agent CLI writes down the present context.
`status` is as in `sm children`, `state_since` in seconds since 1970, and `proof` is what the
status was read from; `waiting` counts the messages that wait for the agent. If a session cannot
be read, its `status` is `damaged`, `error` says why, and what is not known is null. `figures`
are those of plugins, by their names, such as what the session has cost."""


def _declare_session() -> Any:
    """Return the shape of a session: the keys of `SESSION`, with the types of a row's fields."""
    kinds = get_type_hints(SessionRow)
    kinds["begun_at"] = str  # ISO 8601
    fields: list[Any] = []
    for key, name in SESSION.items():
        if key in ALWAYS:
            fields.append((key, kinds[name]))
        elif key == "figures":
            fields.append((key, kinds[name], {}))
        else:
            fields.append((key, kinds[name] | None, None))
    fields.append(("error", str | UnsetType, UNSET))
    return defstruct(
        "Session", fields, namespace={"__doc__": ABOUT_SESSION}, frozen=True, kw_only=True
    )


Session = _declare_session()
Sessions: Any = defstruct(
    "Sessions",
    [("sessions", GenericAlias(list, (Session,)))],
    namespace={"__doc__": "All sessions on record, by id."},
    frozen=True,
)


class Needs(Struct, frozen=True):
    """Needs of a person: first what holds all up, then what waits longest."""

    needs: list[OpenNeed]


class NewSession(Struct, frozen=True):
    """A session, as by `sm new`: an agent CLI by its profile, a directory by its absolute path."""

    working_dir: FilePath
    provider: str = ""
    name: str = ""
    prompt: str = ""
    parent_session_id: str | None = None


class SessionChange(Struct, frozen=True):
    """Change of a session. A key that is left out stays as it is; null is no name, no parent.

    `context_monitor` switches the warnings and the cycle, as `sm context enable` and `disable` do.
    """

    name: str | UnsetType | None = UNSET
    parent_session_id: str | UnsetType | None = UNSET
    context_monitor: bool | UnsetType = UNSET
    requester_session_id: str | None = None


class HandoffRequest(Struct, frozen=True):
    """A new context that an agent asks for; it begins with the file at this absolute path."""

    requester_session_id: str
    file_path: FilePath


class HandoffAnswer(Struct, frozen=True, omit_defaults=True):
    """A handoff that is scheduled for the end of the turn, or refused and why."""

    status: Literal["scheduled"] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class InputRequest(Struct, frozen=True):
    """A message for the agent, as by `sm send`; without a sender it is a person's."""

    text: str
    delivery_mode: Mode = Mode.SEQUENTIAL
    sender_session_id: str | None = None
    notify_on_stop: bool = False


class InputAnswer(Struct, frozen=True):
    """Outcome of the message, as `sm send --json` has it."""

    status: str
    session_id: str
    id: str
    name: str
    reason: str


class KillRequest(Struct, frozen=True):
    """A session to end; a session that asks may end itself and its descendants only."""

    requester_session_id: str | None = None


class KillAnswer(Struct, frozen=True):
    """`status` is `killed`, or `pending` if the session could not be ended yet; `notes`: more."""

    status: Literal["killed", "pending"]
    session_id: str
    notes: list[str]


class PauseRequest(Struct, frozen=True):
    """Parts to pause, as by `sm pause`: projects and sessions by their names; none is everything.

    `now` interrupts turns, too. A session that asks may pause itself and its descendants only.
    """

    targets: list[str] = []
    now: bool = False
    reason: str = ""
    requester_session_id: str | None = None


class ResumeRequest(Struct, frozen=True):
    """Parts to resume, as by `sm resume`; none is everything."""

    targets: list[str] = []
    requester_session_id: str | None = None


class PausedPart(Struct, frozen=True):
    """A pause of `everything`, a `project` or a `session`; `since` in seconds since 1970."""

    extent: str
    name: str
    since: float
    by: str
    reason: str


class PauseAnswer(Struct, frozen=True):
    """Outcome: a line for each thing done, and all that is paused now, the widest first."""

    notes: list[str]
    paused: list[PausedPart]


class ContextUsage(Struct, frozen=True):
    """A reading of an agent's context, or, with an `event`, that it is being compacted."""

    session_id: str | None = None
    event: str | None = None
    trigger: str | None = None
    used_percentage: Number | None = None
    total_input_tokens: Number | None = None
    total_output_tokens: Number | None = None
    context_window_size: Number | None = None


class ContextAnswer(Struct, frozen=True, omit_defaults=True):
    """`used_percentage` repeats a reading that was sent; `reason` says why it was passed over."""

    status: Literal["ok", "compaction_logged", "unknown_session"]
    used_percentage: float | UnsetType | None = UNSET
    reason: str | UnsetType = UNSET


class WebhookAnswer(Struct, frozen=True):
    """Outcome of a delivery: `accepted` is followed by a look at the forge.

    `repeated` was delivered before, `ignored` is about nothing that sm reads, `pong` answers a try.
    """

    status: Literal["accepted", "repeated", "ignored", "pong"]


class HookEvent(Struct, frozen=True):
    """An event that the agent CLI told its hook, with the id of the session added to it."""

    hook_event_name: str = ""
    session_manager_id: str | None = None


class HookAnswer(Struct, frozen=True, omit_defaults=True):
    """`noted` tells whether a hook of sm was run with the event."""

    status: Literal["received", "unknown_session"]
    hook_event: str | UnsetType = UNSET
    noted: bool | UnsetType = UNSET
