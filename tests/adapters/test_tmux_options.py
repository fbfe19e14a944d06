"""What tmux may be told by a person's configuration, and what of it must not matter to a session.

The tables name every option and hook of tmux 3.2 to 3.7 (options-table.c), with values that could
stop a start, a delivery, an attachment or an end, or with the reason why none can.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.composer import press, type_once
from sm.adapters.tmux import SIZE, Tmux, TmuxError
from sm.adapters.tmux_start import UnfitServerError, start_session
from tests.conftest import end_tmux, sealed_environment
from tests.helpers import wait_for
from tests.terminal import argv, received
from tests.viewer import Viewer, attached

HOSTILE = {
    # Of the server.
    "backspace": ("C-h",),
    "buffer-limit": ("1",),
    "default-terminal": ("xterm-256color", "dumb"),
    "escape-time": ("0", "5000"),
    "exit-empty": ("off",),
    "extended-keys": ("always",),
    "extended-keys-format": ("csi-u",),  # since tmux 3.5
    "focus-events": ("on",),
    "message-limit": ("0",),
    "set-clipboard": ("on",),
    # Of sessions.
    "assume-paste-time": ("0", "1000"),
    "base-index": ("7",),
    "default-command": ("exit 1",),
    "default-shell": ("/bin/false",),
    "default-size": ("10x3",),
    "detach-on-destroy": ("off", "no-detached", "previous", "next"),
    "display-time": ("0",),
    "history-limit": ("0",),
    "key-table": ("prefix",),
    "mouse": ("on",),
    "prefix": ("None",),
    "renumber-windows": ("on",),
    "set-titles": ("on",),
    "status": ("5", "off"),
    "status-position": ("top",),
    "update-environment": ("PATH",),
    # Of windows and panes.
    "aggressive-resize": ("on",),
    "allow-passthrough": ("on",),
    "allow-rename": ("on",),
    "alternate-screen": ("off",),
    "automatic-rename": ("on",),
    "main-pane-height": ("1",),
    "mode-keys": ("vi",),
    "monitor-activity": ("on",),
    "monitor-silence": ("1",),
    "pane-base-index": ("3",),
    "pane-border-status": ("top",),
    "pane-scrollbars": ("on",),
    "remain-on-exit": ("on",),
    "synchronize-panes": ("on",),
    "window-size": ("smallest", "largest"),  # manual: see below
    "xterm-keys": ("off",),
    # Hooks.
    "after-new-session": (
        "split-window -hb",
        "new-window",
        "send-keys 'touch x' Enter",
        "rename-session mine",
        "copy-mode",
        "select-pane -d",
        "resize-window -x 20 -y 5",
        "set-option remain-on-exit on",
        "set-option detach-on-destroy off",
    ),
    "after-list-panes": ("display-message -p hello",),
    "after-paste-buffer": ("display-message -p hello",),
    "after-send-keys": ("display-message -p hello",),
    "client-attached": ("split-window -d",),
    "client-resized": ("display-message hello",),
    "pane-exited": ("display-message hello",),
    "session-closed": ("display-message hello",),
    "session-created": ("split-window -d", "rename-session mine"),
    "window-linked": ("set-option remain-on-exit on",),
}
"""Each of them is set for all sessions before ours begins."""
COMMANDS = (
    *(
        "attach-session",
        "capture-pane",
        "copy-mode",
        "delete-buffer",
        "display-message",
        "if-shell",
    ),
    *("kill-pane", "kill-session", "kill-window", "list-panes", "load-buffer", "new-session"),
    *("paste-buffer", "pipe-pane", "rename-session", "resize-pane", "resize-window"),
    *("respawn-pane", "select-pane", "send-keys", "set-hook", "set-option", "show-options"),
    *("start-server", "new", "send", "set"),
)
ALIASES = {f"command-alias[{90 + n}]": f"{name}=kill-server" for n, name in enumerate(COMMANDS)}
"""All that we call, and what it is short for."""

KEYS = "what a person's keys do at a client; the program gets them as ever"
DRAWN = "how a client's screen looks around the pane, or where tmux asks and tells"
CALLS = "what tmux runs when a person asks for it"
HARMLESS = {
    **dict.fromkeys(
        (
            *("prefix2", "prefix-timeout", "repeat-time", "initial-repeat-time", "user-keys"),
            *("status-keys", "word-separators", "wrap-search", "focus-follows-mouse"),
        ),
        KEYS,
    ),
    **dict.fromkeys(
        (
            *("activity-action", "bell-action", "silence-action", "visual-activity"),
            *("visual-bell", "visual-silence", "monitor-bell", "display-panes-time"),
            *("display-panes-active-colour", "display-panes-colour", "message-line"),
            *("message-style", "message-command-style", "message-format"),
            *("set-titles-string", "automatic-rename-format", "remain-on-exit-format"),
            *("clock-mode-colour", "clock-mode-style", "cursor-colour", "cursor-style"),
            *("fill-character", "mode-style", "terminal-features", "terminal-overrides"),
            *("window-active-style", "window-style", "pane-colours", "allow-set-title"),
            *("pane-border-lines", "pane-border-style", "pane-active-border-style"),
            *("pane-border-format", "pane-border-indicators", "scroll-on-clear"),
            *("pane-scrollbars-position", "pane-scrollbars-style"),
            *("pane-status-current-style", "pane-status-style"),
            *("window-pane-current-status-format", "window-pane-status-format"),
            *("tree-mode-preview-format", "tree-mode-preview-style"),
        ),
        DRAWN,
    ),
    **dict.fromkeys(("copy-command", "default-client-command", "editor", "lock-command"), CALLS),
    "get-clipboard": "what a program may ask of the client's clipboard",
    "history-file": "commands that a person typed into tmux",
    "prompt-history-limit": "commands that a person typed into tmux",
    "lock-after-time": "locks a person's client, not the session",
    "input-buffer-size": "of one control sequence; the least that it takes is far above ours",
    "codepoint-widths": "no character that a profile looks for may be named there: see the docs",
    "variation-selector-always-wide": "no character that a profile looks for has one",
    **dict.fromkeys(
        ("main-pane-width", "other-pane-height", "other-pane-width", "tiled-layout-max-columns"),
        "the layout of several panes, when a person asks for one",
    ),
    "command-alias": "see ALIASES",
    "destroy-unattached": "ends a person's own session, too: see below",
    "exit-unattached": "no session can last: the start says so, see below",
}
DRAWN_PREFIXES = (
    *("status-", "window-status-", "copy-mode-", "menu-", "popup-", "prompt-", "session-status-"),
)
"""Groups of options of the kind DRAWN."""
HOOKS = ("after-", "alert-", "client-", "pane-", "session-", "window-", "command-error")
"""Hooks run what a person wrote. What that may do to a new session is tried above."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tmux, Path]]:
    """A server for all tests, and a folder."""
    folder = tmp_path_factory.mktemp("place")
    socket = f"sm-test-{secrets.token_hex(4)}"
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in sealed_environment(folder).items():
            patch.setenv(name, value)
        yield Tmux(socket), folder
        end_tmux(socket)


