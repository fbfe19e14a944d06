"""The real client, against a scripted API, in a terminal that ends with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.messages import delivery, draft
from sm.plugins.cost.ledger.entries import CostLedger, open_ledger
from sm.sessions.session import Session
from sm.store.paths import Root
from tests.helpers import HANG_S
from tests.real.api import Api
from tests.real.client import Clients, clients
from tests.real.codex import Codex, session_of_sm
from tests.real.counting import Counting
from tests.real.managed import Managed
from tests.real.terminal import Terminal


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside other work a receipt may take long. No test here waits for one in vain."""
    for module in (delivery, draft):
        monkeypatch.setattr(module, "RECEIPT_S", HANG_S)


@pytest.fixture(scope="session")
def pinned() -> Clients:
    """The programs of the pinned clients."""
    return clients()


@pytest.fixture
def claude(pinned: Clients) -> Path:
    """The program of the pinned Claude Code."""
    return pinned.claude


@pytest.fixture
def api() -> Iterator[Api]:
    """A scripted Messages API of the test's own; what it was asked is shown if the test fails."""
    with Api() as api:
        yield api
        for number, request in enumerate(api.main, 1):
            said = " | ".join(text[:80] for text in request.said[-8:])
            print(f"request {number} at {request.at_s:.3f} in {request.session}: {said!r}")


@pytest.fixture
def terminal(claude: Path, api: Api, tmux: Tmux, tmp_path: Path) -> Iterator[Terminal]:
    """A terminal for Claude Code, in which nothing runs before `start`."""
    terminal = Terminal(claude, tmux, api, tmp_path / "client")
    yield terminal
    terminal.end()


@pytest.fixture
def client(terminal: Terminal) -> Terminal:
    """The same, with an idle client in it."""
    terminal.start()
    return terminal


@pytest.fixture
def codex(pinned: Clients, api: Api, tmux: Tmux, tmp_path: Path) -> Iterator[Codex]:
    """A terminal for Codex, in which nothing runs before `start`."""
    codex = Codex(pinned.codex, tmux, api, tmp_path / "codex")
    yield codex
    codex.end()


@pytest.fixture
def target(pinned: Clients, api: Api, tmux: Tmux, root: Root, tmp_path: Path) -> Iterator[Session]:
    """A session of sm whose agent is an idle Codex."""
    with session_of_sm(pinned.codex, tmux, root, api, tmp_path) as target:
        yield target


@pytest.fixture
def unstarted(claude: Path, tmux: Tmux, root: Root, api: Api, tmp_path: Path) -> Iterator[Managed]:
    """A session of sm whose agent is the client; it is not launched before `start`."""
    managed = Managed(claude, tmux, root, api, tmp_path / "managed")
    yield managed
    managed.end()


@pytest.fixture
def managed(unstarted: Managed) -> Managed:
    """The same, idle."""
    unstarted.start()
    return unstarted


@pytest.fixture
def counting(api: Api) -> Counting:
    """The model: no two of its answers count the same."""
    model = Counting()
    api.model = model
    return model


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CostLedger]:
    """An empty one."""
    with open_ledger(tmp_path / "ledger" / "ledger.db") as ledger:
        yield ledger
