"""Hears what a node wishes to have seen anew of the forge."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from msgspec import DecodeError

from sm.base.decoder import decode
from sm.base.errors import SmError
from sm.issues.look import wishes
from sm.issues.placements import list_placements
from sm.plugins.hosts.node.adoption import HEAR_S
from sm.plugins.hosts.wire import NodeRequest
from sm.store.paths import Root, check_name

if TYPE_CHECKING:
    from sm.plugins.hosts.ssh.channel import NodeChannel

MARGIN_S = 5.0
APART_S = 1.0
"""Wishes that come within it are one; a node cannot have the forge looked at more often."""


async def hear_wishes(channel: NodeChannel, root: Root, host: str) -> None:
    """Note what the node wishes for, as long as the channel is open; an older `sm` knows none."""
    request = NodeRequest(id=0, argv=("host", "wishes"), within_s=HEAR_S + MARGIN_S)
    while True:
        asked_at = time.monotonic()
        try:
            answer = await channel.ask(request)
        except SmError:
            return
        if answer.code:
            return
        await asyncio.to_thread(_note, root, host, answer.stdout)
        # One that wishes for nothing has waited for that already, unless it is broken.
        waited_s = time.monotonic() - asked_at if answer.stdout.strip() == "[]" else 0.0
        await asyncio.sleep(max(0.0, APART_S - waited_s))


def _note(root: Root, host: str, text: str) -> None:
    """Note the wishes of a host for projects of which it has sessions."""
    with contextlib.suppress(SmError, DecodeError):
        for name in decode(text, list[str]):
            placed = list_placements(root.project(check_name(name, "project")))
            if any(one.host == host for one in placed):
                wishes.note(root, name)
