"""Checks of `sm doctor` on usage windows: how much of each is used, and whether agents tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.base.clock import format_time
from sm.config.schema import Config
from sm.plugins.windows.figures import AccountFigures, SeenLine, WindowFigures, gather
from sm.plugins.windows.rules import list_windows
from sm.plugins.windows.settings import read_hold
from sm.setup.finding import DoctorCheck, Finding, ok, warn
from sm.store.paths import Root

SILENT_S = 3600.0
"""Seconds after which an agent that has worked and told no limits will not tell any."""
ADVICE = "only a subscription has them: leave limits.hold out, or see docs/COST.md"


def check_windows(config: Config) -> Iterator[Finding]:
    """Say how much is used, if `limits.hold` is set anywhere."""
    told_holds = (read_hold(config), *(read_hold(project) for project in config.projects))
    if not (holds := [one for one in told_holds if one]):
        return
    known, now = gather(Root(config.state_root), min(holds)), time.time()
    told = list(_list_told(known, now))
    yield from told
    if told:
        return
    if known.sessions:
        yield warn("limits.hold is set, and no agent tells of its usage windows", ADVICE)
    else:
        yield ok("limits.hold is set; the first answer of an agent tells what is used")


def _list_told(known: WindowFigures, now: float) -> Iterator[Finding]:
    for account, one in known.accounts.items():
        windows = list_windows(one.usage, one.at, now)
        if not windows:
            continue
        used = (f"{each.words}, anew at {format_time(each.resets_at, now)}" for each in windows)
        told = f"'{account}': {'; '.join(used)}"
        sessions = [seen for seen in known.sessions.values() if seen.account == account]
        if any(_is_silent(seen, one) for seen in sessions):
            when = format_time(one.at, now)
            yield warn(f"{told}; its agents have told nothing since {when}", ADVICE)
        else:
            yield ok(told)


def _is_silent(seen: SeenLine, known: AccountFigures) -> bool:
    """Say whether a session shows how full its context is, and no limits any more."""
    is_empty = not seen.figures.strip("- ")
    return is_empty and seen.line_ns / 1e9 > known.at + SILENT_S


CHECK = DoctorCheck(machine=check_windows)
