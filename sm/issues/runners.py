"""Runners: sessions run on this machine, or elsewhere by a runner that a plugin brings.

Elsewhere a whole `sm` runs on a node, with its own state root, configuration and clone. A plugin
has a `Runner` among its parts of the kind `runners`; a project names one by `runner`, or by
`runners` for the issues with a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from msgspec import Struct

from sm.base import plugin
from sm.base.errors import SmError, TemporaryError
from sm.base.issue_id import IssueId
from sm.config.schema import LOCAL as LOCAL
from sm.config.schema import ProjectSettings
from sm.sessions.project import Project

SILENT_S = 3.0
"""Time that work which can be done later waits for a node that does not even say it is there, in
seconds. A lost packet is sent again within a second (RFC 6298)."""


class Standing(StrEnum):
    """Standing of a session elsewhere, by its runner."""

    WAITING = "waits in a queue"
    RUNNING = "runs"
    SILENT = "does not answer"
    LOST = "is lost"
    """Its runner says that it is gone, or it has been silent for too long."""
    OVER = "has ended"
    """The node no longer has such a session."""
    REFUSED = "is refused by its host"
    """The host answers, and cannot begin any session."""
    UNFIT = "is not taken by its host"
    """The host answers, and does not begin this one; it takes others."""


class Placement(Struct, frozen=True):
    """Placement of an issue that is worked on elsewhere.

    `claim` is the SHA of the claim of this `attempt`, and the node's session has both in its
    record. `host` is where it was meant for, or where it is once that is known. `handle` is what
    the runner knows it by; '' until it was placed. Times are seconds since 1970.
    """

    project: str
    issue: IssueId
    session: str
    runner: str
    host: str
    attempt: int
    claim: str
    handle: str = ""
    placed_at: float = 0.0


class Elsewhere(Struct, frozen=True):
    """Session that runs elsewhere, and its project."""

    project: Project
    placement: Placement


class KnownState(NamedTuple):
    """Known state of a session elsewhere, and since when; `words` are the runner's own for it."""

    standing: Standing
    host: str
    known_at: float
    words: str = ""


class NodeRow(NamedTuple):
    """Row of a session for people, as its node has said it: of its `sm status`, in JSON.

    `known_at` is when it said so, in seconds since 1970, 0 for never. `trouble` is why it does not
    say more now, '' if it does. `words` are what it waits for, if there is no row. `host` is where
    it is, if that is not where it was placed. `short` is what its machine lacks, which gets nothing
    new meanwhile.
    """

    row: Mapping[str, Any] | None
    known_at: float
    trouble: str = ""
    words: str = ""
    host: str = ""
    short: str = ""


class NodeAnswer(NamedTuple):
    """Answer of a node's own `sm`."""

    code: int
    stdout: str
    stderr: str


class NoAnswerError(TemporaryError):
    """A node has not answered. `sent`: it may have got the request, and carry it out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        """Keep the message, and whether the request was sent."""
        super().__init__(message)
        self.sent = sent


class NodeRefusedError(SmError):
    """A node answers, and does not begin a session; the message has its words.

    `of_host`: it could begin no other either. Otherwise it finds something wrong with the issue.
    """

    def __init__(self, message: str, *, of_host: bool) -> None:
        """Keep the message, and whether the host refuses every session."""
        super().__init__(message)
        self.of_host = of_host


class Runner(Protocol):
    """Runner: places sessions elsewhere, and says how they do. Each call answers within seconds.

    A host that does not answer costs others nothing: it is said to be silent.
    """

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return the host of each free place, best first; a host with two of them is there twice.

        A runner without hosts of its own, such as a queue, returns its name. `placements` are all
        of this runner in the project, also those that have no handle yet.
        """

    def place(self, project: Project, placement: Placement) -> Placement:
        """Begin the session; return the placement with its handle, and its host if known.

        Its claim is ours, and names the attempt. The call is repeated if it is not known whether it
        was done: a session of that name and attempt exists once. Each host has a thread that calls
        it, with a project of its own.

        Raises:
            RefusedError: its host answers, and does not begin it.
            TemporaryError: not now; nothing runs, or nobody knows.
            SmError: it cannot be placed there at all.

        """

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Return what is known of each, by the session's name, from one look at all of them.

        Each tick calls it, also without any: a host that comes back is noticed then.
        """

    def show(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, NodeRow]:
        """Return what people are shown of each, by the session's name, within half a second.

        For a node that does not answer by then, it is what it said last.
        """

    def call(
        self,
        project: Project,
        placement: Placement,
        argv: Sequence[str],
        stdin: str = "",
        *,
        patience_s: float | None = None,
        silent_s: float | None = None,
    ) -> NodeAnswer:
        """Run `sm` with these arguments where the session is, in the project's clone there.

        `patience_s` is how long the caller waits, `silent_s` the same for a node that does not even
        say that it is there, if the runner can tell. What has begun there by then goes on.

        Raises:
            NoAnswerError: no answer came; the error says whether it may be done all the same.
            TemporaryError: the node does not answer.

        """

    def attach(
        self, project: Project, placement: Placement, *, read_only: bool = False
    ) -> list[str]:
        """Return the command that enters the session's terminal, or only looks at it.

        The size of the terminal here is passed on, also when it changes.
        """

    def stream(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `sm` there, and passes on its output as it comes.

        What runs there ends with the command here. It has no terminal here; there it may have one,
        so that lines end with CR LF.
        """

    def end(self, project: Project, placement: Placement) -> None:
        """End what runs of the session, if it can be reached; nothing to end is no error."""


@runtime_checkable
class Piper(Protocol):
    """Runner by which a program here and `sm` there talk for as long as both like."""

    def pipe(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `sm` there, and passes on stdin and stdout as they are.

        It ends with what runs there. If it is ended here, or its stdin is, what runs there finds
        the end of its own stdin. What it says of itself comes on stderr.

        Raises:
            TemporaryError: the node cannot be reached.

        """


class Hindrance(Struct, frozen=True):
    """Hindrance of a host. `key` stays the same until it is over, and no other has it.

    `text` is one sentence, `command` says more of it here. `since` is in seconds since 1970, 0 if
    unknown.
    """

    key: str
    text: str
    command: str
    since: float = 0.0


@runtime_checkable
class Watcher(Protocol):
    """Runner that knows what keeps its hosts from having sessions, and only a person can remove."""

    def list_hindrances(self, project: Project) -> Sequence[Hindrance]:
        """Return what it heard at the last tick, from files: no host is asked."""


def choose_runner(settings: ProjectSettings, labels: Collection[str]) -> str:
    """Return the name of the runner of an issue with these labels; `local` is this machine."""
    by_label = (name for label, name in settings.runners.items() if label in labels)
    return next(by_label, settings.runner)


def list_runners(settings: ProjectSettings) -> tuple[str, ...]:
    """Return the runners that the project names beside this machine; mostly none."""
    named: Iterable[str] = (settings.runner, *settings.runners.values())
    return tuple(dict.fromkeys(name for name in named if name != LOCAL))


def load_runner(name: str) -> Runner:
    """Return the runner of that name.

    Raises:
        UsageError: no plugin has it.

    """
    return cast("Runner", plugin.load_part("runners", name))
