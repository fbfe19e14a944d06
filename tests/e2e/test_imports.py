"""Which heavy modules the commands load that run most: imports are most of their time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sm.config import cache
from tests.e2e.conftest import MakeStage
from tests.helpers import wait_for

CODE = """
import sys
from sm.__main__ import run
code = run(sys.argv[1:])
print(code, *{name.partition(".")[0] for name in sys.modules})
"""

HEAVY = frozenset(
    [
        "asyncio",
        "click",
        "concurrent",
        "dataclasses",
        "difflib",
        "email",
        "hashlib",
        "hmac",
        "http",
        "httpx2",
        "inspect",
        "jinja2",
        "logging",
        "markupsafe",
        "mcp",
        "multiprocessing",
        "prometheus_client",
        "pydantic",
        "pygal",
        "queue",
        "random",
        "rich",
        "secrets",
        "sh",
        "shutil",
        "socket",
        "sqlite3",
        "sse_starlette",
        "ssl",
        "tenacity",
        "textual",
        "tomllib",
        "yaml",
        "zipfile",
    ]
)
"""What takes more than a millisecond to import."""

CLICK = frozenset(["click", "inspect"])

MAY = {
    "send": CLICK | {"difflib", "hashlib"},  # a name that is misspelt; the id of a notice
    "handoff": CLICK,
    "status": CLICK | {"hashlib", "rich", "sqlite3"},  # threads about an issue are in a database
    "poll": CLICK | {"hashlib", "sqlite3", "yaml"},  # the embedded forge's documents are YAML
}


def test_the_commands_that_run_most_load_nothing_heavy_that_they_do_not_need(
    stage_of: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "SETTLED_S", 0.0)
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()  # which has the configuration parsed
    wait_for(stage.told, "the first prompt")
    words = {
        "send": ["send", f"harb#{issue}", "hello"],
        "handoff": ["handoff"],
        "status": ["status"],
        "poll": ["poll"],
    }
    for verb, may in MAY.items():
        done = subprocess.run(
            [sys.executable, "-Ic", CODE, *words[verb]],
            env=stage.environment,
            cwd=stage.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        code, *loaded = done.stdout.splitlines()[-1].split()
        assert (code == "0") is (verb != "handoff"), done.stderr  # no agent has called it
        heavy = HEAVY & set(loaded) - may
        assert not heavy, (verb, heavy)
