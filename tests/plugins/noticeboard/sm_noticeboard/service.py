"""Hears answers: people pin `ISSUE.answer` to the board of a project."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sm_noticeboard.settings import Noticeboard

from sm.base.errors import SmError
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.helper.services import Duty, Service
from sm.issues.reply import reply
from sm.sessions.project import Project

LOOK_S = 0.2


def hear(duty: Duty) -> None:
    """Hand over what is pinned, again and again; a real channel would wait for its connection."""
    while True:
        for project, board in _list_boards(duty.config):
            for notice in board.glob("[0-9]*.answer"):
                with contextlib.suppress(SmError):  # nobody has asked, or somebody was first
                    text = notice.read_text("utf-8")
                    reply(project, int(notice.stem), notice.owner(), text, key=notice.name)
                notice.unlink()
        duty.rest(LOOK_S)


def is_wanted(config: Config) -> bool:
    """Whether any project has a board for answers."""
    return any(True for _ in _list_boards(config))


def _list_boards(config: Config) -> Iterator[tuple[Project, Path]]:
    for one in config.projects:
        settings = read_section(one, Noticeboard)
        if settings.board and settings.answers:
            yield Project(config, one), settings.board


SERVICE = Service(run=hear, wants=is_wanted)
