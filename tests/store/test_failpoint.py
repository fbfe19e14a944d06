from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sm.store.failpoint import crash_point

PROGRAM = "from sm.store.failpoint import crash_point; crash_point('here'); print('alive')"


def run(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_point_named_is_deadly() -> None:
    assert run(SM_CRASH_AT="here").returncode == -signal.SIGKILL


@pytest.mark.parametrize("env", [{}, *({"SM_CRASH_AT": at} for at in ("there", "her,ere", ""))])
def test_other_points_do_nothing(env: dict[str, str]) -> None:
    assert run(**env).stdout == "alive\n"


def test_once_is_once(tmp_path: Path) -> None:
    env = {"SM_CRASH_AT": "here", "SM_CRASH_ONCE": str(tmp_path / "crashed")}
    assert run(**env).returncode == -signal.SIGKILL
    assert run(**env).stdout == "alive\n"


def test_each_of_several_points_kills_once(tmp_path: Path) -> None:
    env = {"SM_CRASH_AT": "there,here", "SM_CRASH_ONCE": str(tmp_path / "crashed")}
    assert run(**env).returncode == -signal.SIGKILL
    assert run(**env).stdout == "alive\n"
    assert [file.name for file in (tmp_path / "crashed").iterdir()] == ["here"]


def test_nothing_crashes_by_itself() -> None:
    crash_point("plan:after-save")
