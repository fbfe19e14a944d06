"""`sm notices`: what is pinned to the board."""

from __future__ import annotations

import click
from sm_noticeboard.notices import list_notices
from sm_noticeboard.settings import Noticeboard

from sm.base.output import say_text
from sm.cli.options import load_config
from sm.config.shapes import read_section


@click.command("notices")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show what is pinned to the boards of all projects, the oldest notice first."""
    boards = [read_section(one, Noticeboard).board for one in load_config(ctx).projects]
    for board in dict.fromkeys(filter(None, boards)):
        for notice in list_notices(board):
            say_text(notice.read_text("utf-8"), nl=False)
