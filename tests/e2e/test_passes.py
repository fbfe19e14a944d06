"""What a pass over a session costs: it finds loaded what it needs."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.e2e.conftest import MakeStage
from tests.helpers import wait_for

CODE = """
import sys
import sm.cli.passes
from sm.__main__ import run
from sm.passes import modules
modules.preload()
before = set(sys.modules)
assert run(["react", *sys.argv[1:]]) == 0
print(*(set(sys.modules) - before))
"""


def test_the_first_pass_finds_the_core_loaded(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    argv = [sys.executable, "-Ic", CODE, "harb", str(issue)]
    done = subprocess.run(
        argv,
        env=os.environ | {"SM_CONFIG": str(stage.config)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = [name for name in done.stdout.split() if not name.startswith("sm.plugins")]
    assert not {name.partition(".")[0] for name in loaded} & {"sm", "yaml", "msgspec"}, loaded
