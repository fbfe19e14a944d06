"""Sends a test message, at once and past every outbox."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sm.base.errors import SmError, UsageError
from sm.config.schema import Config
from sm.plugins.notify.address import ConfiguredChannel, read_address
from sm.plugins.notify.overview import list_heartbeats, list_places

HEARTBEAT = "heartbeat"
"""Name of `notify.heartbeat_url` here."""


class ChannelTrial(NamedTuple):
    """A service by its name; `send` returns why it has not taken the message, '' if it has."""

    name: str
    send: Callable[[], str]


def list_trials(config: Config, name: str) -> list[ChannelTrial]:
    """Return what is to be tried: all services, or those of that name.

    Raises:
        UsageError: there is none.

    """
    known = [ChannelTrial(one.name, partial(send, one.found)) for one in list_places(config)]
    known += [ChannelTrial(HEARTBEAT, partial(beat, url)) for url in list_heartbeats(config)]
    found = [trial for trial in known if not name or trial.name.partition(" ")[0] == name]
    if not known:
        raise UsageError("there are no notify.channels to try: see docs/NOTIFY.md")
    if not found:
        names = ", ".join(f"'{trial.name}'" for trial in known)
        raise UsageError(f"there is no channel '{name}': there is {names}")
    return found


def send(found: ConfiguredChannel) -> str:
    """Send a test message by a channel."""
    from sm.plugins.notify import service

    text = f"This is a test by 'sm notify --test' on {platform.node()}. Nothing waits for you."
    try:
        outcome = service.send(read_address(found), "sm: a test", text)
    except SmError as error:
        return error.message
    return f"{outcome.reason} (it may have arrived)" if outcome.unsure else outcome.reason


def beat(url: str) -> str:
    """Send a heartbeat that says that all is well."""
    from sm.plugins.notify.beat import Beat, make_call
    from sm.plugins.notify.heartbeat import call

    return call(make_call(url, Beat(failed=False, troubles=(), projects=("a test",))))
