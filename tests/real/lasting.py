"""Clients that stay for the tests of a module: to start one costs more than most tests do."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.screen import Screen, read
from sm.adapters.tmux import Tmux
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.conftest import end_tmux, seal
from tests.helpers import wait_for
from tests.real.api import Api
from tests.real.managed import Managed
from tests.real.terminal import Terminal


@contextmanager
def sealed_place(folder: Path) -> Iterator[tuple[Tmux, Api]]:
    """What each test has of its own: an environment, a tmux server and an API, all ending here."""
    socket = f"sm-test-{secrets.token_hex(4)}"
    with pytest.MonkeyPatch.context() as patch, Api() as api:
        seal(patch, folder)
        yield Tmux(socket), api
        end_tmux(socket)


@contextmanager
def lasting_session(program: Path, folder: Path) -> Iterator[Managed]:
    """A session of sm whose agent is the client; it is not launched before `start`."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    with sealed_place(folder) as (tmux, api):
        managed = Managed(program, tmux, Root(state), api, folder / "managed")
        yield managed
        managed.end()


@contextmanager
def lasting_terminal(program: Path, folder: Path) -> Iterator[Terminal]:
    """A terminal with an idle client."""
    with sealed_place(folder) as (tmux, api):
        terminal = Terminal(program, tmux, api, folder / "client")
        terminal.start()
        yield terminal
        terminal.end()


def settle(managed: Managed) -> None:
    """Wait until nothing is on its way, and the client idle with an empty composer."""
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    _empty_composer(managed.screen, managed.keys)


def _empty_composer(look: Callable[[], Screen], press: Callable[..., None]) -> None:
    """Delete a draft, if there is one, once the client is idle."""

    def is_emptied() -> bool:
        screen = look()
        if screen.draft:
            press(*["BSpace"] * len(screen.draft))
        return (screen.prompt, screen.draft) == ("idle", "")

    wait_for(is_emptied, "an empty composer", every_s=0.5)


def begin_anew(managed: Managed) -> None:
    """Have it go on as if it had just been started: in a new context, and asked for nothing."""
    settle(managed)
    directory = managed.session.dir
    before = agent_state.read(directory).context
    managed.type("/clear")
    managed.wait_screen(lambda screen: screen.draft == "/clear", "the command")
    managed.keys("Enter")
    wait_for(lambda: agent_state.read(directory).context != before, "a new context")
    managed.wait_screen(lambda s: (s.prompt, s.draft) == ("idle", ""), "an idle prompt")
    managed.api.forget()


def begin_terminal_anew(terminal: Terminal) -> None:
    """The same; what its hooks were told is forgotten, too."""
    _empty_composer(lambda: read(CLAUDE, terminal.screen(colours=True)), terminal.keys)
    before = len(terminal.events("SessionStart"))
    terminal.paste("/clear")
    terminal.wait_events("SessionStart", before + 1)
    terminal.wait_idle()
    for event in (terminal.folder / "events").iterdir():
        event.unlink()
    terminal.api.forget()
