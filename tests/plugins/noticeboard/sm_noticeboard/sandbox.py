"""A sandbox, as small as it gets: agents have no keys of yours, and a sign says where one works.

A real one has a program such as bwrap run `argv`, and lets it see `writable` and `readable` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sm_noticeboard.settings import Noticeboard

from sm.base.errors import SmError
from sm.config.shapes import read_section
from sm.sessions.sandboxes import AnySettings, Sandbox, Start


def wrap(start: Start) -> Sequence[str]:
    """Leave the keys of the person out of its environment."""
    return ("env", "-u", "SSH_AUTH_SOCK", "INSIDE=noticeboard", *start.argv)


def find_problem(settings: AnySettings) -> str:
    """Say whether there is a board for the sign."""
    board = read_section(settings, Noticeboard).board
    return "" if board and board.is_dir() else "there is no board: set 'noticeboard.board'"


def put_up_sign(start: Start) -> None:
    """Say what runs where."""
    sign = _find_sign(start.settings, start.session)
    sign.write_text(f"{start.folder}: {start.argv[0]}\n", "utf-8")


def take_sign_down(settings: AnySettings, session: str) -> None:
    """Take it down: nothing runs there any more."""
    _find_sign(settings, session).unlink(missing_ok=True)


def _find_sign(settings: AnySettings, session: str) -> Path:
    board = read_section(settings, Noticeboard).board
    if board is None:
        raise SmError("there is no board")
    return board / f"{session}.inside"


SANDBOX = Sandbox(wrap, find_problem, prepare=put_up_sign, clean=take_sign_down)
