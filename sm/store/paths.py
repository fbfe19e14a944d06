"""Where every file is. The names directly under the root are those of the protocol."""

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
"""A name that may be a part of a path, a branch or a tmux session."""


def check_name(name: str, what: str) -> str:
    """Return `name`, if it is safe as a part of a file name.

    Raises:
        UsageError: it is not safe.

    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{what} '{name}' cannot be a file name: use letters, digits, '.', '_', '-' "
            "(64 at most, the first no dot or dash)"
        )
    return name


def name_session(project: str, issue: int) -> str:
    """Return the name of an issue's tmux session, without the '.' and ':' that tmux interprets."""
    return f"dev-{project.replace('.', '_')}-{issue}"


class Kind(StrEnum):
    """What kind of thing a name in the private directory is."""

    FILE = "file"
    DIRECTORY = "directory"
    FIFO = "FIFO"


def find_journal(path: Path) -> tuple[Path, str] | None:
    """Return the journal that has the events of `path`, and the session ('' for none).

    None for a file outside of a private directory.
    """
    for place in path.parents:
        if place.parent.name == f"sm-{os.geteuid()}":
            name = path.relative_to(place).parts[0] if place.name == "sessions" else ""
            return place.parent / "journal.jsonl", name
    return None


class Root(Struct, frozen=True):
    """The state root: the protocol's files, and one private directory with everything else."""

    path: Path

    @property
    def private(self) -> Path:
        """The directory that only this user may enter."""
        return self.path / f"sm-{os.geteuid()}"

    @property
    def journal(self) -> Path:
        """All events, one JSON line each."""
        return self.private / "journal.jsonl"

    @property
    def health(self) -> Path:
        """How each rotation of a context ended, one JSON line each."""
        return self.private / "health.jsonl"

    def phase(self, project: str, issue: int) -> Path:
        """The phase file, which the agent writes."""
        return self.path / f"dev-session-{project}-{issue}.phase"

    def ci_result(self, project: str, issue: int) -> Path:
        """The last output of CI, as the agent got it."""
        return self.path / f"ci-result-{project}-{issue}.txt"

    def transcript(self, project: str, issue: int) -> Path:
        """The terminal log, which tmux writes."""
        return self.path / f"dev-{project}-{issue}.log"

    def renotify(self, project: str, issue: int) -> Path:
        """Touched by the last reminder of an escalation."""
        return self.path / f"dev-renotify-{project}-{issue}"

    def idle_marker(self, session: str) -> Path:
        """Written by the agent's Stop hook when a turn is over."""
        return self.path / f"claude-idle-{session}.ts"

    @property
    def projects(self) -> Path:
        """One directory for each project."""
        return self.private / "projects"

    @property
    def probe(self) -> Path:
        """The folder in which `sm doctor` tries an agent CLI."""
        return self.private / "probe"

    @property
    def logs(self) -> Path:
        """The terminal logs of ended sessions."""
        return self.private / "logs"

    @property
    def sessions(self) -> Path:
        """One directory for each session."""
        return self.private / "sessions"

    def session(self, name: str) -> SessionDir:
        """Return the directory of session `name`."""
        return SessionDir(self.sessions / name)

    @property
    def new_lock(self) -> Path:
        """Held while a new session gets its name."""
        return self.private / "new.lock"

    def project(self, project: str) -> ProjectDir:
        """Return the directory of `project`."""
        return ProjectDir(self.projects / project)


class ProjectDir(Struct, frozen=True):
    """The files of a project as a whole."""

    path: Path

    @property
    def ci(self) -> Path:
        """Checkouts in which the embedded forge runs CI, one for each commit, removed later."""
        return self.path / "ci"

    @property
    def poll_lock(self) -> Path:
        """Held for one tick of dev-poll."""
        return self.path / "poll.lock"

    @property
    def snapshot(self) -> Path:
        """The last look at the forge."""
        return self.path / "forge.json"

    @property
    def due(self) -> Path:
        """When the forge is to be looked at again: seconds since the epoch."""
        return self.path / "due"

    @property
    def turn(self) -> Path:
        """Made by the monitor that has the forge looked at, and removed afterwards."""
        return self.path / "turn"

    @property
    def doubts(self) -> Path:
        """Issues that wait for a person to vouch for their texts."""
        return self.path / "doubts.json"

    @property
    def snapshot_lock(self) -> Path:
        """Held by the process that looks at the forge."""
        return self.path / "forge.lock"

    @property
    def forge_written(self) -> Path:
        """Gets a new time with each write to a forge elsewhere."""
        return self.path / "written"

    @property
    def repository(self) -> Path:
        """The id of the repository on a forge elsewhere, and its present name."""
        return self.path / "repository.json"

    @property
    def webhooks(self) -> Path:
        """Which webhooks of the forge have arrived."""
        return self.path / "webhooks.json"

    @property
    def rules(self) -> Path:
        """What a forge elsewhere asks for before a merge into a branch."""
        return self.path / "rules.json"

    @property
    def ci_logs(self) -> Path:
        """The logs of failed jobs on a forge elsewhere, a file a commit; the last ones are kept."""
        return self.path / "ci-logs"

    @property
    def quota(self) -> Path:
        """The requests to a forge elsewhere, by hour and purpose, and what is left."""
        return self.path / "quota.json"

    @property
    def quota_lock(self) -> Path:
        """Held while a request is entered there."""
        return self.path / "quota.lock"


