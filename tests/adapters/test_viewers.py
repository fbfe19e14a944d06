"""What tmux tells of people at a session, by a real tmux, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sm.adapters.tmux import MissingPaneError, Pane, Tmux
from sm.adapters.tmux_start import start_session
from sm.adapters.viewers import Use, Viewer, can_be_uncovered, look_at_use
from tests.helpers import wait_for
from tests.viewer import Viewer as Terminal

CAME = 1_000.0


@pytest.mark.parametrize(
    ("use", "attached", "typed_at"),
    [
        (Use(), False, 0.0),
        (Use(CAME), False, 0.0),  # nobody was ever there
        (Use(CAME, CAME), False, 0.0),
        (Use(CAME + 1, CAME), False, 0.0),
        (Use(CAME + 2, CAME), False, CAME + 2),  # they have typed, and are gone
        (Use(CAME + 9, CAME, (), CAME + 9), False, 0.0),  # who only looked has left by a key
        (Use(CAME + 9, CAME, (), CAME + 7), False, CAME + 9),
        (Use(CAME, CAME, (Viewer(False, CAME, CAME),)), True, 0.0),
        (Use(CAME + 9, CAME, (Viewer(False, CAME, CAME + 9),)), True, CAME + 9),
        (Use(CAME + 9, CAME, (Viewer(True, CAME, CAME + 9),)), False, 0.0),
        # One who typed is gone, and one who only looks is still there.
        (Use(CAME + 9, CAME, (Viewer(True, CAME, CAME),)), False, CAME + 9),
        (
            Use(CAME + 9, CAME + 5, (Viewer(True, CAME + 5, CAME + 9), Viewer(False, 0.0, CAME))),
            True,
            CAME,
        ),
    ],
)
def test_of_the_facts(use: Use, attached: bool, typed_at: float) -> None:
    assert (use.attached, use.typed_at) == (attached, typed_at)


def test_where_nobody_is_there_the_look_at_the_pane_says_it_all() -> None:
    began = Pane("work", "%1", 1, False, False, "cat", 900)
    pane = replace(began, keyed_at=1002, attached_at=1000, looked_at=999)
    assert look_at_use(Tmux("nobody-listens-here"), pane) == Use(CAME + 2, CAME, (), CAME - 1)


Attach = Callable[..., Terminal]


@pytest.fixture
def attach(tmux: Tmux) -> Iterator[Attach]:
    """Open a terminal of a person's at the session; options of `attach-session` may follow."""
    opened: list[Terminal] = []

    def open_one(*more: str) -> Terminal:
        opened.append(Terminal([*tmux.attach_argv("work"), *more]))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


def test_keys_of_a_person_count_and_nothing_else_does(
    tmux: Tmux, tmp_path: Path, attach: Attach
) -> None:
    pane = start_session(tmux, "work", tmp_path, ["cat"])
    tmux.command("send-keys", "-t", pane.id, "typed by a program", "Enter")
    assert _use(tmux, pane).viewers == ()
    assert _use(tmux, pane).typed_at == 0

    looking = attach("-r")
    wait_for(lambda: _use(tmux, pane).viewers, "the viewer")
    wait_for(lambda: _press(looking, tmux, pane) > CAME, "its keys to be counted", every_s=0.3)
    use = _use(tmux, pane)
    assert (use.attached, use.typed_at) == (False, 0.0)

    writing = attach()
    wait_for(lambda: _use(tmux, pane).attached, "the person")
    assert _use(tmux, pane).typed_at == 0
    wait_for(lambda: _press(writing, tmux, pane) and _typed(tmux, pane), "the keys", every_s=0.3)


def _use(tmux: Tmux, pane: Pane) -> Use:
    return look_at_use(tmux, tmux.look(pane.id)[0])


def _typed(tmux: Tmux, pane: Pane) -> float:
    return _use(tmux, pane).typed_at


def _press(terminal: Terminal, tmux: Tmux, pane: Pane) -> float:
    """Press Escape in it; how long after it came a client was last active, plus an offset."""
    terminal.type("\x1b")
    viewers = _use(tmux, pane).viewers
    return CAME + max(viewer.active_at - viewer.came_at for viewer in viewers) - 1


def test_a_pane_that_is_gone_is_told(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "work", tmp_path, ["cat"])
    with pytest.raises(MissingPaneError):
        look_at_use(tmux, replace(pane, id="%99", viewers=1))


def test_who_only_looks_leaves_a_text_of_tmux_over_the_pane(
    tmux: Tmux, tmp_path: Path, attach: Attach
) -> None:
    pane = start_session(tmux, "work", tmp_path, ["cat"])
    assert not can_be_uncovered(tmux, tmux.look(pane.id)[0])
    attach("-r")
    wait_for(lambda: _use(tmux, pane).viewers, "the viewer")
    assert not can_be_uncovered(tmux, tmux.look(pane.id)[0])
    attach()
    wait_for(lambda: can_be_uncovered(tmux, tmux.look(pane.id)[0]), "a person who can close it")
