"""What the options of `bin/test` choose: `--quick` and `--again`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import is_quick, shares_what_it_makes
from tests.helpers import REPOSITORY


@pytest.mark.parametrize(
    ("folder", "fixtures", "quick"),
    [
        ("config", ["tmp_path"], True),
        ("messages", ["root", "project"], True),
        ("messages", ["tmux", "tmux_socket"], False),
        ("server", ["root", "served"], False),
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
    for name in ("python", "ruff", "vermin", "lint-imports", "shellcheck", "shfmt"):
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


def test_the_quick_verdict_has_all_linters_and_installs_no_clients(clone: Path) -> None:
    assert run(clone, "--quick", "-k", "phase").returncode == 0
    quick = (clone / "calls").read_text()
    assert run(clone, "-k", "phase").returncode == 0
    whole = (clone / "calls").read_text()
    assert "-m quick -k phase\n" in quick
    assert "tests.real.client" not in quick
    assert "-m quick" not in whole
    assert "-m tests.real.client\n" in whole
    for check in (
        *("ruff check", "ruff format", "python -m mypy", "lint-imports", "shellcheck"),
        "python -m pytest -qq --collect-only\n",
    ):
        assert check in quick
        assert check in whole


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
