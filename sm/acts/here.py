"""Place of a session of this machine: everything is read from its files, its terminal and git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sm.acts import execution
from sm.base.act import Act
from sm.base.errors import SmError, UsageError
from sm.sessions.session import AnySession, IssueSession
from sm.views.place import find_remote_by_id

if TYPE_CHECKING:
    from sm.acts.execution import Finder
    from sm.issues.meters import SetLimit
    from sm.messages.send import QueuedMessage
    from sm.sessions.caller import Caller
    from sm.sessions.project import Project
    from sm.views.documents import Document
    from sm.views.open_need import OpenNeed
    from sm.views.place import Bounds, Change, Place
    from sm.views.trace import Story


class Here:
    """Place of a session of this machine: `Place` of sm/views/place.py.

    The session is looked up when something is asked of it: its record may be damaged or gone.
    """

    host = ""

    def __init__(self, finder: Finder, ident: str) -> None:
        """Look nothing up yet."""
        self.session, self._finder = ident, finder

    @cached_property
    def _found(self) -> AnySession:
        return self._finder.find_session(self.session)

    @property
    def name(self) -> str:
        """Name that people call the session by."""
        return self._found.address

    @property
    def confirms(self) -> bool:
        """Whether the hook or transcript of its agent has confirmed what is listed as delivered."""
        return bool(self._found.profile.hooks)

    def carry_out(self, act: Act, text: str, caller: Caller) -> list[str]:
        """Carry out an act on the session, with a person's words; return what came of it.

        Raises:
            SmError: it cannot be done, or the caller may not do it; then nothing was done.

        """
        return execution.ACTS[act.kind](self._finder, act, text, caller)

    def list_limits(self, need: OpenNeed | None) -> list[SetLimit]:
        """List its limits that a person may change: those of any need are among them."""
        from sm.issues import meters

        return meters.list_limits(self._found)

    def prepare_attachment(self, *, read_only: bool = False) -> Callable[[], int]:
        """Return a function that shows its terminal to the person at ours."""
        from sm.sessions import attach

        way = attach.find_way(self._found, read_only=read_only)
        return lambda: attach.enter(way)

    def read_screen(self, count: int) -> str:
        """Return the last lines of its screen; without a screen, those of its log."""
        from sm.views.logs import read_screen_lines

        return read_screen_lines(self._found, count)

    def read_messages(self, delivered: int) -> Sequence[QueuedMessage]:
        """Return its messages, with the last `delivered` ones that its agent has."""
        from sm.messages.send import list_entries

        return list_entries(self._found, done=delivered)

    def read_story(self) -> Story:
        """Return its story, as `sm trace` tells it, also once it is over."""
        from sm.views.trace import read_story_of

        return read_story_of(self._finder.root, self.session, self.session)

    def read_change(self, head: str | None, bounds: Bounds) -> Change:
        """Return what its branch changes since the primary branch, also what is not pushed yet.

        With `head`, what is committed in its worktree and its pull request lacks.

        Raises:
            SmError: it works on no issue, or git cannot tell.

        """
        from sm.views.place import Change

        session = self._found
        if not isinstance(session, IssueSession):
            raise UsageError("it works on no issue, so it has no branch of its own")
        git, record = session.project.git.at(session.worktree), session.record
        if head is None:
            base = f"refs/remotes/{record.remote}/{record.base}"
        else:
            base = git.rev_parse(head) or git.fetch_branch(record.remote, record.branch)
        size, files, timeout_s = bounds
        return Change(
            git.read_diff(base, limit=size, timeout_s=timeout_s),
            git.read_diff_stat(base, files=files, limit=size, timeout_s=timeout_s),
        )

    def list_documents(self) -> Iterable[Document]:
        """Return the handoff documents that the journal tells of, the newest first."""
        from sm.views.documents import list_documents

        try:
            session = self._found
        except SmError:  # it is over, or its record is damaged
            session = None
        return list_documents(self._finder.root, self.session, session)


def find_place(finder: Finder, projects: Iterable[Project], ident: str) -> Place:
    """Find where the session of that id is: elsewhere, if a project has it there, or here.

    Whether there is such a session here at all is found out once something is asked of it.
    """
    return find_remote_by_id(projects, ident) or Here(finder, ident)
