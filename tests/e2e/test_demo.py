"""bin/demo as a person runs it: to its end, and interrupted on the way."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.demos import END_S, find_place, list_processes, start
from tests.helpers import HANG_S


@pytest.mark.timeout(END_S + 30)
def test_all_five_are_merged_and_nothing_is_left() -> None:
    """With `--web` a browser is needed: tests/plugins/page/browser/test_demo.py."""
    demo = start()
    said, complained = demo.communicate(timeout=END_S)

    assert demo.returncode == 0, said + complained
    assert "5 of 5 merged" in said
    assert "on the page" not in said
    for journey in ("mended the fault", "at a line", "recovered from", "went on with the answer"):
        assert journey in said
    costs = re.findall(r"^  #[1-5] \w+ +([0-9.]+)k tok", said, re.MULTILINE)
    assert len(costs) == 5, "the ledger has each issue"
    assert not find_place(said).exists()
    assert not list_processes(find_place(said))


@pytest.mark.parametrize(
    ("moment", "number", "options"),
    [
        ("sm init", signal.SIGINT, ()),
        ("#2   started the agent", signal.SIGINT, ()),
        ("$ sm review", signal.SIGTERM, ("--web", "--wait", "1")),
    ],
)
def test_an_interrupted_one_leaves_nothing(
    moment: str, number: signal.Signals, options: tuple[str, ...]
) -> None:
    demo = start(*options)
    assert demo.stdout is not None
    said = ""
    for line in demo.stdout:
        said += line
        if moment in line:
            break
    assert moment in said
    assert ("or on the page: in " in said) is bool(options)
    assert moment == "sm init" or list_processes(find_place(said))
    os.killpg(demo.pid, number)
    rest, complained = demo.communicate(timeout=HANG_S)

    assert demo.returncode == 130, said + rest + complained
    assert complained == "demo: interrupted, all is stopped\n"
    assert not find_place(said).exists()
    assert not list_processes(find_place(said))


@pytest.mark.parametrize("options", [("--fast",), ("--web", "--wait", "-1")])
def test_what_cannot_be_used_is_named(options: tuple[str, ...]) -> None:
    demo = start(*options)

    assert options[-1] in demo.communicate(timeout=HANG_S)[1]
    assert demo.returncode == 2
