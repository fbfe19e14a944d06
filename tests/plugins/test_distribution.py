"""A distribution of its own adds parts of each kind to an installed `sm`, which stays as it is.

It is in the folder `noticeboard`, and docs/PLUGINS.md shows it. A second one is broken.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.local.setup import create
from sm.helper import services
from sm.sessions import agent
from sm.store.paths import Root
from tests.helpers import make_repository, wait_for
from tests.plugins.environment import make_environment

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
    return make_environment(tmp_path_factory.mktemp("plugin"))


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
    expected = {"board": str(tmp_path / "board"), "keep": 20, "answers": False}
    assert shown["noticeboard"] == expected
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
        "variables 'noticeboard', runners 'noticeboard', services 'noticeboard', "
        "sandboxes 'noticeboard', trackers 'cards'"
    )
    assert told[adds] == ("ok", "machine")
    assert not any("cannot be used" in what for what in told)


ASKER = """\
env >"$SM_CLONE/../seen"
printf 'PHASE:escalate\\nReason: which colour?\\n' >"$PHASE_FILE"
exec cat
"""
"""An agent that asks a person as soon as it begins."""


@pytest.fixture
def asking(sm: Sm, tmp_path: Path) -> Iterator[Root]:
    """An issue whose agent asks, in the sandbox of the board, on which answers may be pinned."""
    (tmp_path / "asker.sh").write_text(ASKER)
    config = tmp_path / "sm.yaml"
    agent = f"{{command: sh {tmp_path / 'asker.sh'}, env: {{SSH_AUTH_SOCK: /keys}}}}"
    for old, new in (
        ("{board: board}", "{board: board, answers: true}\nsandbox: noticeboard"),
        ("{command: cat}", agent),
        ("max_sessions: 0", "max_sessions: 1\n  worktree: {setup: 'echo $INSIDE >made'}"),
    ):
        assert old in config.read_text()
        config.write_text(config.read_text().replace(old, new))
    assert sm("issue", "add", "Paint it", "--label", "backlog").returncode == 0
    polled = sm("poll")
    assert polled.returncode == 0, polled.stdout + polled.stderr
    root = Root(tmp_path / "state")
    yield root
    sm("kill", "harb#1")
    for files in services.list_running(root):
        services.end_service(files)


def test_its_sandbox_is_around_each_agent_and_the_setup(
    sm: Sm, asking: Root, tmp_path: Path
) -> None:
    seen = wait_for(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text(), "it")
    assert seen
    assert "INSIDE=noticeboard\n" in seen
    assert "SSH_AUTH_SOCK" not in seen
    [made] = tmp_path.glob("clone-worktrees/harb-1/made")
    assert made.read_text() == "noticeboard\n"
    assert (tmp_path / "board" / "dev-harb-1.inside").exists()
    (tmp_path / "seen").unlink()
    known = agent.load(asking.session("dev-harb-1"))
    assert known
    os.kill(known.pid, signal.SIGKILL)
    again = wait_for(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text(), "it")
    assert again
    assert "INSIDE=noticeboard\n" in again, "the next agent is inside, too"
    assert sm("kill", "harb#1").returncode == 0
    assert not (tmp_path / "board" / "dev-harb-1.inside").exists()


def test_without_its_sandbox_nothing_begins_and_people_are_told(
    sm: Sm, asking: Root, tmp_path: Path
) -> None:
    assert sm("kill", "harb#1").returncode == 0
    config = tmp_path / "sm.yaml"
    before = config.read_text()
    config.write_text(before.replace("sandbox: noticeboard", "sandbox: nobody"))
    said = "sandbox 'nobody' cannot be had: no plugin has it: there are 'noticeboard'"
    assert sm("issue", "add", "Paint another", "--label", "backlog").returncode == 0
    for _ in range(2):
        assert said in sm("poll").stdout
    assert said in sm("needs").stdout
    assert said in sm("doctor").stdout
    assert said in sm("new", "--dir", str(tmp_path / "clone"), "--command", "cat").stderr
    told = [json.loads(line) for line in sm("events", "--json").stdout.splitlines()]
    assert [one["kind"] for one in told if said in str(one)].count("person") == 1
    config.write_text(before)
    assert sm("poll").returncode == 0
    assert sm("kill", "harb#2").returncode == 0


def test_its_service_hears_answers_also_after_it_was_killed(
    sm: Sm, asking: Root, tmp_path: Path
) -> None:
    files = services.ServiceFiles(asking.plugins / "noticeboard", "noticeboard")
    wait_for(lambda: files.is_running() and files.read(), "the service")
    run = files.read()
    assert run
    os.kill(run.pid, signal.SIGKILL)
    wait_for(lambda: not files.is_running(), "its end")

    def is_back() -> bool:
        assert sm("poll").returncode == 0
        return files.is_running()

    wait_for(is_back, "the next one", every_s=0.5)
    wait_for(lambda: "which colour" in sm("needs").stdout, "the question")
    (tmp_path / "board" / "1.answer").write_text("Blue.\n")
    wait_for(lambda: not (tmp_path / "board" / "1.answer").exists(), "somebody to hear it")
    wait_for(lambda: "Blue." in sm("issue", "show", "1").stdout, "the answer on the issue")
    assert "service 'noticeboard' runs, since " in sm("doctor").stdout


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
