"""Checks of `sm doctor` on the services by which people are told."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.config.schema import Config
from sm.plugins.notify.address import ConfiguredChannel, read_address
from sm.plugins.notify.outbox import Outbox, Post
from sm.plugins.notify.overview import list_heartbeats, list_places
from sm.plugins.notify.settings import NotifyChannel
from sm.sessions.project import Project
from sm.setup.finding import DoctorCheck, Finding, fail, ok, warn
from sm.store.paths import Root

LOST_S = 7 * 86400.0
"""Time for which it is told that something was given up, in seconds."""


def check_machine(config: Config) -> Iterator[Finding]:
    """Check the library, if anybody needs it, and the channels of the whole machine."""
    from sm.plugins.notify.service import HOW_TO_GET

    if list_heartbeats(config):
        yield _check_heartbeat(Root(config.state_root))
    if not any(list_places(config)):
        return
    if importlib.util.find_spec("apprise") is None:
        yield fail("apprise is missing, so notify.channels tell nobody", HOW_TO_GET)
        return
    yield from _check_channels(config, "")


def _check_heartbeat(root: Root) -> Finding:
    from sm.plugins.notify.heartbeat import read_beaten

    told = read_beaten(root)
    if told.reason:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(told.since))
        return warn(
            f"no heartbeat was taken since {since} ({told.reason})",
            "mend notify.heartbeat_url or its service; each tick of dev-poll calls it",
        )
    if not told.taken_at:
        return ok("no heartbeat was sent yet; dev-poll sends one after each tick")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.taken_at))
    return ok(f"the last heartbeat was taken at {when}")


def check_project(project: Project) -> Iterator[Finding]:
    """Check the channels that a project has for itself."""
    if importlib.util.find_spec("apprise") is not None:
        yield from _check_channels(project.config, project.name)


def _check_channels(config: Config, project: str) -> Iterator[Finding]:
    """Check the channels that this project has for itself; '' for those of the machine."""
    for place in list_places(config):
        if place.project == project:
            name, channel, _ = place.found
            yield _check_address(name, channel)
            yield from _check_outbox(name, Post(Root(config.state_root)).find(place.destination))


def _check_address(name: str, channel: NotifyChannel) -> Finding:
    from sm.plugins.notify.service import name_service

    try:
        service = name_service(read_address(ConfiguredChannel(name, channel)))
    except SmError as error:
        return fail(f"channel '{name}' tells nobody: {error.message}", "see docs/NOTIFY.md")
    told = f" of {', '.join(channel.needs)}" if {*channel.needs} < {*NeedKind} else ""
    return ok(f"channel '{name}' tells people{told} by {service}")


def _check_outbox(name: str, outbox: Outbox) -> Iterator[Finding]:
    memory, at = outbox.recall(), time.time()
    waiting = len(outbox.list_waiting())
    if waiting and memory.trouble.failures:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(memory.trouble.since))
        yield warn(
            f"channel '{name}' has not taken a message since {since} "
            f"({memory.trouble.reason}); {waiting} wait",
            "mend its address or its service; it is tried again by itself",
        )
    if memory.lost.count and at - memory.lost.at < LOST_S:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(memory.lost.at))
        yield warn(
            f"channel '{name}': messages that were given up: {memory.lost.count}, the last at "
            f"{when} ({memory.lost.reason})",
            "'sm status' shows what waits for you",
        )


CHECK = DoctorCheck(machine=check_machine, project=check_project)
