"""What `sm doctor` says of the board."""

from __future__ import annotations

from collections.abc import Iterator

from sm_noticeboard.notices import list_notices
from sm_noticeboard.settings import Noticeboard

from sm.config.shapes import read_section
from sm.sessions.project import Project
from sm.setup.finding import DoctorCheck, Finding, ok, warn


def check_board(project: Project) -> Iterator[Finding]:
    """Check whether there is a board, and what hangs there."""
    board = read_section(project.settings, Noticeboard).board
    if board is None:
        yield warn("nobody is told by a notice", "set 'noticeboard.board' to a folder")
    else:
        yield ok(f"notices on '{board}': {len(list_notices(board))}")


CHECK = DoctorCheck(project=check_board)
