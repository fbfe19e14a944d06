"""Work that is given away: a notice for each session, on which whoever has taken it writes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs
from sm_noticeboard.settings import Noticeboard

from sm.base.errors import TemporaryError
from sm.config.shapes import read_section
from sm.issues.runners import KnownState, NodeAnswer, NodeRow, Placement, Standing
from sm.sessions.project import Project


class Board:
    """A `Runner`: a notice is a place, and its text how the session stands."""

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return the board for each notice that there is room for."""
        keep = read_section(project.settings, Noticeboard).keep
        return ["board"] * max(0, keep - len(placements))

    def place(self, project: Project, placement: Placement) -> Placement:
        """Hang the notice up; one of this attempt that hangs there stays as it is."""
        notice = self._find(project, placement)
        if not notice.exists():
            notice.write_text(f"{Standing.WAITING}\n", "utf-8")
        return structs.replace(placement, handle=notice.name)

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Read all notices; one that was taken down is over."""
        return {one.session: self._read(self._find(project, one)) for one in placements}

    def show(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, NodeRow]:
        """Nothing is known of a session that is only a notice."""
        return {one.session: NodeRow(None, 0.0, "a notice does not answer") for one in placements}

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
        """No one answers at a board."""
        raise TemporaryError("a notice does not answer")

    def attach(
        self, project: Project, placement: Placement, *, read_only: bool = False
    ) -> list[str]:
        """Return a command that says so, too."""
        return ["false"]

    def stream(self, project: Project, placement: Placement, argv: Sequence[str]) -> list[str]:
        """Return the same: nothing comes from a board."""
        return ["false"]

    def end(self, project: Project, placement: Placement) -> None:
        """Take the notice down."""
        self._find(project, placement).unlink(missing_ok=True)

    def _find(self, project: Project, placement: Placement) -> Path:
        board = read_section(project.settings, Noticeboard).board
        if board is None:
            raise TemporaryError("there is no board: set 'noticeboard.board'")
        return board / f"{placement.session}.{placement.attempt}"

    def _read(self, notice: Path) -> KnownState:
        if not notice.exists():
            return KnownState(Standing.OVER, "board", time.time())
        said, _, words = notice.read_text("utf-8").strip().partition(": ")
        return KnownState(Standing(said), "board", notice.stat().st_mtime, words)


RUNNER = Board()
