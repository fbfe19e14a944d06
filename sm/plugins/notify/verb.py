"""`sm notify`: the services by which people are told, what waits for each, and a test of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.base.output import say, say_lines
from sm.cli.options import json_option, load_any_config
from sm.cli.times import format_age, format_moment
from sm.cli.words import print_json

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.plugins.notify.heartbeat import Beaten
    from sm.plugins.notify.overview import ListedChannel, Waiting


@click.command("notify")
@click.option(
    "--test",
    "tested",
    metavar="[CHANNEL]",
    is_flag=False,
    flag_value="",
    help="Send a test message now, by one channel or by all, and the heartbeat.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, tested: str | None, as_json: bool) -> None:
    """Show the channels of notify.channels, what waits for each and since when.

    That is what quiet hours hold, and what a service has not taken yet. With --test the exit code
    is 1 if a service has not taken the message; CHANNEL may be 'heartbeat'.
    """
    from sm.plugins.notify.overview import list_services

    config = load_any_config(ctx)
    if tested is not None:
        ctx.exit(_test(config, tested))
    found = list_services(config)
    if as_json:
        print_json(found)
        return
    for channel in found.channels:
        say_lines(_tell(channel))
    if found.heartbeat:
        say(f"heartbeat: {_tell_heartbeat(found.heartbeat)}")
    if not found.channels:
        say("no notify.channels: docs/NOTIFY.md says how to set one up", err=True)


def _test(config: Config, name: str) -> int:
    """Try the services one after another, and say of each what became of it."""
    from sm.plugins.notify.trial import list_trials

    failed = False
    for trial in list_trials(config, name):
        began = time.monotonic()
        reason = trial.send()
        failed |= bool(reason)
        outcome = f"not delivered: {reason}" if reason else "delivered"
        say(f"{trial.name}: {outcome}, in {time.monotonic() - began:.1f} s")
    return int(failed)


def _tell(channel: ListedChannel) -> Iterator[str]:
    service = f" ({channel.service})" if channel.service else ""
    quiet = f"; quiet until {_format_clock(channel.quiet_until)}" if channel.quiet_until else ""
    yield f"{channel.shown}{service}: {_count(channel)}{quiet}"
    trouble, lost = channel.trouble, channel.lost
    if trouble.failures:
        yield (
            f"  takes nothing since {format_moment(trouble.since)} ({trouble.reason}); next try "
            f"at {_format_clock(trouble.again_at)}"
        )
    if lost.count:
        yield f"  given up: {lost.count}, the last at {format_moment(lost.at)} ({lost.reason})"
    yield from map(_tell_waiting, channel.waiting)


def _count(channel: ListedChannel) -> str:
    if not channel.waiting:
        return "nothing waits"
    since = format_age(time.time() - channel.waiting[0].at)
    held = sum(one.held for one in channel.waiting)
    return f"{len(channel.waiting)} wait, the first for {since}{f', {held} held' if held else ''}"


def _tell_waiting(one: Waiting) -> str:
    command = f" {one.command}" if one.command and not one.text.endswith(one.command) else ""
    return f"  {_format_clock(one.at)} {one.session} {one.text}{command}"


def _tell_heartbeat(told: Beaten) -> str:
    if told.reason:
        return f"not taken since {format_moment(told.since)} ({told.reason})"
    if not told.taken_at:
        return "none was sent yet"
    return f"the last one was taken {format_age(time.time() - told.taken_at)} ago"


def _format_clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))
