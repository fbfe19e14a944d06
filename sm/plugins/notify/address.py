"""Address of a service. It is a secret: whoever has it can send messages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from sm.adapters.token import TokenSource, read_token
from sm.base.errors import UsageError
from sm.base.redact import redact
from sm.base.text import one_line
from sm.config.load import load_any
from sm.config.shapes import read_section
from sm.plugins.notify.outbox import Destination
from sm.plugins.notify.settings import Notify, NotifyChannel

PARTS = re.compile(r"[/:@?&=#,]+")
REASON_LIMIT = 300


class NoChannelError(UsageError):
    """The configuration has no such channel any more."""


class ConfiguredChannel(NamedTuple):
    """A channel as the configuration has it now, by its name; and its quiet hours."""

    name: str
    channel: NotifyChannel
    quiet: str = ""


def find_channel(destination: Destination | None) -> ConfiguredChannel:
    """Return a channel as the configuration has it now.

    Raises:
        NoChannelError: it has none of that name.
        UsageError: the configuration cannot be used.

    """
    if destination is None:
        raise NoChannelError("which channel it was is not known any more")
    where = Path(destination.config)
    config = load_any(where, os.environ, where.parent)
    holder = config.project(destination.project) if destination.project else config
    settings = read_section(holder, Notify) if holder else Notify()
    channel = settings.channels.get(destination.channel)
    if channel is None:
        raise NoChannelError(f"there is no channel '{destination.channel}' any more")
    return ConfiguredChannel(destination.channel, channel, settings.find_quiet(channel))


def read_address(found: ConfiguredChannel) -> str:
    """Return the address of a service.

    Raises:
        SmError: there is none where the configuration says.

    """
    name, channel, _ = found
    if channel.url:
        return channel.url.text
    key = f"notify.channels.{name}.url"
    if not (channel.url_command or channel.url_file or channel.url_env):
        raise UsageError(f"it has no address: set {key}")
    source = TokenSource(
        channel.url_command,
        channel.url_file,
        channel.url_env,
        what="address",
        key=key,
        whose="it",
    )
    return read_token(source).secret


def hide(reason: str, address: str) -> str:
    """Return a reason without anything of the address, any part of which may be a secret."""
    _, _, rest = address.partition("://")
    parts = [address, *PARTS.split(rest)]
    return one_line(redact(reason, [*parts, *map(unquote, parts)]), REASON_LIMIT)
