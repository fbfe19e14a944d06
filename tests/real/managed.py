"""A real client as sm runs it: a session on record, launched with hooks, spoken to by delivery."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import Tmux
from sm.base.refusal import Outcome, Status
from sm.config.schema import AgentSettings
from sm.messages import delivery, queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.personal import reactor
from sm.sessions import agent as agents
from sm.sessions import agent_process, agent_state, monitors, registry
from sm.sessions.agent import Agent
from sm.sessions.agent_state import State
from sm.sessions.launch import Launch
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store import lock
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api
from tests.real.client import environment, seal
from tests.teardown import end_session


@dataclass
class Managed:
    """One ad-hoc session whose agent is the pinned Claude Code, against one scripted API."""

    program: Path
    tmux: Tmux
    root: Root
    api: Api
    folder: Path
    name: str = "s-real"
    options: tuple[str, ...] = ("--dangerously-skip-permissions",)
    variables: dict[str, str] = field(default_factory=dict)
    generation: int = 0
    provider: str = CLAUDE.name
    config: Path | None = None
    profile: Profile = CLAUDE
    without: tuple[str, ...] = ()  # variables that its environment lacks

    @cached_property
    def session(self) -> AdHocSession:
        """Its record."""
        work = self.folder / "work"
        work.mkdir(parents=True)
        seal(self.folder / "home", work)
        return registry.create(
            self.root,
            AdHocSession(
                AdHocRecord(
                    name=self.name,
                    provider=self.provider,
                    cwd=work,
                    config=self.config,
                    state_root=self.root.path,
                    created_at=time.time(),
                    command=shlex.join([str(self.program), *self.options]),
                )
            ),
        ).provide(tmux=self.tmux, profile=self.profile)

    @property
    def agent(self) -> Agent:
        """The agent on record."""
        found = agents.load(self.session.dir)
        assert found is not None
        return found

    def start(self, prompt: str = "", *, protocol: str = "", wait: bool = True) -> None:
        """Launch the client."""
        variables = environment(self.folder / "home", self.api.url, **self.variables)
        for name in ("TERM", "PATH", *self.without):
            variables.pop(name, None)
        settings = AgentSettings(command=self.session.record.command, env=variables)
        self.generation += 1
        launch = Launch(settings, self.profile, prompt, protocol)
        agent_process.launch(self.tmux, self.session, launch, generation=self.generation)
        if wait:
            self.wait_state(State.IDLE)
            self.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")

    def watch(self) -> None:
        """Begin its monitor."""
        for name in ("", *MessageFolder):
            ensure_private_dir(self.session.dir.queue / name)
        reactor.watch(self.session)
        monitors.ensure(self.session)

    def end(self) -> None:
        """End the client and all that it has started, and its monitor if it has one."""
        if lock.is_held(self.session.dir.monitor_lock):
            end_session(self.session)
        else:
            agent_process.stop(self.tmux, self.session)

    @property
    def state(self) -> State:
        """What its hooks say."""
        return agent_state.read(self.session.dir).state

    def wait_state(self, *states: State) -> None:
        """Wait until its hooks say one of these."""
        self._wait(lambda: self.state in states, f"the state {' or '.join(states)}")

    def screen(self) -> Screen:
        """Its screen, as delivery reads it."""
        return read_screen(self.profile, self.tmux.look(self.agent.pane_id, escapes=True)[1])

    def wait_screen(self, condition: Callable[[Screen], bool], what: str) -> None:
        """Wait for a screen for which `condition` holds."""
        self._wait(lambda: condition(self.screen()), what)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_for(condition, what, HANG_S)
        except AssertionError:
            print(self.tmux.capture(self.agent.pane_id))
            print((self.session.dir.events.read_text() or "").splitlines()[-12:])
            raise

    def send(self, text: str, mode: Mode = Mode.SEQUENTIAL, ident: str = "") -> Outcome:
        """Deliver a message."""
        message = Message(id=ident or queue.make_id(), text=text, mode=mode)
        return delivery.deliver(self.session, message)

    def note_of(self, ident: str) -> str:
        """What an agent is told of a text that was damaged."""
        return f"`sm queue {self.session.name} --show {ident}`"

    def drain_until_empty(self) -> None:
        """What a monitor does: try again until nothing waits."""

        def empty() -> bool:
            delivery.drain(self.session)
            return delivery.is_at_rest(self.session)

        self._wait(empty, "an empty queue")

    def keys(self, *names: str) -> None:
        """Press keys as a person would."""
        self.tmux.command("send-keys", "-t", self.agent.pane_id, *names)

    def type(self, text: str) -> None:
        """Type as a person would, without Enter."""
        self.tmux.command("send-keys", "-l", "-t", self.agent.pane_id, "--", text)

    def paste(self, text: str) -> None:
        """Paste as a person would, without Enter."""
        self.tmux.command("load-buffer", "-b", "person", "-", stdin=text.encode())
        self.tmux.command("paste-buffer", "-p", "-d", "-b", "person", "-t", self.agent.pane_id)


ACCEPTED = Outcome(Status.ACCEPTED)
NOTE = re.compile(r"(?:^|context: )\[sm\] The text of message (\w+) was damaged", re.MULTILINE)
"""What an agent is told, in what a hook adds, of a text that did not arrive whole."""


def until(path: Path) -> str:
    """A command that ends once there is such a file; not one process after another until then."""
    there = "iter(lambda: os.path.exists(sys.argv[1]), True)"
    return f"python3 -c 'import os, sys, time; [time.sleep(.02) for _ in {there}]' '{path}'"
