"""Places: where a session is, and what a person sees of it and does to it there.

A session of this machine is `Here` (sm/acts/here.py). A plugin that has sessions on other machines
has `Places` among its parts of the kind `places`; they find each as a `RemotePlace`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from sm.base import plugin
from sm.base.issue_id import IssueId
from sm.sessions.address import read_address
from sm.sessions.project import Project
from sm.store.paths import find_issue_id

if TYPE_CHECKING:
    from sm.adapters.process import Beginning
    from sm.base.act import Act
    from sm.base.errors import SmError
    from sm.config.schema import Config
    from sm.issues.look.snapshot import Snapshot
    from sm.issues.meters import SetLimit
    from sm.issues.runners import NodeAnswer
    from sm.messages.send import QueuedMessage
    from sm.sessions.caller import Caller
    from sm.views.contexts import Gauge
    from sm.views.documents import Document
    from sm.views.open_need import OpenNeed
    from sm.views.session_row import SessionRow
    from sm.views.trace import Story


class Bounds(NamedTuple):
    """Bounds for git: bytes and files that are read at most, and its time in seconds."""

    bytes: int
    files: int
    timeout_s: float


class Change(NamedTuple):
    """Change on a session's branch: the patch, and the overview of its files."""

    patch: Beginning
    stat: Beginning


class Place(Protocol):
    """Place of one session. Each method raises SmError if what it asks for cannot be had."""

    @property
    def session(self) -> str:
        """Id of the session."""

    @property
    def name(self) -> str:
        """Name that people call the session by, such as `shop#7`."""

    @property
    def host(self) -> str:
        """Machine on which it runs, '' for this one."""

    @property
    def confirms(self) -> bool:
        """Whether a message that is listed as delivered was confirmed by the agent."""

    def carry_out(self, act: Act, text: str, caller: Caller) -> list[str]:
        """Carry out an act on the session, with a person's words; return what came of it."""

    def list_limits(self, need: OpenNeed | None) -> list[SetLimit]:
        """List its limits that a person may change, also the one that `need` is about."""

    def prepare_attachment(self, *, read_only: bool = False) -> Callable[[], int]:
        """Return a function that shows its terminal to the person at ours; that returns 0 if well.

        The terminal is reached before this returns, which may take seconds.
        """

    def read_screen(self, count: int) -> str:
        """Return the last lines of its screen; without a screen, those of its log."""

    def read_messages(self, delivered: int) -> Sequence[QueuedMessage]:
        """Return its messages as `sm queue` has them, with at most `delivered` delivered ones."""

    def read_story(self) -> Story:
        """Return its story, as `sm trace` tells it."""

    def read_change(self, head: str | None, bounds: Bounds) -> Change:
        """Return what its branch changes, as far as is known here.

        With `head`, only what its pull request lacks, which is at that commit; '' if unknown.
        """

    def list_documents(self) -> Iterable[Document]:
        """Return its handoff documents, the newest first."""


