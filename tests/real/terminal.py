"""A client as a person has it: in a pane of tmux, with hooks that keep what they are told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sm.adapters import procfs
from sm.adapters.tmux import Pane, Tmux, join_commands
from sm.adapters.tmux_start import start_session
from tests.helpers import wait_for
from tests.real.api import Api
from tests.real.client import argv, environment, hooks, seal

EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure"),
    *("PreCompact", "PostCompact", "Notification", "PermissionRequest", "SessionEnd"),
    "SubagentStop",
)
HOOK = r"""
folder=$1 event=$2
name=$EPOCHREALTIME.$$.$event
cat >"$folder/new.$name" && mv "$folder/new.$name" "$folder/events/$name"
if mv "$folder/answers/$event" "$folder/given.$name" 2>/dev/null; then cat "$folder/given.$name"; fi
"""

IDLE, BUSY = "\x1b[39m❯\u00a0", "\x1b[38;5;246m❯\u00a0"
"""The prompt's glyph with its colour, as `capture-pane -e` shows it."""


@dataclass(frozen=True)
class Event:
    """What a hook was told: the event's name, the payload as it came, and when (since 1970)."""

    name: str
    raw: bytes
    at: float

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, read."""
        found: dict[str, Any] = json.loads(self.raw)
        return found


@dataclass
class Terminal:
    """One client in a tmux session of its own, against one scripted API."""

    program: Path
    tmux: Tmux
    api: Api
    folder: Path
    name: str = "agent"
    variables: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # variables that its environment lacks
    pane: Pane | None = None

    def __post_init__(self) -> None:
        """Make the folders that it needs."""
        for path in (self.cwd, self.folder / "events", self.folder / "answers"):
            path.mkdir(parents=True)
        (self.folder / "hook").write_text(HOOK)
        seal(self.home, self.cwd)

    @property
    def home(self) -> Path:
        """The client's HOME."""
        return self.folder / "home"

    @property
    def cwd(self) -> Path:
        """The directory that it works in."""
        return self.folder / "work"

    def settings(self, **more: Any) -> Path:
        """A settings file with a hook at every event, and `more`."""
        commands = {event: f"bash '{self.folder}/hook' '{self.folder}' {event}" for event in EVENTS}
        path = self.folder / "settings.json"
        path.write_text(json.dumps(hooks(**commands) | more))
        return path

    def start(self, *args: str, wait: bool = True, **more: Any) -> None:
        """Run the client, with `args` behind those that a session has; `more` are settings."""
        given = ("--dangerously-skip-permissions", "--settings", str(self.settings(**more)))
        self.launch(*given, *args)
        if wait:
            self.wait_idle()

    def launch(self, *args: str) -> None:
        """Run the client with just these arguments, and wait for nothing."""
        env = environment(self.home, self.api.url, **self.variables)
        env = {name: value for name, value in env.items() if name not in self.without}
        size = (120, 40)
        self.pane = start_session(
            self.tmux, self.name, self.cwd, argv(self.program, env, *args), size=size
        )

    def end(self) -> None:
        """End the client, by its pid, and all it started."""
        if not self.pane or not (leader := procfs.find(self.pane.pid)):
            return
        family = procfs.find_family([leader])
        for signal_ in (signal.SIGTERM, signal.SIGKILL):
            for process in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal_)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: not any(map(procfs.is_running, family)), "the client's end", 2.0)
                return

    @property
    def pane_id(self) -> str:
        """The pane's id."""
        assert self.pane, "start the client first"
        return self.pane.id

    def screen(self, *, colours: bool = False) -> str:
        """What the terminal shows; with `colours`, its escape sequences too."""
        more = ("-e",) if colours else ()
        return self.tmux.command("capture-pane", "-p", *more, "-t", self.pane_id)

    def wait_screen(
        self, condition: Callable[[str], bool], what: str, *, colours: bool = False
    ) -> str:
        """The first screen for which `condition` holds; fails with the screen there is."""
        try:
            return wait_for(
                lambda: next(filter(condition, [self.screen(colours=colours)]), ""), what, 15.0
            )
        except AssertionError:
            print(self.screen())
            raise

    def wait_idle(self) -> None:
        """Wait until the prompt takes text and nothing is worked on."""
        self.wait_screen(lambda screen: IDLE in screen, "an idle prompt", colours=True)

    def wait_busy(self) -> None:
        """Wait until the prompt shows that a turn runs."""
        self.wait_screen(lambda screen: BUSY in screen, "a busy prompt", colours=True)

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names for them."""
        self.tmux.command("send-keys", "-t", self.pane_id, *names)

    def type(self, text: str) -> None:
        """Type `text` as it is, without Enter."""
        self.tmux.command("send-keys", "-l", "-t", self.pane_id, "--", text)

    def paste(self, *texts: str, enter: bool = True) -> None:
        """Paste each of `texts` for itself, then press Enter, all in one tmux command."""
        commands: list[tuple[str, ...]] = []
        for index, text in enumerate(texts):
            buffer = f"{self.name}-{index}"
            self.tmux.command("load-buffer", "-b", buffer, "-", stdin=text.encode())
            commands.append(("paste-buffer", "-p", "-d", "-b", buffer, "-t", self.pane_id))
        if enter:
            commands.append(("send-keys", "-t", self.pane_id, "Enter"))
        self.tmux.command(*join_commands(*commands))

    def answer(self, event: str, answer: dict[str, Any]) -> None:
        """Let the next hook of this event print `answer`."""
        path = self.folder / "answers" / event
        path.with_suffix(".new").write_text(json.dumps(answer, ensure_ascii=False))
        path.with_suffix(".new").rename(path)

    def add_context(self, event: str, text: str) -> None:
        """Let the next hook of this event add `text` to the context."""
        more = {"hookEventName": event, "additionalContext": text}
        self.answer(event, {"hookSpecificOutput": more})

    def events(self, *names: str) -> list[Event]:
        """The hook events so far, in order; only those of `names` if there are any."""
        found = []
        for path in sorted((self.folder / "events").iterdir()):
            at, name = path.name.rsplit(".", 2)[0], path.name.rpartition(".")[2]
            if not names or name in names:
                found.append(Event(name, path.read_bytes(), float(at)))
        return found

    def wait_events(self, name: str, count: int = 1) -> list[Event]:
        """The events of this name, once there are `count`."""
        what = f"{count} × {name}"
        wait_for(lambda: len(self.events(name)) >= count, what)
        return self.events(name)
