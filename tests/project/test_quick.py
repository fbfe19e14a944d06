"""What `bin/test --quick` leaves out, so that its verdict is there within 90 seconds."""

from __future__ import annotations

import subprocess
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
    ("module", "is_whole"), [("server/test_heads.py", True), ("server/test_serve.py", False)]
)
def test_tests_that_share_a_server_stay_together(module: str, is_whole: bool) -> None:
    """Shared out one by one, each of them would start it anew."""
    assert shares_what_it_makes(REPOSITORY / "tests" / module) is is_whole


def test_it_chooses_by_the_marker_and_installs_no_clients(tmp_path: Path) -> None:
    """With a stand-in for Python, which writes down what it is called with."""
    clone = tmp_path / "clone"
    for name in ("bin/test", "lib/common.sh"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((REPOSITORY / name).read_bytes())
    tools = clone / ".venv/bin"
    tools.mkdir(parents=True)
    for name in ("python", "ruff", "vermin", "lint-imports", "shellcheck", "shfmt"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{tmp_path}/calls"\n')
        (tools / name).chmod(0o755)
    (clone / ".venv/sm-setup-test").write_text(f"{clone}\n")
    for name in ("setup.cfg", "pyproject.toml"):
        (clone / name).write_text("")
        (clone / ".venv/sm-setup-test").touch()

    def called(*args: str) -> str:
        (tmp_path / "calls").write_text("")
        subprocess.run(["bash", clone / "bin/test", *args], check=True, capture_output=True)
        return (tmp_path / "calls").read_text()

    quick, whole = called("--quick", "-k", "phase"), called("-k", "phase")
    assert "-m quick -k phase\n" in quick
    assert "tests.real.client" not in quick
    assert "quick" not in whole
    assert "-m tests.real.client\n" in whole
    for check in ("ruff check", "ruff format", "python -m mypy", "lint-imports", "shellcheck"):
        assert check in quick
        assert check in whole
