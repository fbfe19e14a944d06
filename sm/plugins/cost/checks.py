"""Checks of `sm doctor` on the ledger, budgets and telemetry."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.own_settings import find_kept_days
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger import database
from sm.plugins.cost.ledger.amount import AmountUnit
from sm.plugins.cost.ledger.client_prices import LIMIT, compare
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.ledger.intake import LATELY_S
from sm.plugins.cost.ledger.nodes import list_unheard
from sm.plugins.cost.ledger.prices import name_source
from sm.plugins.cost.ledger.progress import list_lags
from sm.plugins.cost.ledger.records.record import find_reader
from sm.plugins.cost.ledger.telemetry import list_theirs, read_address
from sm.plugins.cost.settings import CostSection, find_folder, find_ledger
from sm.sessions.launch import select_environment
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.setup.finding import DoctorCheck, Finding, ok, warn
from sm.store import lock, sqlite_file
from sm.store.paths import prefix_sessions
from sm.store.sqlite import check_shared

NEEDED_DAYS = int(LATELY_S / 86400)


def check_ledger(config: Config) -> Iterator[Finding]:
    """Check the ledger, which need not exist, and whether there are prices."""
    path = find_ledger(config)
    if sqlite_file.is_there(path):
        check_shared(path, database.LAYOUT)
        yield ok(f"what agents use is in '{path}'")
        with open_ledger(path) as ledger:
            compared = compare(ledger, time.time() - LATELY_S)
        for one in compared:
            if abs(one.difference) > LIMIT:
                yield warn(
                    f"the same requests to {one.model} cost ${one.own:,.2f} by the agent CLI, and "
                    f"${one.ours:,.2f} by the list prices of {name_source()}",
                    "look whether a newer genai-prices knows the price",
                )
    else:
        yield ok(f"'{path}' is made with the first request of an agent")
    for note in list_unheard(Machine(config).root):
        yield warn(note, "'sm host check' says what is wrong with a host")
    if source := name_source():
        yield ok(f"prices: {source}")
    else:
        yield warn("no prices are known", "install 'genai-prices' into the environment of sm")


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


LEDGER = DoctorCheck(machine=check_ledger, project=check_project)


def check_budget(project: Project) -> Iterator[Finding]:
    """Check whether what the project's agents use can be known, if it is limited."""
    own = read_section(project.settings, Budget)
    limits = [one.amount for one in (own.issue, own.session, own.day, own.project) if one]
    if not limits or own.allows_unknown:
        return
    for name, lag in list_lags(project.root):
        if name.startswith(prefix_sessions(project.name)):
            yield warn(
                f"what '{name}' uses was not read for {lag:.0f} s: it is held",
                "see 'sm events' for why that fails",
            )
    client = project.profile.name
    if find_reader(project.profile.spending) is None:
        yield warn(
            f"a budget is set, and what '{client}' uses is in no record: no issue is begun",
            "set 'budget.unknown' to 'allow', or use an agent CLI that docs/COST.md names",
        )
    elif not name_source() and any(limit.unit is AmountUnit.USD for limit in limits):
        yield warn(
            "a budget is in money, and no prices are known: its agents are stopped",
            "install 'genai-prices' into the environment of sm, or count tokens",
        )
    else:
        yield ok("what its agents use is limited: 'sm budget' shows it")


BUDGET = DoctorCheck(project=check_budget)


WITHOUT = "what a compaction used is known once its context has ended"


def check_telemetry(project: Project) -> Iterator[Finding]:
    """Check whether the agents of a project tell of their requests, and somebody hears it."""
    if project.profile.spending != CLAUDE.spending:
        return
    environment = select_environment(project.settings.agent)
    theirs = next(list_theirs(project.settings.repo, environment), "")
    if not read_section(project.config, CostSection).telemetry:
        if read_section(project.settings, Budget) != Budget():
            yield ok(f"telemetry is off (cost.telemetry): {WITHOUT}")
    elif theirs:
        yield ok(f"telemetry goes where '{theirs}' of your own says, so {WITHOUT}")
    else:
        yield _check_receiver(project)


def _check_receiver(project: Project) -> Finding:
    from sm.plugins.cost.ledger.receiver import is_needed

    address, folder = read_address(project.root), find_folder(project.root)
    if address and lock.is_held(folder / "telemetry.lock"):
        return ok(f"telemetry is on: its receiver listens on port {address.port}")
    if address and is_needed(address):
        return warn(
            "telemetry is on, and its receiver is gone: what agents tell meanwhile is lost",
            f"the next pass of such an agent starts it; if not, see '{folder / 'telemetry.log'}'",
        )
    return ok("telemetry is on: its receiver is started with the next agent")


TELEMETRY = DoctorCheck(project=check_telemetry)
