"""Checks of services: those parts of plugins that live as processes of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.base.clock import format_time
from sm.base.text import one_line
from sm.config import duration
from sm.config.schema import Config
from sm.helper.services import ServiceState, list_running, list_services
from sm.setup.finding import Finding, ok, warn
from sm.store.paths import Root


def check_services(root: Root, config: Config) -> Iterator[Finding]:
    """Say of each service whether it runs as the configuration wants; of others that run, too."""
    known = []
    for one in list_services(root, config):
        known.append(one.files)
        yield from _judge(one)
    for files in list_running(root):
        if files not in known:
            what = f"service '{files.name}' runs, and no plugin has it any more"
            yield warn(what, "the next tick of dev-poll ends it")


def _judge(one: ServiceState) -> Iterator[Finding]:
    name, files = f"service '{one.part.name}'", one.files
    if one.problem:
        yield warn(f"{name} cannot be judged: {one.problem}", "mend or uninstall its plugin")
        return
    last, runs, now = files.read(), files.is_running(), time.time()
    if one.is_wanted and runs:
        since = f", since {format_time(last.began_at, now)}" if last else ""
        yield ok(f"{name} runs{since}")
    elif one.is_wanted:
        yield _tell_missing(one, now)
    elif runs:
        yield warn(f"{name} runs, and nothing wants it", "the next tick of dev-poll ends it")


def _tell_missing(one: ServiceState, now: float) -> Finding:
    name, last = f"service '{one.part.name}'", one.files.read()
    if last is None or last.is_done:
        return warn(f"{name} does not run", "start dev-poll --loop or sm serve, which starts it")
    why = one_line(last.reason) or "it was killed"
    pause = duration.show(max(1, round(last.next_at - now))) if last.next_at > now else ""
    again = f"it is started again in {pause}" if pause else "it is started again by the next tick"
    return warn(f"{name} does not run: {why}", f"{again}; its log: {one.files.log}")
