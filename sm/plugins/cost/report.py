"""Reads the sums that a person or a program asks for, up to the last request."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from sm.plugins.cost.ledger import name_day, open_ledger
from sm.plugins.cost.nodes.contacts import list_unheard as list_unheard
from sm.plugins.cost.sums import By, Sum, read_sums, read_sums_of_models
from sm.store import sqlite_file

DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def parse_since(text: str) -> str:
    """The first day that is meant, '' for all.

    Raises:
        ValueError: it is neither a day nor a time that has passed since.

    """
    from sm.config import duration

    if not text or DAY.fullmatch(text):
        return text
    try:
        return name_day(time.time() - duration.parse(text))
    except ValueError as error:
        raise ValueError(
            f"expected a day such as 2026-11-28, or a time such as 7d or 12h, got {text!r}"
        ) from error


def read_report(
    path: Path, by: By, since: str, project: str, warn: Callable[[str], object]
) -> list[Sum]:
    """The sums of the ledger at `path`; `warn` is told what is not in them."""
    from sm.plugins.cost.entering import open_current

    if not sqlite_file.is_there(path):
        return []
    with open_current(path, warn) as ledger:
        return read_sums(ledger, by, since=since, project=project)


def read_known(
    path: Path, groups: Iterable[By], since: str = "", project: str = ""
) -> dict[By, list[Sum]]:
    """The sums of the ledger as it is: nothing is read on, and no price looked up.

    Raises:
        StateError, TemporaryError: as `open_ledger`.

    """
    if not sqlite_file.is_there(path):
        return {by: [] for by in groups}
    with open_ledger(path) as ledger:
        return {by: read_sums(ledger, by, since=since, project=project) for by in groups}


def read_known_models(path: Path) -> dict[str, list[Sum]]:
    """The sums of each project by model, of the ledger as it is; for errors see `read_known`."""
    if not sqlite_file.is_there(path):
        return {}
    with open_ledger(path) as ledger:
        return read_sums_of_models(ledger)
