"""What `sm doctor` checks of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from sm.config.schema import Config
from sm.plugins.cost import database
from sm.plugins.cost.prices import name_source
from sm.plugins.cost.settings import find_ledger
from sm.setup.finding import Check, Finding, ok, warn
from sm.store import sqlite_file


def check_ledger(config: Config) -> Iterator[Finding]:
    """Check the ledger, which need not exist, and whether there are prices."""
    path = find_ledger(config)
    if sqlite_file.is_there(path):
        database.check(path)
        yield ok(f"what agents use is in '{path}'")
    else:
        yield ok(f"'{path}' is made with the first request of an agent")
    if source := name_source():
        yield ok(f"prices: {source}")
    else:
        yield warn("no prices are known", "install 'genai-prices' into the environment of sm")


CHECK = Check(machine=check_ledger)