@pytest.fixture
def place(server: tuple[Tmux, Path]) -> tuple[Tmux, Path]:
    """A session of a person's own is on it."""
    tmux, folder = server
    if tmux.pane("person") is None:
        person = ("new-session", "-d", "-s", "person", "cat > typed")
        tmux.command("start-server", ";", *person, cwd=folder)
    return server


def serve_one(tmux: Tmux, folder: Path, name: str) -> None:
    """A session begins, is looked at, gets a message and keys, and ends."""
    log = folder / f"{name}.log"
    pane = start_session(tmux, name, folder, argv(folder, log), mark="m", title="shop #7")
    assert (pane.session, pane.size, pane.in_mode, pane.mark) == (name, SIZE, False, "m")
    wait_for(lambda: "❯" in tmux.look(pane.id)[1], "the program")
    if (alone := tmux.look(pane.id)[0]).command in ("bash", "sh"):
        wait_for(lambda: tmux.look(pane.id)[0].command not in ("bash", "sh"), "no shell")
    assert alone.pid == pane.pid
    viewer = Viewer(tmux.attach_argv(name))
    try:
        wait_for(lambda: attached(tmux, viewer, name), "a client")
        there = tmux.look(pane.id)[0]
        if there.mode == "view-mode":  # tmux 3.4 shows who attaches the errors of the configuration
            viewer.type("q")
            wait_for(lambda: not tmux.look(pane.id)[0].in_mode, "the person to close them")
        assert type_once(tmux, there, "a", ["from sm"]) is None
        wait_for(lambda: received(log) == ["from sm"], "the message")
        assert press(tmux, there, ["C-s", "BSpace", "Escape"]) is None
        wait_for(lambda: log.read_bytes().endswith(b"\r\x13\x7f\x1b"), "the keys")
        tmux.kill(name, pane.pid)
        wait_for(viewer.has_ended, "the end of the client")
        assert viewer.process.returncode == 0
    finally:
        viewer.close()
        tmux.kill(name, pane.pid)
    assert name not in tmux.panes()


