"""Which tests `bin/test` runs, by its options; what it does about a test that fails."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.chosen import CHOSEN, is_chosen
from tests.conftest import COLLECTED, is_quick, shares_what_it_makes
from tests.helpers import REPOSITORY
from tests.real.client import LEFT_OUT


@pytest.mark.parametrize(
    ("folder", "fixtures", "quick"),
    [
        ("config", ["tmp_path"], True),
        ("messages", ["root", "project"], True),
        ("messages", ["tmux", "tmux_socket"], False),
        ("http", ["root", "served"], False),
        ("e2e", ["tmp_path"], False),
        ("real", ["tmp_path"], False),
    ],
)
def test_what_starts_a_terminal_an_agent_or_a_server_is_left_out(
    folder: str, fixtures: list[str], quick: bool
) -> None:
    assert is_quick(folder, fixtures) is quick


def test_each_test_has_the_marker_by_what_it_uses(request: pytest.FixtureRequest) -> None:
    """No test that uses a terminal has it."""
    assert request.node.get_closest_marker("quick")
    marked = [item for item in request.session.items if item.get_closest_marker("quick")]
    assert not [item.nodeid for item in marked if "tmux" in getattr(item, "fixturenames", ())]


@pytest.fixture
def everything(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests, also those that are not run now; skips where only a part was collected."""
    collected = request.config.stash[COLLECTED]
    modules = {item.path for item in collected}
    if any(path not in modules for path in (REPOSITORY / "tests").rglob("test_*.py")):
        pytest.skip("a part of the tests was collected")
    return collected


def test_sweeps_are_left_to_all(everything: list[pytest.Item]) -> None:
    """None of them is what is chosen, either."""
    sweeps = [item for item in everything if item.get_closest_marker("sweep")]
    assert sweeps
    for other in ("quick", "chosen"):
        assert not [item.nodeid for item in sweeps if item.get_closest_marker(other)]


def test_each_folder_shows_for_real_that_its_room_works(everything: list[pytest.Item]) -> None:
    slow, shown = set[Path](), set[Path]()
    for item in everything:
        if not any(map(item.get_closest_marker, ("quick", "sweep"))):
            slow.add(item.path.parent)
        if item.get_closest_marker("chosen"):
            shown.add(item.path.parent)
    assert sorted(slow - shown) == []


def test_what_was_chosen_is_there(everything: list[pytest.Item]) -> None:
    """A test that was renamed or moved is not lost."""
    found = {
        name
        for item in everything
        for name in (item.nodeid, item.nodeid.partition("[")[0], item.nodeid.partition("::")[0])
    }
    assert sorted(CHOSEN.keys() - found) == []


ON_ANY_FORGE = "tests/e2e/test_any_forge.py::test_the_five_journeys_end_merged_on_any_forge"


@pytest.mark.parametrize(
    ("nodeid", "chosen"),
    [
        ("tests/adapters/test_tmux.py::test_any[a]", True),
        ("tests/adapters/agent/test_screen.py::test_a_real_terminal_is_read[known]", True),
        ("tests/adapters/agent/test_screen.py::test_a_real_terminal_is_read_twice", False),
        (f"{ON_ANY_FORGE}[github]", True),
        (f"{ON_ANY_FORGE}[gitlab]", False),
    ],
)
def test_a_module_a_test_or_one_of_its_parameters_is_chosen(nodeid: str, chosen: bool) -> None:
    assert is_chosen(nodeid) is chosen


@pytest.mark.parametrize(
    ("module", "is_whole"),
    [("plugins/http/test_heads.py", True), ("plugins/http/test_serve.py", False)],
)
def test_tests_that_share_a_server_stay_together(module: str, is_whole: bool) -> None:
    """Shared out one by one, each of them would start it anew."""
    assert shares_what_it_makes(REPOSITORY / "tests" / module) is is_whole


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose tools are stand-ins, which write down what they are called with."""
    clone = tmp_path / "clone"
    for name in ("bin/test", "lib/common.sh"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((REPOSITORY / name).read_bytes())
    tools = clone / ".venv/bin"
    tools.mkdir(parents=True)
    for name in ("python", "ruff", "lint-imports", "shellcheck", "shfmt"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{clone}/calls"\n')
        (tools / name).chmod(0o755)
    (clone / ".venv/sm-setup-test").write_text(f"{clone}\n")
    for name in ("setup.cfg", "pyproject.toml"):
        (clone / name).write_text("")
        (clone / ".venv/sm-setup-test").touch()
    return clone


def run(clone: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run `bin/test` there; `calls` has what it called."""
    (clone / "calls").write_text("")
    command = ["bash", str(clone / "bin/test"), *args]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def what_pytest_is_told(clone: Path, *args: str) -> str:
    """The arguments that pytest was called with, besides how many workers there are."""
    done = run(clone, *args)
    assert (done.returncode, done.stderr) == (0, "")
    call = re.search(r"^python -m pytest -n \d+(.*)$", (clone / "calls").read_text(), re.MULTILINE)
    assert call
    return call[1].strip()


