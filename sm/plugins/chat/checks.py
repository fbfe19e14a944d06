"""Checks of `sm doctor` on the threads of chats."""

from __future__ import annotations

from collections.abc import Iterator

from sm.config.schema import Config
from sm.plugins.chat.threads import database, takeover
from sm.setup.finding import DoctorCheck, Finding, ok
from sm.store import sqlite_file
from sm.store.sqlite import check_shared


def check_database(config: Config) -> Iterator[Finding]:
    """Check the database of the bridge, which need not exist."""
    path = config.bridge_database
    if not sqlite_file.is_there(path):
        yield ok(f"'{path}' is made with the first handoff")
        return
    check_shared(path, database.LAYOUT)
    told = "".join(
        f"; as another program had made it: '{copy}'" for copy in takeover.list_copies(path)
    )
    yield ok(f"handoffs in '{path}'{told}")


CHECK = DoctorCheck(machine=check_database)
