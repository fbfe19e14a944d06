"""`sm ledger`: what installations say to one another of costs; no person calls it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sm.base.decoding import decode
from sm.base.errors import UsageError
from sm.base.output import say_text
from sm.cli.options import pass_machine

if TYPE_CHECKING:
    from sm.sessions.machine import Machine

LIMIT = 1 << 20
"""Characters of an inquiry."""


@click.group("ledger")
def command() -> None:
    """Exchange what agents have used with the installation that has placed sessions here."""


@command.command("tell")
@pass_machine
def tell(machine: Machine) -> None:
    """Answer the inquiry on stdin, as JSON."""
    import msgspec

    from sm.plugins.cost.sync.node import answer
    from sm.plugins.cost.sync.wire import Inquiry

    try:
        asked = decode(sys.stdin.read(LIMIT).encode(), Inquiry)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"expected an inquiry as JSON: {error}") from error
    say_text(msgspec.json.encode(answer(machine, asked)).decode())
