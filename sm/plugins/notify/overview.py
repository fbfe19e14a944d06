"""Services by which people are told: what waits for each, what went wrong last, and a trial of it.

It is read from the files and the configuration alone: no service is asked, but for a trial.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from sm.base.errors import SmError, UsageError
from sm.base.need import NeedKind
from sm.config.schema import Config, MachineSettings, ProjectSettings
from sm.config.shapes import read_section
from sm.plugins.notify.address import ConfiguredChannel, read_address
from sm.plugins.notify.heartbeat import Beaten, read_beaten
from sm.plugins.notify.model import ChannelTrouble, HeldWord, Lost
from sm.plugins.notify.outbox import Destination, Post
from sm.plugins.notify.rules import URGENT, find_end
from sm.plugins.notify.settings import Notify
from sm.store.paths import Root


class WaitingWord(Struct, frozen=True, kw_only=True):
    """A word that waits, since `at` (seconds since 1970); `held`: until the quiet hours end."""

    at: float
    need: NeedKind
    session: str
    text: str
    command: str
    held: bool


class ChannelPlace(Struct, frozen=True):
    """A channel of the machine, or of `project` alone. `name` tells it from others of that name."""

    found: ConfiguredChannel
    project: str
    destination: Destination
    name: str


class ListedChannel(Struct, frozen=True, kw_only=True):
    """A channel; `project` is '' for one of the machine. Times are in seconds since 1970, 0: none.

    `shown` is the name with that of the project, where there are several.

    `service` is the beginning of its address, such as ntfy, '' if it is read from elsewhere.
    `needs` is what it tells of, `quiet_until` when its quiet hours end that hold now. `waiting` are
    the words that wait, the oldest first, `trouble` is about the last tries, and `lost` about what
    was given up.
    """

    name: str
    project: str
    shown: str
    service: str
    needs: tuple[NeedKind, ...]
    quiet: str
    quiet_until: float
    waiting: tuple[WaitingWord, ...]
    trouble: ChannelTrouble
    lost: Lost


class ListedServices(Struct, frozen=True):
    """All channels; and what became of the last heartbeat, None if none is configured."""

    channels: tuple[ListedChannel, ...]
    heartbeat: Beaten | None = None


def list_services(config: Config) -> ListedServices:
    """Return all that the configuration has."""
    root = Root(config.state_root)
    channels = tuple(_list(root, place) for place in list_places(config))
    return ListedServices(channels, read_beaten(root) if list_heartbeats(config) else None)


def list_places(config: Config) -> Iterator[ChannelPlace]:
    """Yield each channel once: those that projects share with the machine as the machine's."""
    of_machine = read_section(config, Notify).channels
    holders: list[MachineSettings | ProjectSettings] = [config, *config.projects]
    for holder in holders:
        project = holder.name if isinstance(holder, ProjectSettings) else ""
        settings = read_section(holder, Notify)
        for name, channel in settings.channels.items():
            if project and of_machine.get(name) == channel:
                continue
            destination = Destination(str(config.source), project, name)
            shown = f"{name} of {project}" if project and len(config.projects) > 1 else name
            found = ConfiguredChannel(name, channel, settings.find_quiet(channel))
            yield ChannelPlace(found, project, destination, shown)


def list_heartbeats(config: Config) -> list[str]:
    """Return the addresses that get heartbeats, each once."""
    holders: list[MachineSettings | ProjectSettings] = [config, *config.projects]
    found = [read_section(one, Notify).heartbeat_url.text for one in holders]
    return list(dict.fromkeys(filter(None, found)))


def _list(root: Root, place: ChannelPlace) -> ListedChannel:
    outbox, now = Post(root).find(place.destination), time.time()
    name, channel, quiet = place.found
    quiet_until, memory = find_end(quiet, now), outbox.recall()
    is_quiet = quiet_until > now
    words = sorted((*outbox.list_cut_short(), *outbox.list_waiting()), key=lambda word: word.at)
    return ListedChannel(
        name=name,
        project=place.project,
        shown=place.name,
        service=channel.url.text.partition("://")[0],
        needs=channel.needs,
        quiet=quiet,
        quiet_until=quiet_until if is_quiet else 0.0,
        waiting=tuple(_show(word, is_quiet) for word in words),
        trouble=memory.trouble,
        lost=memory.lost,
    )


def _show(word: HeldWord, is_quiet: bool) -> WaitingWord:
    return WaitingWord(
        at=word.at,
        need=word.need,
        session=word.address,
        text=word.sentence,
        command=word.command,
        held=is_quiet and word.need not in URGENT,
    )


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
    known = [ChannelTrial(one.name, partial(send_test, one.found)) for one in list_places(config)]
    known += [ChannelTrial(HEARTBEAT, partial(beat_test, url)) for url in list_heartbeats(config)]
    found = [trial for trial in known if not name or trial.name.partition(" ")[0] == name]
    if not known:
        raise UsageError("there are no notify.channels to try: see docs/NOTIFY.md")
    if not found:
        names = ", ".join(f"'{trial.name}'" for trial in known)
        raise UsageError(f"there is no channel '{name}': there is {names}")
    return found


def send_test(found: ConfiguredChannel) -> str:
    """Send a test message by a channel."""
    from sm.plugins.notify import service

    text = f"This is a test by 'sm notify --test' on {platform.node()}. Nothing waits for you."
    try:
        outcome = service.send(read_address(found), "sm: a test", text)
    except SmError as error:
        return error.message
    return f"{outcome.reason} (it may have arrived)" if outcome.unsure else outcome.reason


def beat_test(url: str) -> str:
    """Send a heartbeat that says that all is well."""
    from sm.plugins.notify.beat import Beat, make_call
    from sm.plugins.notify.heartbeat import call

    return call(make_call(url, Beat(failed=False, troubles=(), projects=("a test",))))
