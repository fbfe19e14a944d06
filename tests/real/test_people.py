"""A few trials of `bin/soak people`, always the same: a person beside the client, nothing wrong."""

from __future__ import annotations

import shutil

from tests.real.client import Clients
from tests.soak.beside import new_folder, play

SEEDS = [1558, 1853]
"""Among them: a tiny terminal, a draft, an urgent message, a menu, options of tmux."""


def test_a_person_beside_the_client_loses_doubles_and_alters_nothing(pinned: Clients) -> None:
    folder = new_folder()
    try:
        faults, met = play(pinned.claude, folder, SEEDS)
    finally:
        shutil.rmtree(folder)
    assert faults == []
    assert met["attaches"] == len(SEEDS)