class SessionDir(Struct, frozen=True):
    """One small file for each fact about a session; see docs/STATE.md."""

    path: Path

    @property
    def identity(self) -> Path:
        """Who the session is; it never changes."""
        return self.path / "identity.json"

    @property
    def agent(self) -> Path:
        """The process of the last launched agent."""
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
        """The id of the first prompt, and the prompt hook's answer that brings it, if it can."""
        return self.path / "opening"

    @property
    def plan(self) -> Path:
        """Intent: the steps under way, written before the first one."""
        return self.path / "plan.json"

    @property
    def receipts(self) -> Path:
        """One line for every finished step."""
        return self.path / "receipts.jsonl"

    @property
    def issue(self) -> Path:
        """The issue's title and text as the agent knows them."""
        return self.path / "issue.json"

    @property
    def edited(self) -> Path:
        """Title and text after an edit that the agent is still to be told of."""
        return self.path / "issue-edited.json"

    @property
    def reviews(self) -> Path:
        """The reviews that the agent was told of, as it knows them."""
        return self.path / "reviews.json"

    @property
    def review_edited(self) -> Path:
        """A review after an edit that the agent is still to be told of."""
        return self.path / "review-edited.json"

    @property
    def replies(self) -> Path:
        """Answers of people that wait for the agent, one file each."""
        return self.path / "replies"

    @property
    def asks(self) -> Path:
        """What the agent asks of the forge, and the answers, one file each."""
        return self.path / "asks"

    @property
    def problem(self) -> Path:
        """Why the step under way is not possible yet."""
        return self.path / "problem"

    @property
    def next(self) -> Path:
        """When the next pass is due at the latest: seconds since the epoch, a whole number."""
        return self.path / "next"

    @property
    def watch(self) -> Path:
        """Paths whose change wakes the monitor, one on each line."""
        return self.path / "watch"

    @property
    def shared(self) -> Path:
        """The project's directory, and the file that changes with its forge: one on each line."""
        return self.path / "shared"

    @property
    def seen(self) -> Path:
        """Its mtime is the moment up to which the last pass has seen changes."""
        return self.path / "seen"

    @property
    def phase_seen(self) -> Path:
        """Its mtime is the phase file's mtime when sm last read it."""
        return self.path / "phase.seen"

    @property
    def wake(self) -> Path:
        """FIFO: a byte written here wakes the monitor at once."""
        return self.path / "wake"

    @property
    def lock(self) -> Path:
        """Held by the process that makes a pass over the session."""
        return self.path / "lock"

    @property
    def monitor_lock(self) -> Path:
        """Held by the monitor as long as it lives."""
        return self.path / "monitor.lock"

    @property
    def monitor_log(self) -> Path:
        """The output of the monitor and its reactors."""
        return self.path / "monitor.log"

    @property
    def settings(self) -> Path:
        """The settings that the agent CLI gets: the hooks and the status line."""
        return self.path / "settings.json"

    @property
    def system_prompt(self) -> Path:
        """The phase protocol, which is added to the agent's system prompt."""
        return self.path / "system-prompt.md"

    @property
    def state(self) -> Path:
        """One line `STATE SINCE CONTEXT PROMPT`, written by the hooks; `-` if unknown."""
        return self.path / "state"

    @property
    def shown(self) -> Path:
        """One line `STATE SINCE SHOWN AT`: what the screen has shown after `state` was written."""
        return self.path / "shown"

    @property
    def screen(self) -> Path:
        """The path of the terminal log, while the terminal decides: its change wakes."""
        return self.path / "screen"

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
        """The process number of the agent CLI, if the agent is a wrapper around it."""
        return self.path / "client"

    @property
    def stop_payload(self) -> Path:
        """The payload of the last Stop: the agent's last words, its background tasks."""
        return self.path / "stop"

    @property
    def dialog(self) -> Path:
        """The payload of the hook that reported the last dialog: the tool and its input."""
        return self.path / "dialog"

    @property
    def failure(self) -> Path:
        """The payload of the last StopFailure: its error and its message."""
        return self.path / "failure"

    @property
    def usage(self) -> Path:
        """One line: time, context, percentage, window; percentage and reset of each limit."""
        return self.path / "usage"

    @property
    def queue(self) -> Path:
        """Maildir of messages for the agent: `tmp`, `new`, `cur`, `done`."""
        return self.path / "queue"

    @property
    def delivery_lock(self) -> Path:
        """Held by the process that hands anything to the agent."""
        return self.path / "delivery.lock"

    @property
    def expect(self) -> Path:
        """The prompt that the prompt hook waits for, and its answer: three lines."""
        return self.path / "expect"

    @property
    def offered(self) -> Path:
        """Lines `NAME CONTEXT PROMPT`: messages that a hook handed out, still without proof."""
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
        """The message whose turn was interrupted, until it is clear whether it came back."""
        return self.path / "interrupted.json"

    @property
    def recalled(self) -> Path:
        """When a hook last told the agent its handoff document again, after a compaction."""
        return self.path / "recalled"

    @property
    def compacting(self) -> Path:
        """When a compaction began, seconds since 1970; empty if none is under way."""
        return self.path / "compacting"

    @property
    def blocks(self) -> Path:
        """How many turns in a row the Stop hook has continued with messages."""
        return self.path / "blocks"

    @property
    def hold(self) -> Path:
        """There during a rotation: only the messages that it names go through."""
        return self.path / "hold"

    @property
    def handoff(self) -> Path:
        """The last `sm handoff` of the agent, until sm takes it up."""
        return self.path / "handoff.json"

    @property
    def rotation(self) -> Path:
        """Intent: the rotation under way."""
        return self.path / "rotation.json"

    @property
    def last_handoff(self) -> Path:
        """The path of the document with which the current context began."""
        return self.path / "last-handoff"

    @property
    def document(self) -> Path:
        """A copy of that document, made before the old context was cleared."""
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
        """A person's settings for the context of this session alone."""
        return self.path / "context-settings.json"

    @property
    def transcript(self) -> Path:
        """The terminal log of a session without an issue, written by tmux."""
        return self.path / "transcript.log"

    @property
    def typed(self) -> Path:
        """The last typed message, and its line."""
        return self.path / "typed.json"

    @property
    def notify(self) -> Path:
        """A file `notify/{id}` for each message whose sender wants to hear of the turn's end."""
        return self.path / "notify"

    @property
    def events_before(self) -> Path:
        """The lines of `events` before it was begun anew."""
        return self.path / "events.1"

    @property
    def told(self) -> Path:
        """The last compaction that the parent was told of: its time as in `events`."""
        return self.path / "told"

    @property
    def over(self) -> Path:
        """How a session without an issue has ended; its monitor has nothing more to do."""
        return self.path / "over"


Layout = dict[str, Kind]
"""What the names in a folder stand for."""

PRIVATE: Layout = {
    **dict.fromkeys(("journal.jsonl", "journal.jsonl.1", "health.jsonl"), Kind.FILE),
    **dict.fromkeys(("health.jsonl.1", "crash.log", "new.lock"), Kind.FILE),
    **dict.fromkeys(("sessions", "projects", "probe", "logs"), Kind.DIRECTORY),
}
QUEUE: Layout = {
    **dict.fromkeys(("tmp", "new", "cur", "done", "damaged"), Kind.DIRECTORY),
    "lock": Kind.FILE,
}


@cache
def layout(of: type[SessionDir | ProjectDir]) -> Layout:
    """Return what the directory of a session or a project holds: files, and a few others."""
    here = of(Path())
    files = [getattr(here, name).name for name, it in vars(of).items() if isinstance(it, property)]
    folders = ("accepted", "asks", "ci", "ci-logs", "notify", "queue", "replies")
    others = dict.fromkeys(folders, Kind.DIRECTORY) | {"wake": Kind.FIFO}
    return {name: others.get(name, Kind.FILE) for name in files}
