"""A distribution of its own adds parts of each kind to an installed `sm`, which stays as it is.

It is in the folder `noticeboard`, and docs/PLUGINS.md shows it. A second one is broken.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.forge.local.setup import create
from tests.helpers import make_repository, wait_for
from tests.shell import REPOSITORY

NOTICEBOARD = REPOSITORY / "tests" / "plugins" / "noticeboard"

BROKEN = """\
from sm.base.plugin import Plugin, Verb
import a_library_that_is_not_there
PLUGIN = Plugin(verbs={"broken": Verb("broken:command", "Never seen.")})
"""
CLASHING = """\
from sm.base.plugin import Plugin, Verb
PLUGIN = Plugin(
    verbs={
        "status": Verb("clashing:command", "Another status."),
        "doctor": Verb("clashing:command", "Another doctor."),
        "wave": Verb("clashing:command", "Wave."),
    },
    channels={"torn": "no_such_module:open_torn"},
)
"""
ENTRY_POINTS = "[sm.plugins]\nbroken = broken:PLUGIN\nclashing = clashing:PLUGIN\nno = os:sep\n"

Sm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with this clone and the noticeboard."""
    folder = tmp_path_factory.mktemp("plugin")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    (site_packages,) = folder.glob("env/lib/python3*/site-packages")
    borrowed = [*site.getsitepackages(), str(REPOSITORY)]
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed))
    source = shutil.copytree(NOTICEBOARD, folder / "source")  # building leaves litter there
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install"),
            *("--no-deps", "--no-index", "--no-build-isolation", str(source)),
        ],
        check=True,
        capture_output=True,
    )
    return python


@pytest.fixture
def sm(python: Path, tmp_path: Path, tmux_socket: str) -> Sm:
    """Calls `sm` there, in a project whose issues hang on the noticeboard."""
    repository = make_repository(tmp_path)
    create(tmp_path / "hall", repository.bare)
    (tmp_path / "board").mkdir(mode=0o700)
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "sm.yaml").write_text(
        f"state_root: state\ntmux_socket: {tmux_socket}\n"
        f"noticeboard: {{board: board}}\n"
        f"projects:\n- name: harb\n  repo: {repository.clone}\n"
        "  forge: {kind: noticeboard, hall: hall}\n"
        "  agent: {command: cat}\n  max_sessions: 0\n"
    )

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-Im", "sm", *args],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"SM_CONFIG": str(tmp_path / "sm.yaml")},
        )

    return call


def test_its_verb_is_in_the_help_and_works(sm: Sm, tmp_path: Path) -> None:
    helped = sm("--help")
    verbs = [line.split()[0] for line in helped.stdout.splitlines() if line.startswith("  ")]
    assert verbs[verbs.index("status") + 1] == "notices", "it stands where it has asked to"
    assert "Show what is pinned to the board." in helped.stdout
    (tmp_path / "board" / "1.md").write_text("harb#1: Round up?\n")
    assert sm("notices").stdout == "harb#1: Round up?\n"


def test_its_section_is_checked_and_shown(sm: Sm, tmp_path: Path) -> None:
    assert sm("config", "check").stdout == "harb: OK\n"
    shown = json.loads(sm("config", "show", "--json").stdout)
    assert shown["noticeboard"] == {"board": str(tmp_path / "board"), "keep": 20}
    assert shown["projects"][0]["noticeboard"] == shown["noticeboard"]
    config = tmp_path / "sm.yaml"
    config.write_text(config.read_text().replace("board: board}", "boards: board}"))
    wrong = sm("config", "check")
    assert wrong.returncode == 2
    assert "unknown key 'noticeboard.boards'" in wrong.stderr
    assert "did you mean 'board'" in wrong.stderr


def test_a_project_on_its_forge_is_polled(sm: Sm, tmp_path: Path) -> None:
    added = sm("issue", "add", "Round up", "--label", "backlog")
    assert added.returncode == 0, added.stderr
    polled = sm("poll")
    assert polled.returncode == 0, polled.stderr
    (snapshot,) = tmp_path.glob("state/sm-*/projects/harb/forge.json")
    assert "Round up" in snapshot.read_text()
    assert "Round up" in sm("issue", "list").stdout


def test_its_listener_hears_of_a_tick_that_failed(sm: Sm, tmp_path: Path) -> None:
    assert sm("poll").returncode == 0
    shutil.rmtree(tmp_path / "hall")
    assert "hall" in sm("poll").stderr
    wait_for(lambda: list((tmp_path / "board").glob("*.md")), "a notice")
    assert sm("notices").stdout.startswith("dev-poll: harb: ")


def test_the_doctor_shows_its_check_and_what_it_adds(sm: Sm, tmp_path: Path) -> None:
    found = json.loads(sm("doctor", "--json").stdout)
    told = {one["what"]: (one["level"], one["where"]) for one in found}
    assert told[f"notices on '{tmp_path / 'board'}': 0"] == ("ok", "harb")
    adds = (
        "plugin 'noticeboard': forges 'noticeboard', agents 'scribe', channels 'noticeboard', "
        "sections 'noticeboard', verbs 'notices', checks 'noticeboard', files 'noticeboard', "
        "events 'notice-pinned', sites 'noticeboard', ticks 'noticeboard', "
        "followers 'noticeboard', figures 'noticeboard', meters 'noticeboard', "
        "variables 'noticeboard', runners 'noticeboard'"
    )
    assert told[adds] == ("ok", "machine")
    assert not any("cannot be used" in what for what in told)


def test_plugins_that_are_broken_stop_nothing_and_are_named(
    python: Path, sm: Sm, tmp_path: Path
) -> None:
    (site_packages,) = python.parent.parent.glob("lib/python3*/site-packages")
    info = site_packages / "broken-1.dist-info"
    files = {
        site_packages / "broken.py": BROKEN,
        site_packages / "clashing.py": CLASHING,
        info / "METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1\n",
        info / "entry_points.txt": ENTRY_POINTS,
    }
    info.mkdir()
    for path, text in files.items():
        path.write_text(text)
    try:
        helped = sm("--help")
        assert helped.returncode == 0
        assert "\n  wave " in helped.stdout
        assert "\n  notices " in helped.stdout
        assert "Another" not in helped.stdout
        assert sm("status").returncode == 0
        said = "sm: plugin 'clashing' cannot give 'wave': AttributeError"
        assert sm("wave").stderr.startswith(said)
        found = json.loads(sm("doctor", "--json").stdout)
    finally:
        shutil.rmtree(info)
    named = [one["what"] for one in found if "cannot be used" in one["what"]]
    for what in (
        "plugin 'broken' cannot be used as it is: ModuleNotFoundError: No module named 'a_library",
        "plugin 'no' cannot be used as it is: 'os:sep' is a str, no sm.base.plugin.Plugin",
        "plugin 'clashing' cannot be used as it is: verbs: 'doctor' is of plugin 'doctor'",
        "plugin 'clashing' cannot be used as it is: verbs: 'status' is a name of sm's own",
        "plugin 'clashing' cannot be used as it is: channels: plugin 'clashing' cannot give 'torn'",
    ):
        assert any(one.startswith(what) for one in named), (what, named)