class RemotePlace(Place, Protocol):
    """Place of a session on another machine, where that machine's own `sm` is called."""

    @property
    def project(self) -> Project:
        """Project of the session, as it is configured here."""

    def call(self, argv: Sequence[str], stdin: str = "") -> NodeAnswer:
        """Run that `sm` with these arguments.

        Raises:
            TemporaryError: it does not answer; the text says if it may be done all the same.

        """

    def end_lost(self, verb: str) -> list[str] | None:
        """Carry out `kill` or `recover` here, if its machine is lost; None if it is not."""

    def stream(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs that `sm`, and passes on its output as it comes."""

    def pipe(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs that `sm` between two pipes.

        Raises:
            UsageError: there is no way to do so.
            TemporaryError: the machine is not reached.

        """

    def send(self, caller: Caller, words: Sequence[str], text: str, *, notify: bool) -> SentThere:
        """Hand a message on with these arguments of `sm send`, or keep it for later.

        With `notify` the calling session is told when the turn ends in which it arrives.
        """

    def reply(self, text: str) -> NodeAnswer:
        """Answer the agent's question; the same text said again counts once."""

    def read_gauge(self) -> Gauge:
        """Return how full its context is, as `sm context` has it."""

    def read_past_log(self, count: int, *, raw: bool) -> str:
        """Return the last lines in its terminal, once it has ended."""

    def read_past_story(self, ours: Story) -> Story:
        """Return its story once it has ended: what its machine tells, among ours."""


class SentThere(NamedTuple):
    """Message for a session elsewhere. `answer` is what `sm send` has said there.

    Without an answer it waits here for that machine, and `why` says so.
    """

    id: str
    answer: NodeAnswer | None
    why: str = ""


ReadRows = Callable[[float, "Snapshot", Callable[["SmError"], None]], "list[SessionRow]"]
"""Function that waits for the rows that were asked for.

It takes the time, what was seen of the forge, and a function that gets a problem for each machine
that does not answer.
"""


class Places(Protocol):
    """Sessions on other machines. Each method answers at once where nothing runs elsewhere."""

    def find(self, project: Project, issue: IssueId) -> RemotePlace | None:
        """Find the session elsewhere that works on the issue."""

    def find_past(self, project: Project, issue: IssueId) -> RemotePlace | None:
        """Find where the last session of the issue was, which is over, if it was elsewhere."""

    def list_issues(self, project: Project) -> set[IssueId]:
        """Return the issues that are worked on elsewhere."""

    def begin_rows(self, project: Project) -> ReadRows:
        """Ask for the rows of the sessions elsewhere; half a second is waited at most."""

    def list_needs(self, project: Project) -> Iterable[OpenNeed]:
        """Return what a person has to do for other machines, from files alone."""

    def tell_all(self, project: Project, argv: Sequence[str]) -> Iterator[str | SmError]:
        """Run `sm` on each machine with sessions of the project; yield its words, or why not."""


def _list_places() -> Iterator[Places]:
    return (cast("Places", part) for _, part in plugin.load_parts("places"))


def find_remote(project: Project, issue: IssueId) -> RemotePlace | None:
    """Find the session elsewhere that works on the issue; None if there is none."""
    return next(filter(None, (one.find(project, issue) for one in _list_places())), None)


def find_past_remote(project: Project, issue: IssueId) -> RemotePlace | None:
    """Find where the last session of the issue was, which is over; None if it was here."""
    return next(filter(None, (one.find_past(project, issue) for one in _list_places())), None)


def find_remote_by_id(projects: Iterable[Project], session: str) -> RemotePlace | None:
    """Find the session elsewhere of that id; None if it is on record here, or is of no project."""
    for project in projects:
        if issue := find_issue_id(project.name, session):
            is_here = project.root.session(session).identity.exists()
            return None if is_here else find_remote(project, issue)
    return None


def find_meant_issue(config: Config, text: str) -> tuple[Project, IssueId] | None:
    """Find the issue that `text` means: `PROJECT#ISSUE`, or the id of its session."""
    if wanted := read_address(text):
        settings = config.project(wanted[0])
        return (Project(config, settings), wanted[1]) if settings else None
    for settings in config.projects:
        if issue := find_issue_id(settings.name, text):
            return Project(config, settings), issue
    return None


def list_remote_issues(project: Project) -> set[IssueId]:
    """Return the issues that are worked on elsewhere."""
    return set[IssueId]().union(*(one.list_issues(project) for one in _list_places()))


def begin_remote_rows(project: Project) -> ReadRows:
    """Ask other machines for their rows, and return a function that waits for them.

    Meanwhile the caller can read what is here.
    """
    asked = [one.begin_rows(project) for one in _list_places()]
    return lambda now, known, report: [row for read in asked for row in read(now, known, report)]


def list_remote_needs(project: Project) -> Iterator[OpenNeed]:
    """Yield what a person has to do for other machines, from files alone."""
    for one in _list_places():
        yield from one.list_needs(project)


def tell_remote(project: Project, *argv: str) -> Iterator[str | SmError]:
    """Run `sm` on each machine with sessions of the project; yield its words, or why not."""
    for one in _list_places():
        yield from one.tell_all(project, argv)
