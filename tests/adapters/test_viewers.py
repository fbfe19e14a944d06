"""What tmux tells of people at a session, by a real tmux, and what follows from it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sm.adapters.tmux import MissingPaneError, Pane, Tmux
from sm.adapters.tmux_start import start_session
from sm.adapters.viewers import Use, Viewer, look_at_use
from tests.helpers import wait_for

CAME = 1_000.0


@pytest.mark.parametrize(
    ("use", "attached", "typed_at"),
    [
        (Use(), False, 0.0),
        (Use(CAME), False, 0.0),  # nobody was ever there
        (Use(CAME, CAME), False, 0.0),
        (Use(CAME + 1, CAME), False, 0.0),
        (Use(CAME + 2, CAME), False, CAME + 2),  # they have typed, and are gone
        (Use(CAME, CAME, (Viewer(False, CAME, CAME),)), True, 0.0),
        (Use(CAME + 9, CAME, (Viewer(False, CAME, CAME + 9),)), True, CAME + 9),
        (Use(CAME + 9, CAME, (Viewer(True, CAME, CAME + 9),)), False, 0.0),
        (
            Use(CAME + 9, CAME + 5, (Viewer(True, CAME + 5, CAME + 9), Viewer(False, 0.0, CAME))),
            True,
            CAME,
        ),
    ],
)
def test_of_the_facts(use: Use, attached: bool, typed_at: float) -> None:
    assert (use.attached, use.typed_at) == (attached, typed_at)


def _attach(tmux: Tmux, folder: Path, name: str, *more: str) -> None:
    command = shlex.join([*tmux.attach_argv("work"), *more])
    start_session(tmux, name, folder, ["sh", "-c", f"unset TMUX; exec {command}"])


def test_keys_of_a_person_count_and_nothing_else_does(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "work", tmp_path, ["cat"])
    tmux.command("send-keys", "-t", pane.id, "typed by a program", "Enter")
    assert look_at_use(tmux, pane.id).viewers == ()
    assert look_at_use(tmux, pane.id).typed_at == 0

    _attach(tmux, tmp_path, "viewer", "-r")
    wait_for(lambda: look_at_use(tmux, pane.id).viewers, "the viewer")
    wait_for(lambda: _press(tmux, "viewer", pane) > CAME, "its keys to be counted", every_s=0.3)
    use = look_at_use(tmux, pane.id)
    assert (use.attached, use.typed_at) == (False, 0.0)

    _attach(tmux, tmp_path, "writer")
    wait_for(lambda: look_at_use(tmux, pane.id).attached, "the person")
    assert look_at_use(tmux, pane.id).typed_at == 0
    wait_for(lambda: _press(tmux, "writer", pane) and _typed(tmux, pane), "the keys", every_s=0.3)


def _typed(tmux: Tmux, pane: Pane) -> float:
    return look_at_use(tmux, pane.id).typed_at


def _press(tmux: Tmux, name: str, pane: Pane) -> float:
    """Press Escape at that client; how long after it came it was last active, plus an offset."""
    tmux.command("send-keys", "-t", f"={name}:", "Escape")
    viewers = look_at_use(tmux, pane.id).viewers
    return CAME + max(viewer.active_at - viewer.came_at for viewer in viewers) - 1


def test_a_pane_that_is_gone_is_told(tmux: Tmux, tmp_path: Path) -> None:
    start_session(tmux, "work", tmp_path, ["cat"])
    with pytest.raises(MissingPaneError):
        look_at_use(tmux, "%99")
