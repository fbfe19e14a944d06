"""What decides whether work lands says the same each time: no test throws dice of its own."""

from __future__ import annotations

import ast
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.chance import REPEATABLE, SEARCH, SEED, dice
from tests.shell import REPOSITORY

TESTS = REPOSITORY / "tests"
OUR_OWN = TESTS / "chance.py"
IS_SOAK = settings.get_current_profile_name() == SEARCH or SEED != 0

UNSEEDED = {
    "random": set(dir(random)) - {"Random"},
    "os": {"urandom", "getrandom"},
    "uuid": {"uuid1", "uuid4", "uuid6", "uuid7"},
    "secrets": {"choice", "randbelow", "randbits", "SystemRandom"},
}
"""`secrets.token_hex` remains: names that no two tests may share, and no test looks at."""


NAMES = re.compile(r"\b(?:random|urandom|getrandom|uuid|secrets|derandomize|database)\b")
"""A file without any of them need not be taken apart."""


def unseeded(source: str) -> Iterator[str]:
    """The calls whose outcome is another at each run."""
    for node in ast.walk(ast.parse(source)) if NAMES.search(source) else ():
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                if name in UNSEEDED.get(module, ()):
                    yield f"{module}.{name}"
            case ast.ImportFrom(module=str(module), names=names):
                known = UNSEEDED.get(module, ())
                yield from (f"{module}.{each.name}" for each in names if each.name in known)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="random"), attr="Random")):
                yield "random.Random: take tests.chance.dice"
            case ast.keyword(arg="derandomize" | "database" as name):
                yield f"{name}: the profile in tests/chance.py says that for all"


@pytest.mark.parametrize(
    "code",
    [
        "random.randint(1, 2)",
        "random.Random()",
        "random.Random(7)",
        "from random import choice",
        "os.urandom(3)",
        "uuid.uuid4()",
        "settings(derandomize=False)",
    ],
)
def test_dice_of_a_tests_own_are_seen(code: str) -> None:
    assert list(unseeded(code))


SOAK = TESTS / "soak"
"""A program of its own: its seed is an option of the command."""


def test_all_tests_take_the_dice_that_fall_the_same_way_each_time() -> None:
    found = {
        str(file.relative_to(REPOSITORY)): calls
        for file in TESTS.rglob("*.py")
        if file not in (OUR_OWN, Path(__file__))
        and file.parent != SOAK
        and (calls := list(unseeded(file.read_text())))
    }
    assert not found


@pytest.mark.skipif(IS_SOAK, reason="bin/soak searches")
def test_hypothesis_tries_the_same_examples_each_time() -> None:
    used = settings()
    assert settings.get_current_profile_name() == REPEATABLE
    assert (used.derandomize, used.database, used.deadline) == (True, None, None)


@pytest.mark.skipif(IS_SOAK, reason="bin/soak searches")
def test_dice_show_how_they_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert dice(7).random() == random.Random(7).random()
    assert capsys.readouterr().out == "dice: random.Random(7)\n"


def test_bin_test_fixes_the_order_of_sets() -> None:
    assert "export PYTHONHASHSEED=0" in (REPOSITORY / "bin" / "test").read_text()
    if "PYTHONHASHSEED" in os.environ and not IS_SOAK:
        assert os.environ["PYTHONHASHSEED"] == "0"
