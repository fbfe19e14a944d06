"""Every test runs sealed: own HOME, own git identity, own state root, own tmux server."""

from __future__ import annotations

import functools
import gc
import os
import secrets
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from sm.adapters.tmux import Tmux
from sm.base import plugin
from sm.config.forges import LocalSettings
from sm.config.schema import ProjectSettings
from sm.plugins import OURS
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests import chance
from tests.chosen import is_chosen
from tests.company import Company, make_company
from tests.helpers import REPOSITORY, Repository, make_repository

SLOW_UNTIL = {"real": 0.85, "e2e": 0.95}
"""The part of a run in which the tests of a folder are met."""

JOURNEYS = ("e2e", "real")
"""The folders whose tests start agents, whatever they ask for."""
NOT_QUICK = ("long_lived", "sweep")
"""The markers of tests that start what no fixture tells of, or take much time by themselves."""
LONG_LIVED = {"tmux_socket", "served"}
"""The fixtures of each test with a terminal, mostly by another one, and of many with a server."""

KEPT_VARIABLES = ("PATH", "LANG", "SM_CRASH_AT", "VIRTUAL_ENV", "PYTHONHASHSEED")

COLLECTED: pytest.StashKey[list[pytest.Item]] = pytest.StashKey()
"""All tests of the run, also those that its options leave out."""

chance.register_profiles()
plugin.use(OURS.items)


def pytest_configure() -> None:
    """Have what the tests start obey signals that nohup, or a shell in the background, ignores."""
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def sealed_environment(folder: Path) -> dict[str, str]:
    """What a test may see of the environment, with a HOME that is made in `folder`."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    home = folder / "home"
    home.mkdir()
    git_config = home / ".gitconfig"
    git_config.write_text(
        "[user]\n\tname = Ada Tester\n\temail = ada@example.com\n"
        '[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n'
        "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n"
    )
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": str(git_config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0000",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+0000",
        "USER": "ada",
    }


@pytest.fixture(autouse=True)
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that holds nothing of the person who runs the tests; returns its HOME."""
    seal(monkeypatch, tmp_path)
    return tmp_path / "home"


def seal(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have that environment, and nothing of another one, with its HOME in `folder`."""
    environment = sealed_environment(folder)
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A state root of the test's own."""
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("SM_STATE_ROOT", str(path))
    return Root(path)


@pytest.fixture
def tmux_socket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The socket name of a tmux server that ends with the test."""
    name = f"sm-test-{secrets.token_hex(4)}"
    monkeypatch.setenv("SM_TMUX_SOCKET", name)
    yield name
    end_tmux(name)


def end_tmux(name: str) -> None:
    """End the tmux server with that socket name."""
    subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, check=False)
    Path(f"/tmp/tmux-{os.geteuid()}/{name}").unlink(missing_ok=True)


@pytest.fixture
def tmux(tmux_socket: str) -> Tmux:
    """That server, as sm sees it."""
    return Tmux(tmux_socket)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a test's terminal program writes down what it receives."""
    return tmp_path / "log"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A remote and a clone, in a folder whose name wants quoting."""
    folder = tmp_path / 'it\'s a "place" – süß'
    folder.mkdir()
    return make_repository(folder)


@pytest.fixture
def project(repository: Repository) -> ProjectSettings:
    """A project on that repository, with no forge to speak of."""
    forge = LocalSettings(path=repository.bare)
    return ProjectSettings(name="harb", repo=repository.clone, forge=forge)


@pytest.fixture
def company(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Company]:
    """Sessions that talk to one another; what they did is shown where the test has failed."""
    made = make_company(tmp_path, root)
    yield made
    for event in journal.read(root.journal):
        print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
    for log in root.sessions.glob("*/monitor.log"):
        print(f"--- {log}\n{log.read_text()}")
    made.end()


def is_quick(folder: str, fixtures: Iterable[str]) -> bool:
    """Whether a test in `folder` that uses these fixtures starts no terminal, agent or server."""
    return folder not in JOURNEYS and LONG_LIVED.isdisjoint(fixtures)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what `bin/test` runs without `--all`, and keep in mind what was collected."""
    item.config.stash.setdefault(COLLECTED, []).append(item)
    if is_chosen(item.nodeid):
        item.add_marker("chosen")
    fixtures = getattr(item, "fixturenames", ())
    if any(map(item.get_closest_marker, NOT_QUICK)) or shares_what_it_makes(item.path):
        return
    if is_quick(item.path.parent.name, fixtures):
        item.add_marker("quick")


class ModulesTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Gives a free worker one test; or a whole module, where its tests share a server or a wheel.

    Else each of them would make it anew, as tests of other modules come between them.

    What is done is dropped, and a test is found by its name at once: the class above goes through
    all that a worker has ever had with each test, and through all tests to find one.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if shares_what_it_makes(REPOSITORY / file) else nodeid

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Drop the test from what its worker has, and give the worker more."""
        nodeid = self.registered_collections[node][item_index]
        scope = self._split_scope(nodeid)
        has = self.assigned_work[node]
        del has[scope][nodeid]
        if not has[scope]:
            del has[scope]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._places[nodeid] for nodeid in unit])

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """The place of each test in the collection, which all workers have alike."""
        return {nodeid: place for place, nodeid in enumerate(self.collection)}


@functools.cache
def shares_what_it_makes(module: Path) -> bool:
    """Whether a module has a fixture that is made once for all of its tests."""
    return 'scope="module"' in module.read_text("utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ModulesTogether:
    """Share the tests out that way; bin/test has several workers."""
    return ModulesTogether(config, log)


def pytest_collection() -> None:
    """Have no garbage collected meanwhile: each worker's collection takes a seventh less."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the collector from looking through thousands of tests again and again.

    It would also copy them page by page into every fork of a worker.
    """
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones evenly among the others, so that not all workers want a processor at once.

    The last stretch is without them: short tests, for whichever worker is free.
    """
    folders: dict[str, list[pytest.Item]] = {}
    for item in items:
        folders.setdefault(item.path.parent.name, []).append(item)
    place = {
        item: number / len(group) * SLOW_UNTIL.get(folder, 1.0)
        for folder, group in folders.items()
        for number, item in enumerate(group)
    }
    items.sort(key=place.__getitem__)
