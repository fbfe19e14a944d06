"""Where every file lives. The names directly under the root are the protocol's own."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct

from sm.errors import UsageError

DEFAULT_ROOT = Path("/tmp")  # noqa: S108 - the protocol's well-known place; every open is guarded

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
"""What may become part of a path, a branch or a tmux name."""


def check_name(name: str, what: str) -> str:
    """`name`, if it is safe as part of a file name.

    Raises:
        UsageError: it is not.

    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{what} '{name}' cannot be a file name: use letters, digits, '.', '_', '-' "
            "(64 at most, the first no dot or dash)"
        )
    return name


def session_name(project: str, issue: int) -> str:
    """The tmux session of an issue; tmux gives '.' and ':' a meaning of their own."""
    return f"dev-{project.replace('.', '_')}-{issue}"


class Kind(StrEnum):
    """What a name in the private directory stands for."""

    FILE = "file"
    DIRECTORY = "directory"
    FIFO = "FIFO"


def journal_of(path: Path) -> tuple[Path, str] | None:
    """Where the story of `path` is told, and of which session, '' for none.

    None for a file that is not in a private directory.
    """
    for place in path.parents:
        if place.parent.name == f"sm-{os.geteuid()}":
            name = path.relative_to(place).parts[0] if place.name == "sessions" else ""
            return place.parent / "journal.jsonl", name
    return None


class Root(Struct, frozen=True):
    """The state root: the protocol's files in it, everything else in one private directory."""

    path: Path

    @property
    def private(self) -> Path:
        """The directory that only this user may enter."""
        return self.path / f"sm-{os.geteuid()}"

    @property
    def journal(self) -> Path:
        """Every event, one JSON line each."""
        return self.private / "journal.jsonl"

    @property
    def health(self) -> Path:
        """What became of each rotation of a context, one JSON line each."""
        return self.private / "health.jsonl"

    def phase(self, project: str, issue: int) -> Path:
        """The sentinel file, written by the agent."""
        return self.path / f"dev-session-{project}-{issue}.phase"

    def ci_result(self, project: str, issue: int) -> Path:
        """The last CI output, as it was injected."""
        return self.path / f"ci-result-{project}-{issue}.txt"

    def transcript(self, project: str, issue: int) -> Path:
        """What the agent's terminal showed, written by tmux."""
        return self.path / f"dev-{project}-{issue}.log"

    def renotify(self, project: str, issue: int) -> Path:
        """Touched when the last reminder of an escalation went out."""
        return self.path / f"dev-renotify-{project}-{issue}"

    def idle_marker(self, session: str) -> Path:
        """Written by the agent's Stop hook: it has finished a response."""
        return self.path / f"claude-idle-{session}.ts"

    @property
    def projects(self) -> Path:
        """One directory a project."""
        return self.private / "projects"

    @property
    def probe(self) -> Path:
        """Where an agent CLI runs that is only tried out."""
        return self.private / "probe"

    @property
    def sessions(self) -> Path:
        """One directory a session."""
        return self.private / "sessions"

    def session(self, name: str) -> SessionDir:
        """The directory of session `name`."""
        return SessionDir(self.sessions / name)

    @property
    def new_lock(self) -> Path:
        """Held while a name is given to a new session."""
        return self.private / "new.lock"

    def project(self, project: str) -> ProjectDir:
        """The directory of `project`."""
        return ProjectDir(self.projects / project)


class ProjectDir(Struct, frozen=True):
    """What is kept for a project as a whole."""

    path: Path

    @property
    def ci(self) -> Path:
        """Checkouts in which the embedded forge runs CI, one a commit, gone afterwards."""
        return self.path / "ci"

    @property
    def poll_lock(self) -> Path:
        """Held for one tick of dev-poll."""
        return self.path / "poll.lock"

    @property
    def snapshot(self) -> Path:
        """The last observation of the forge."""
        return self.path / "forge.json"

    @property
    def due(self) -> Path:
        """When the forge is to be observed again: seconds since the epoch."""
        return self.path / "due"

    @property
    def turn(self) -> Path:
        """Created by the monitor that has the forge observed, removed when that is done."""
        return self.path / "turn"

    @property
    def snapshot_lock(self) -> Path:
        """Held by whoever observes the forge."""
        return self.path / "forge.lock"