ROUNDS = [
    {option: values[number] for option, values in HOSTILE.items() if number < len(values)}
    for number in range(max(map(len, HOSTILE.values())))
]
"""In each of them the next value of all options."""
ROUNDS.append(ALIASES)
UNKNOWN = ("invalid option", "unknown value", "ambiguous option")
"""What an older tmux says."""


@pytest.mark.parametrize("settings", ROUNDS, ids=map(str, range(len(ROUNDS))))
def test_a_session_begins_is_reached_and_ends_whatever_is_set(
    place: tuple[Tmux, Path], settings: dict[str, str]
) -> None:
    tmux, folder = place
    server = tmux.command("display-messag", "-p", "#{pid}")
    for option, value in settings.items():
        try:
            tmux.command("set-optio", "-g", option, value)
        except TmuxError as error:
            if not any(word in error.message for word in UNKNOWN):
                raise
    try:
        serve_one(tmux, folder, f"dev-{secrets.token_hex(4)}")
        assert tmux.command("display-messag", "-p", "#{pid}") == server
        assert (folder / "typed").read_bytes() == b""
    finally:
        end_tmux(tmux.socket or "")


def test_every_option_of_this_tmux_has_been_thought_about(place: tuple[Tmux, Path]) -> None:
    tmux, _ = place
    known = {name.partition("[")[0] for name in HOSTILE} | set(HARMLESS)
    listed = [
        line.partition(" ")[0].partition("[")[0]
        for scope in ("-gs", "-g", "-gw")
        for line in tmux.command("show-options", scope).splitlines()
    ]
    new = {name for name in listed if name not in known and not name.startswith(DRAWN_PREFIXES)}
    assert {name for name in new if not name.startswith(("@", *HOOKS))} == set()


def test_a_server_that_ends_with_its_clients_is_refused(place: tuple[Tmux, Path]) -> None:
    tmux, folder = place
    viewer = Viewer(tmux.attach_argv("person"))
    try:
        wait_for(lambda: attached(tmux, viewer, "person"), "a client")
        tmux.command("set-option", "-s", "exit-unattached", "on")
        with pytest.raises(UnfitServerError, match="exit-unattached"):
            start_session(tmux, "dev-a-1", folder, ["cat"])
        assert list(tmux.panes()) == ["person"]
        tmux.command("set-option", "-s", "exit-unattached", "off")
    finally:
        viewer.close()


def test_a_server_that_a_new_session_would_end_is_left_alone(place: tuple[Tmux, Path]) -> None:
    tmux, folder = place
    tmux.command("set-option", "-gw", "window-size", "manual")
    try:
        if (3, 3) <= tmux.version < (3, 7):
            with pytest.raises(UnfitServerError, match="window-size"):
                start_session(tmux, "dev-a-1", folder, ["cat"])
            assert list(tmux.panes()) == ["person"]
        else:
            serve_one(tmux, folder, "dev-a-1")
    finally:
        tmux.command("set-option", "-gw", "window-size", "latest")


def test_a_session_lasts_where_others_end_with_their_clients(place: tuple[Tmux, Path]) -> None:
    tmux, folder = place
    start_session(tmux, "keeper", folder, ["cat"])
    tmux.command("set-option", "-g", "destroy-unattached", "on")
    serve_one(tmux, folder, "dev-a-1")
    assert list(tmux.panes()) == ["keeper"]
    end_tmux(tmux.socket or "")
