"""`sm notify`: the services by which people are told, what waits for each, and a test of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from sm.base.clock import format_time
from sm.base.output import say, say_lines
from sm.cli.options import json_option, load_any_config
from sm.cli.words import print_json
from sm.views.times import format_age

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.plugins.notify.heartbeat import Beaten
    from sm.plugins.notify.overview import ListedChannel


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
    lines = [line for channel in found.channels for line in _tell(channel)]
    if found.heartbeat:
        lines.append(f"heartbeat: {_tell_heartbeat(found.heartbeat)}")
    say_lines(_wrap(lines) if sys.stdout.isatty() else lines)
    if not found.channels:
        say("no notify.channels: docs/NOTIFY.md says how to set one up", err=True)


def _test(config: Config, name: str) -> int:
    """Try the services one after another, and say of each what became of it."""
    from sm.plugins.notify.overview import list_trials

    failed = False
    for trial in list_trials(config, name):
        began = time.monotonic()
        reason = trial.send()
        failed |= bool(reason)
        outcome = f"not delivered: {reason}" if reason else "delivered"
        say(f"{trial.name}: {outcome}, in {time.monotonic() - began:.1f} s")
    return int(failed)


def _wrap(lines: Iterable[str]) -> Iterator[str]:
    """The lines as wide as the terminal; no word is cut, and a command stays on its line."""
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    for line in lines:
        if line.startswith("    "):
            yield line
        else:
            yield from textwrap.wrap(
                line,
                width,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _tell(channel: ListedChannel) -> Iterator[str]:
    service = f" ({channel.service})" if channel.service else ""
    yield f"{channel.shown}{service}: {_count(channel)}"
    trouble, lost, now = channel.trouble, channel.lost, time.time()
    if trouble.failures:
        again = f"tried again at {_format_clock(trouble.again_at)}"
        yield f"  takes nothing since {format_time(trouble.since, now)}, {again}: {trouble.reason}"
    if lost.count:
        yield f"  given up: {lost.count}, the last at {format_time(lost.at, now)}: {lost.reason}"
    for one in channel.waiting:
        said = one.text.removesuffix(one.command).rstrip()
        yield f"  {format_time(one.at, now)} {one.session} {said}"
        if one.command:
            yield f"    {one.command}"


def _count(channel: ListedChannel) -> str:
    quiet = f"quiet until {_format_clock(channel.quiet_until)}" if channel.quiet_until else ""
    if not channel.waiting:
        return "; ".join(filter(None, ("nothing waits", quiet)))
    since = format_age(time.time() - channel.waiting[0].at)
    held = sum(one.held for one in channel.waiting)
    holds = f", which holds {held}" if held else ""
    count = f"{len(channel.waiting)} wait, the first for {since}"
    return "; ".join(filter(None, (count, quiet and f"{quiet}{holds}")))


def _tell_heartbeat(told: Beaten) -> str:
    if told.reason:
        return f"not taken since {format_time(told.since, time.time())}: {told.reason}"
    if not told.taken_at:
        return "none was sent yet"
    return f"the last one was taken {format_age(time.time() - told.taken_at)} ago"


def _format_clock(at: float) -> str:
    return time.strftime("%H:%M", time.localtime(at))
