"""`sm poll`: called by bin/dev-poll."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from sm.base.errors import SmError, TemporaryError, Unable
from sm.base.output import pass_on, say
from sm.cli.invocation import Invocation
from sm.cli.options import pass_config, projects_option
from sm.config.schema import Config
from sm.sessions import pause
from sm.sessions.project import Project
from sm.store import journal
from sm.store.paths import Root
from sm.store.root_check import check_root


def _repeat(ctx: click.Context, _param: click.Parameter, loop: bool) -> bool:
    """Show each line on stdout of a loop once; what goes to stderr is shown at each tick."""
    invocation = ctx.ensure_object(Invocation)
    if loop and (text := invocation.find_left_out()):
        say(f"{time.strftime('%H:%M:%S')} {text}")
    invocation.tells_left_out = not loop
    return loop


@click.command("poll", help="One tick; the last line is the seconds until the next one is due.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--loop",
    is_flag=True,
    is_eager=True,
    hidden=True,
    callback=_repeat,
    help="Tell what makes a tick due earlier, too.",
)
@projects_option
@pass_config
@click.pass_context
def command(
    click_context: click.Context,
    config: Config,
    projects: tuple[Project, ...],
    dry_run: bool,
    loop: bool,
) -> None:
    """Tick every project; one that cannot be used does not keep the others waiting.

    Where something could not be started the exit code is 1, but for a loop, which tries again.
    """
    from sm.helper.services import ensure_services
    from sm.issues.poll import tick
    from sm.messages import suspension
    from sm.personal.tick import keep_watched

    code, root, unable = 0, check_root(Root(config.state_root)), False
    began, problems = time.monotonic(), dict[str, str]()
    if not dry_run:
        suspension.align(root)
    if loop:
        _tell_of_news(root, projects)
    for project in projects:
        try:
            for line in tick(project, dry_run=dry_run, loops=loop):
                say(f"{_now()} {project.name}: {line}")
                unable |= isinstance(line, Unable)
        except SmError as error:
            problems[project.name] = error.message
            say(f"{_now()} {project.name}: {error.message}", err=True)
            if not isinstance(error, TemporaryError):
                # The other projects are worth going on for.
                code = error.exit_code if len(projects) == 1 else 1
    if not dry_run:
        for line in keep_watched(root):
            say(f"{_now()} {line}")
            unable |= isinstance(line, Unable)
        _tell_plugins(root, config, projects, problems, began)
        ensure_services(root, config)
    if loop:
        _tell_loop(f"watch {path}" for path in _signs(projects))
        _tell_loop([f"watch {pause.locate(root)}", f"sessions {root.sessions}"])
        _tell_loop(f"bell {path}" for path in _hang_bell(root, projects))
    interval_s = min(project.settings.poll_interval_s for project in projects)
    say(f"{interval_s:.3f}".rstrip("0").rstrip("."))  # dev-poll reads no exponent
    click_context.exit(code or (1 if unable and not loop else 0))


def _now() -> str:
    return time.strftime("%H:%M:%S")


def _tell_plugins(
    root: Root,
    config: Config,
    projects: Iterable[Project],
    problems: Mapping[str, str],
    began: float,
) -> None:
    """Tell plugins of the ticks that were completed since `began` (of the monotonic clock)."""
    from sm.issues.look.tick_record import read_polled
    from sm.issues.ticks import Tick, tell_listeners

    found = {one.name: read_polled(root.project(one.name)) for one in projects}
    done = {name: one for name, one in found.items() if one and one.clock.up_s >= began}
    errors = {name: said for name, said in problems.items() if name not in done}
    if done or errors:
        tell_listeners(root, Tick(config, done, errors))


def _signs(projects: Iterable[Project]) -> Iterator[Path]:
    """Yield the paths that bring work to these projects.

    For a project that cannot be looked at, yield the paths that may mend it.
    """
    from sm.issues.poll import list_signs

    for project in projects:
        try:
            yield from list_signs(project)
        except SmError:  # its tick has said what is wrong
            if not project.settings.forge.is_elsewhere:
                place = Path(project.settings.forge.place)
                yield from (place, place.parent, place.parent.parent)  # made, or moved back


def _hang_bell(root: Root, projects: Iterable[Project]) -> Iterator[Path]:
    """Make the FIFO that wakes the loop, if nodes may wish for something."""
    from sm.issues.look.wishes import hang_bell
    from sm.issues.runners import list_runners

    if any(list_runners(project.settings) for project in projects):
        with contextlib.suppress(SmError, OSError):  # then it looks each second
            yield hang_bell(root, os.getppid())


def _tell_of_news(root: Root, projects: Iterable[Project]) -> None:
    """Print for the loop where its news begin, and which projects they are about.

    These lines come first, so that it tells the news while the tick is at work.
    """
    named = ((one.name, one.settings) for one in projects)
    _tell_loop(f"project {name} {one.remote} {one.primary_branch}" for name, one in named)
    _tell_loop([f"journal {journal.find_size(root.journal)} {root.journal}"])


def _tell_loop(lines: Iterable[str]) -> None:
    pass_on(b"".join(os.fsencode(line) + b"\n" for line in lines if "\n" not in line))
