"""What `sm doctor` checks of the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.own_settings import find_kept_days
from sm.config.schema import Config
from sm.plugins.cost.ledger import database
from sm.plugins.cost.ledger.client_prices import LIMIT, Compared, compare
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.intake import LATELY_S
from sm.plugins.cost.ledger.nodes import list_unheard
from sm.plugins.cost.ledger.prices import name_source
from sm.plugins.cost.settings import find_ledger
from sm.sessions.launch import select_environment
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.setup.finding import Check, Finding, ok, warn
from sm.store import sqlite_file
from sm.store.sqlite import check_shared

NEEDED_DAYS = int(LATELY_S / 86400)


def check_ledger(config: Config) -> Iterator[Finding]:
    """Check the ledger, which need not exist, and whether there are prices."""
    path = find_ledger(config)
    if sqlite_file.is_there(path):
        check_shared(path, database.LAYOUT)
        yield ok(f"what agents use is in '{path}'")
        with open_ledger(path) as ledger:
            yield from _list_differences(compare(ledger, time.time() - LATELY_S))
    else:
        yield ok(f"'{path}' is made with the first request of an agent")
    for note in list_unheard(Machine(config).root):
        yield warn(note, "'sm host check' says what is wrong with a host")
    if source := name_source():
        yield ok(f"prices: {source}")
    else:
        yield warn("no prices are known", "install 'genai-prices' into the environment of sm")


def _list_differences(compared: list[Compared]) -> Iterator[Finding]:
    for one in compared:
        if abs(one.difference) > LIMIT:
            yield warn(
                f"the same requests to {one.model} cost ${one.own:,.2f} by the agent CLI, and "
                f"${one.ours:,.2f} by the list prices of {name_source()}",
                "look whether a newer genai-prices knows the price",
            )


def check_project(project: Project) -> Iterator[Finding]:
    """Check whether the agent CLI keeps its records until they are read."""
    profile, agent = project.profile, project.settings.agent
    if profile.spending != CLAUDE.spending:
        return
    days, path = find_kept_days(project.settings.repo, select_environment(agent))
    if days < NEEDED_DAYS:
        yield warn(
            f"'cleanupPeriodDays' is {days:g} in '{path}': so soon transcripts are removed, and "
            f"what is not in the ledger by then is lost",
            f"set it to {NEEDED_DAYS} or more: sm cost still reads what was read so lately",
        )


CHECK = Check(machine=check_ledger, project=check_project)