class SessionDir(Struct, frozen=True):
    """One small file for each fact about a session; see docs/STATE.md."""

    path: Path

    @property
    def identity(self) -> Path:
        """Who the session is: never changes."""
        return self.path / "identity.json"

    @property
    def agent(self) -> Path:
        """The agent process last launched."""
        return self.path / "agent.json"

    @property
    def launch_env(self) -> Path:
        """The agent's environment, NUL-separated."""
        return self.path / "launch.env"

    @property
    def launch_argv(self) -> Path:
        """The agent's command, NUL-separated."""
        return self.path / "launch.argv"

    @property
    def agent_pid(self) -> Path:
        """`PID STARTTICKS` of the agent, written by its launcher."""
        return self.path / "agent.pid"

    @property
    def launch_error(self) -> Path:
        """Why the launcher could not become the agent."""
        return self.path / "launch.error"

    @property
    def prompt(self) -> Path:
        """The first prompt of the agent."""
        return self.path / "prompt.md"

    @property
    def opening(self) -> Path:
        """The id of the first prompt, and what the prompt hook answers to bring it: two lines."""
        return self.path / "opening"

    @property
    def plan(self) -> Path:
        """Intent: the steps under way, written before the first of them."""
        return self.path / "plan.json"

    @property
    def receipts(self) -> Path:
        """One line for every step done."""
        return self.path / "receipts.jsonl"

    @property
    def replies(self) -> Path:
        """Answers of people, one file each, waiting to be injected."""
        return self.path / "replies"

    @property
    def problem(self) -> Path:
        """Why the step under way has not been possible so far."""
        return self.path / "problem"

    @property
    def next(self) -> Path:
        """When to react at the latest: seconds since the epoch, a whole number."""
        return self.path / "next"

    @property
    def watch(self) -> Path:
        """Paths whose change wakes the monitor, one a line."""
        return self.path / "watch"

    @property
    def shared(self) -> Path:
        """The project's directory, and the file that changes with its forge: one a line."""
        return self.path / "shared"

    @property
    def seen(self) -> Path:
        """Its mtime is the moment up to which changes have been reacted to."""
        return self.path / "seen"

    @property
    def phase_seen(self) -> Path:
        """Its mtime is that of the phase file when it was last read."""
        return self.path / "phase.seen"

    @property
    def wake(self) -> Path:
        """FIFO: a byte written here wakes the monitor at once."""
        return self.path / "wake"

    @property
    def lock(self) -> Path:
        """Held by whoever reacts for the session."""
        return self.path / "lock"

    @property
    def monitor_lock(self) -> Path:
        """Held by the monitor as long as it lives."""
        return self.path / "monitor.lock"

    @property
    def monitor_log(self) -> Path:
        """What the monitor and its reactors said."""
        return self.path / "monitor.log"

    @property
    def settings(self) -> Path:
        """What the agent CLI is given as its settings: the hooks and the status line."""
        return self.path / "settings.json"

    @property
    def system_prompt(self) -> Path:
        """What is appended to the agent's system prompt: the phase protocol."""
        return self.path / "system-prompt.md"

    @property
    def state(self) -> Path:
        """One line `STATE SINCE CONTEXT PROMPT`, written by the hooks; `-` for what is unknown."""
        return self.path / "state"

    @property
    def events(self) -> Path:
        """A line `TIME EVENT CONTEXT DETAIL` for each hook call; its mtime is the sign of life."""
        return self.path / "events"

    @property
    def context(self) -> Path:
        """The payload of the last SessionStart: the agent's own session id, its transcript."""
        return self.path / "context"

    @property
    def client(self) -> Path:
        """The process number of the agent CLI, where the agent is a wrapper around it."""
        return self.path / "client"

    @property
    def stop_payload(self) -> Path:
        """The payload of the last Stop: the agent's last words, its background tasks."""
        return self.path / "stop"

    @property
    def dialog(self) -> Path:
        """The payload of the hook that told of the last dialog: tool and its input."""
        return self.path / "dialog"

    @property
    def failure(self) -> Path:
        """The payload of the last StopFailure: its error, the message shown."""
        return self.path / "failure"

    @property
    def usage(self) -> Path:
        """One line: time, context, percentage, window, then per limit its percentage and reset."""
        return self.path / "usage"

    @property
    def queue(self) -> Path:
        """Maildir of messages for the agent: `tmp`, `new`, `cur`, `done`."""
        return self.path / "queue"

    @property
    def delivery_lock(self) -> Path:
        """Held by whoever hands anything to the agent."""
        return self.path / "delivery.lock"

    @property
    def expect(self) -> Path:
        """What the prompt hook is to recognise, and what it then answers: three lines."""
        return self.path / "expect"

    @property
    def offered(self) -> Path:
        """Lines `NAME CONTEXT PROMPT`: messages that a hook handed out, not yet proven."""
        return self.path / "offered"

    @property
    def accepted(self) -> Path:
        """An empty file for each message that the agent provably has."""
        return self.path / "accepted"

    @property
    def steer(self) -> Path:
        """Not empty while the queue may hold messages for the running turn."""
        return self.path / "steer"

    @property
    def interrupted(self) -> Path:
        """The message whose turn was interrupted, until it is known whether it was taken back."""
        return self.path / "interrupted.json"

    @property
    def compacting(self) -> Path:
        """Since when the context is being summed up, seconds since 1970; empty: it is not."""
        return self.path / "compacting"

    @property
    def blocks(self) -> Path:
        """How many turns in a row the Stop hook has carried on with messages."""
        return self.path / "blocks"

    @property
    def hold(self) -> Path:
        """While it is there, the context is being replaced: only messages it names go through."""
        return self.path / "hold"

    @property
    def handoff(self) -> Path:
        """The last `sm handoff` of the agent, until it is taken up."""
        return self.path / "handoff.json"

    @property
    def rotation(self) -> Path:
        """Intent: the rotation of the agent's context that is under way."""
        return self.path / "rotation.json"

    @property
    def last_handoff(self) -> Path:
        """The path of the document that the agent's context was last begun with."""
        return self.path / "last-handoff"

    @property
    def document(self) -> Path:
        """A copy of that document, made before the context before it was cleared."""
        return self.path / "handoff.md"

    @property
    def next_document(self) -> Path:
        """The copy of the document that the next context is to begin with."""
        return self.path / "handoff-next.md"

    @property
    def threshold(self) -> Path:
        """One number: at this percentage of its context something is to be done."""
        return self.path / "threshold"

    @property
    def context_flags(self) -> Path:
        """Of which thresholds the agent was told in its present context."""
        return self.path / "context-flags.json"

    @property
    def context_settings(self) -> Path:
        """What a person has set for the context of this session alone."""
        return self.path / "context-settings.json"

    @property
    def transcript(self) -> Path:
        """What the terminal of an ad-hoc session showed, written by tmux."""
        return self.path / "transcript.log"

    @property
    def typed(self) -> Path:
        """The message that was last typed, and its line."""
        return self.path / "typed.json"

    @property
    def notify(self) -> Path:
        """A file for each message whose sender is told when its turn ends: `notify/{id}`."""
        return self.path / "notify"

    @property
    def events_before(self) -> Path:
        """The lines that were in `events` before it was begun anew."""
        return self.path / "events.1"

    @property
    def told(self) -> Path:
        """The moment of the last compaction that the parent was told of, as `events` has it."""
        return self.path / "told"

    @property
    def over(self) -> Path:
        """How an ad-hoc session has ended; its monitor has nothing more to do."""
        return self.path / "over"


Layout = dict[str, Kind]
"""What the names in a folder stand for."""

PRIVATE: Layout = {
    **dict.fromkeys(("journal.jsonl", "journal.jsonl.1", "health.jsonl"), Kind.FILE),
    **dict.fromkeys(("health.jsonl.1", "crash.log", "new.lock"), Kind.FILE),
    **dict.fromkeys(("sessions", "projects", "probe"), Kind.DIRECTORY),
}
QUEUE: Layout = {
    **dict.fromkeys(("tmp", "new", "cur", "done", "damaged"), Kind.DIRECTORY),
    "lock": Kind.FILE,
}


@cache
def layout(of: type[SessionDir | ProjectDir]) -> Layout:
    """What is in the directory of a session or of a project: files, but for a few names."""
    here = of(Path())
    files = [getattr(here, name).name for name, it in vars(of).items() if isinstance(it, property)]
    folders = ("accepted", "ci", "notify", "queue", "replies")
    others = dict.fromkeys(folders, Kind.DIRECTORY) | {"wake": Kind.FIFO}
    return {name: others.get(name, Kind.FILE) for name in files}
