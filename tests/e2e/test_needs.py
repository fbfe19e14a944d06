"""The journeys of the demo, played by somebody who has only what `sm needs` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import HANG_S

PLAYER = Path(__file__).with_name("needs_player.py")


@pytest.mark.long_lived
@pytest.mark.timeout(HANG_S + 120)
def test_what_it_prints_is_all_that_is_needed_until_everything_is_merged() -> None:
    played = subprocess.run(
        [sys.executable, PLAYER],
        env=os.environ | {"SM_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S + 60,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    commands = [line for line in played.stdout.splitlines() if line.startswith("$ ")]
    assert sum(line.startswith("$ sm review ") for line in commands) == 6, played.stdout
    assert sum(line.startswith("$ sm reply ") for line in commands) == 1, played.stdout
