"""Plugins hear of each completed tick, and delay none."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from sm.store import events, journal
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.shell import REPOSITORY

pytestmark = pytest.mark.long_lived


def tick(root: Root, *plugins: str) -> float:
    """Tell them of a tick in a process of its own; the seconds that this took."""
    began = time.monotonic()
    argv = [sys.executable, "-m", "tests.issues.listeners", str(root.path), *plugins]
    subprocess.run(argv, check=True, cwd=REPOSITORY, timeout=60)
    return time.monotonic() - began


def heard(root: Root) -> list[str]:
    path = root.path / "heard"
    return path.read_text().splitlines() if path.exists() else []


def problems(root: Root) -> set[str]:
    found = journal.read(root.journal)
    return {event.text for event in found if isinstance(event, events.Problem)}


def test_a_slow_listener_delays_no_tick_and_none_piles_up(root: Root) -> None:
    slow = root.path / "slow"
    slow.write_text("")
    for _ in range(3):
        tick(root, "PLUGIN")
    wait_for(lambda: heard(root) == ["shop"], "the listener")
    slow.unlink()

    def hears_again() -> bool:
        tick(root, "PLUGIN")
        return len(heard(root)) > 1

    wait_for(hears_again, "it to hear of the next tick")


def test_what_is_wrong_with_a_listener_is_noted_once_and_stops_no_other(root: Root) -> None:
    for _ in range(2):
        tick(root, "BROKEN", "PLUGIN")
    wait_for(lambda: heard(root), "the listener that works")
    wait_for(lambda: len(problems(root)) == 3, "what is wrong")
    assert problems(root) == {
        "plugin 'BROKEN' did not hear of a tick: TypeError: fail() missing 1 required positional "
        "argument: 'tick'",
        "plugin 'BROKEN' did not hear of a tick: plugin 'BROKEN' cannot give 'absent': "
        "ModuleNotFoundError: No module named 'no_such_module'",
        "plugin 'PLUGIN' did not hear of a tick: ValueError: no paper",
    }