@pytest.mark.parametrize(
    ("args", "tests"),
    [
        ([], "-m quick or chosen"),
        (["--again"], "-m quick or chosen"),
        (["--all"], ""),
        (["--all", "--again", "-k", "phase"], "-k phase"),
        (["--quick"], "-m quick"),
        (["--quick", "-k", "phase"], "-m quick -k phase"),
        (["-k", "phase"], "-k phase"),
        (["tests/live"], "tests/live"),
    ],
    ids=" ".join,
)
def test_who_names_no_tests_gets_those_that_take_minutes(
    clone: Path, args: list[str], tests: str
) -> None:
    assert what_pytest_is_told(clone, *args) == tests


@pytest.mark.parametrize("tier", ["--all", "--quick", ""])
def test_the_linters_run_with_any_tests_and_clients_are_installed_where_they_are_needed(
    clone: Path, tier: str
) -> None:
    assert run(clone, *filter(None, [tier])).returncode == 0
    calls = (clone / "calls").read_text()
    assert ("-m tests.real.client\n" in calls) is (tier != "--quick")
    for check in (
        *("ruff check", "ruff format", "python -m mypy", "lint-imports", "shellcheck"),
        "python -m pytest -qq --collect-only\n",
    ):
        assert check in calls


def answer_for_clients(clone: Path, status: int) -> None:
    """Have the module that installs the real clients end like that."""
    (clone / ".venv/bin/python").write_text(
        f'#!/bin/sh\necho python "$@" "${{SM_TEST_WITHOUT_CLIENTS-}}" >>"{clone}/calls"\n'
        f'case "$*" in *tests.real.client) echo no clients; exit {status} ;; esac\n'
    )


def test_without_clients_it_is_said_once_and_no_test_tries_to_install_them(clone: Path) -> None:
    answer_for_clients(clone, LEFT_OUT)
    done = run(clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("no clients\n") == 1
    assert "-m quick or chosen 1\n" in (clone / "calls").read_text()


def test_where_clients_are_required_nothing_is_tested_without_them(clone: Path) -> None:
    answer_for_clients(clone, 1)
    done = run(clone, "--all")
    assert done.returncode == 1
    assert done.stderr == "test: failed: real clients\n"
    assert "pytest -n" not in (clone / "calls").read_text()


def let_fail(clone: Path, failed: Iterable[str], *, again: int) -> None:
    """Have pytest find those tests failed; run alone, they end with the exit code `again`."""
    cached = clone / ".pytest_cache/v/cache/lastfailed"
    cached.parent.mkdir(parents=True)
    cached.write_text(json.dumps(dict.fromkeys(failed, True), indent=2))
    python = clone / ".venv/bin/python"
    python.write_text(
        f'#!/bin/sh\necho python "$@" >>"{clone}/calls"\n'
        'case "$*" in *--collect-only*) ;;\n'
        f'*--last-failed*) exit {again} ;; *"-m pytest"*) exit 1 ;; esac\n'
    )


UNSTEADY = "tests/test_a.py::test_it[a b]"


def test_a_test_that_passes_when_it_is_alone_is_named_as_unsteady(clone: Path) -> None:
    let_fail(clone, [UNSTEADY], again=0)
    done = run(clone, "--again")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"unsteady: {UNSTEADY}\n" in done.stdout


@pytest.mark.parametrize(
    ("failed", "again", "args"),
    [
        ([UNSTEADY], 1, ["--again"]),
        ([f"test_{number}" for number in range(4)], 0, ["--again"]),
        ([], 0, ["--again"]),
        ([UNSTEADY], 0, []),
    ],
    ids=["fails again", "too many", "none is known", "not asked for"],
)
def test_else_a_failed_test_fails_the_run(
    clone: Path, failed: list[str], again: int, args: list[str]
) -> None:
    let_fail(clone, failed, again=again)
    done = run(clone, *args)
    assert done.returncode == 1
    assert "failed: pytest" in done.stderr
    assert "unsteady" not in done.stdout
