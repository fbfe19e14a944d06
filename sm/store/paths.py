"""Paths of all files. The names directly under the root are those of the protocol."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from functools import cache
from pathlib import Path

from msgspec import Struct

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, name_part, read_part

DEFAULT_ROOT = Path("/tmp")  # noqa: S108 - the protocol's well-known place; every open is guarded

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
"""A name that may be a part of a path, a branch or a tmux session."""


def check_name(name: str, what: str) -> str:
    """Return `name`, if it is safe as a part of a file name.

    Raises:
        UsageError: it is not safe.

    """
    if not NAME.fullmatch(name):
        from sm.base.redact import hide_address  # which costs what no other command needs

        shown = hide_address(name)
        raise UsageError(
            f"{what} '{shown}' cannot be a file name: use letters, digits, '.', '_', '-' "
            "(64 at most, the first no dot or dash)"
        )
    return name


OF_ISSUES = "dev-"
"""Beginning of the names of sessions that work on an issue, and of no other names."""


def name_session(project: str, issue: IssueId) -> str:
    """Return the name of an issue's tmux session, without the '.' and ':' that tmux interprets."""
    return f"{prefix_sessions(project)}{name_part(issue)}"


def prefix_sessions(project: str) -> str:
    """Return the beginning of the names of a project's sessions; the issue's part follows it."""
    return f"{OF_ISSUES}{project.replace('.', '_')}-"


def find_issue_id(project: str, session: str) -> IssueId:
    """Return the id of the issue whose session in the project has that name; 0 for none."""
    head = prefix_sessions(project)
    return read_part(session.removeprefix(head)) or 0 if session.startswith(head) else 0


class EntryKind(StrEnum):
    """Kind of a thing in the private directory."""

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
        """File of the ends of all rotations of a context, one JSON line each."""
        return self.private / "health.jsonl"

    def phase(self, project: str, issue: IssueId) -> Path:
        """The phase file, which the agent writes."""
        return self.path / f"dev-session-{project}-{name_part(issue)}.phase"

    def ci_result(self, project: str, issue: IssueId) -> Path:
        """The last output of CI, as the agent got it."""
        return self.path / f"ci-result-{project}-{name_part(issue)}.txt"

    def terminal_log(self, project: str, issue: IssueId) -> Path:
        """The terminal log, which tmux writes."""
        return self.path / f"dev-{project}-{name_part(issue)}.log"

    def renotify(self, project: str, issue: IssueId) -> Path:
        """Touched by the last reminder of an escalation."""
        return self.path / f"dev-renotify-{project}-{name_part(issue)}"

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
    def false_starts(self) -> Path:
        """A file for each session whose agent has ended as it started."""
        return self.private / "false-starts"

    @property
    def account_faults(self) -> Path:
        """A file for each account of an agent CLI that has a fault: a lost login, a limit."""
        return self.private / "account-faults"

    @property
    def account_faults_lock(self) -> Path:
        """Held while one of them is changed."""
        return self.private / "account-faults.lock"

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

    @property
    def plugins(self) -> Path:
        """One directory for each plugin that keeps something."""
        return self.private / "plugins"

    @property
    def wishes(self) -> Path:
        """A FIFO for each process that hears wishes for a newer look at the forge."""
        return self.private / "wishes"

    @property
    def bells(self) -> Path:
        """A FIFO for each `dev-poll --loop` that can be woken, by its number."""
        return self.private / "bells"

    @property
    def passes(self) -> Path:
        """FIFO: a line for each pass that a monitor asks the server of passes for."""
        return self.private / "passes"

    @property
    def passes_made(self) -> Path:
        """File that counts the passes that the server of passes has made, with their time."""
        return self.private / "passes.json"

    @property
    def passes_lock(self) -> Path:
        """Held by the server of passes as long as it takes requests."""
        return self.private / "passes.lock"

    def project(self, project: str) -> ProjectDir:
        """Return the directory of `project`."""
        return ProjectDir(self.projects / project)


class Folder(Struct, frozen=True):
    """A folder of state, with an `Entry` for each file in it."""

    path: Path


class StateEntry:
    """A name in a folder of state: `directory.plan` is its path."""

    def __init__(self, name: str, kind: EntryKind = EntryKind.FILE) -> None:
        """Keep the name, and what kind of thing it stands for."""
        self.name, self.kind = name, kind

    def __get__(self, folder: Folder, _: type[Folder]) -> Path:
        """Return the path in `folder`."""
        return folder.path / self.name


class ProjectDir(Folder, frozen=True):
    """The files of a project as a whole."""

    ci = StateEntry("ci", EntryKind.DIRECTORY)
    """Checkouts in which the embedded forge runs CI, one for each commit, removed later."""
    poll_lock = StateEntry("poll.lock")
    """Held for one tick of dev-poll."""
    polled = StateEntry("polled")
    """The last completed tick: when, how long it took, and what went wrong."""
    poll_missed = StateEntry("poll.missed")
    """The session that tells people that no tick comes; removed by the next one."""
    snapshot = StateEntry("forge.json")
    """The last look at the forge."""
    brought = StateEntry("forge-brought.json")
    """The part of another installation's look that concerns our sessions."""
    look_wanted = StateEntry("look-wanted")
    """Gets a new time when a node wishes for a newer look."""
    due = StateEntry("due")
    """Time at which the forge has to be looked at again: seconds since the epoch."""
    turn = StateEntry("turn")
    """Made by the monitor that has the forge looked at, and removed afterwards."""
    slots = StateEntry("slots", EntryKind.DIRECTORY)
    """A file for each session whose agent is at work, as `max_sessions` counts them."""
    slot_line = StateEntry("slot-line", EntryKind.DIRECTORY)
    """A file for each session that has work and waits for a slot; its time is since when."""
    slots_lock = StateEntry("slots.lock")
    """Held while a slot is taken or freed."""
    slot_freed = StateEntry("slot-freed")
    """Gets a new time when a slot is freed for which no session waits."""
    placements = StateEntry("placements", EntryKind.DIRECTORY)
    """A file for each issue that is worked on elsewhere: where, and by which claim."""
    kept_messages_lock = StateEntry("kept-messages.lock")
    """Held while messages for sessions elsewhere are handed on."""
    lost_messages = StateEntry("lost-messages.json")
    """The last messages for sessions elsewhere that came to nothing."""
    unconfirmed_replies = StateEntry("unconfirmed-replies", EntryKind.DIRECTORY)
    """The last reply to each session elsewhere, until its node says that it has it."""
    awaited_turns = StateEntry("awaited-turns", EntryKind.DIRECTORY)
    """Sessions here that wait for the end of a turn elsewhere, a file each."""
    placed_seen = StateEntry("placed-seen.json")
    """The last look at the sessions elsewhere."""
    doubts = StateEntry("doubts.json")
    """Issues that wait for a person to vouch for their texts."""
    snapshot_lock = StateEntry("forge.lock")
    """Held by the process that looks at the forge."""
    verdicts_lock = StateEntry("verdicts.lock")
    """Held while a person's verdict on a pull request is given."""
    forge_written = StateEntry("written")
    """Gets a new time with each write to a forge elsewhere."""
    webhooks = StateEntry("webhooks.json")
    """Webhooks of the forge that have arrived."""
    shortage = StateEntry("shortage.json")
    """Resources that the machine lacks for anything new, and since when."""
    shortage_told = StateEntry("shortage.told")
    """The session that tells people of it."""


class SessionDir(Folder, frozen=True):
    """One small file for each fact about a session; see docs/STATE.md."""

    identity = StateEntry("identity.json")
    """The session's identity; only its name and its parent change."""
    agent = StateEntry("agent.json")
    """The process of the last launched agent."""
    launch_env = StateEntry("launch.env")
    """The agent's environment, NUL-separated."""
    launch_argv = StateEntry("launch.argv")
    """The agent's command, NUL-separated."""
    sandbox = StateEntry("sandbox")
    """The name of the sandbox in which something was started last."""
    agent_pid = StateEntry("agent.pid")
    """`PID STARTTICKS` of the agent, written by its launcher."""
    launch_error = StateEntry("launch.error")
    """Reason why the launcher could not become the agent."""
    prompt = StateEntry("prompt.md")
    """The first prompt of the agent."""
    opening = StateEntry("opening")
    """The id of the first prompt, and the prompt hook's answer that brings it, if it can."""
    wip = StateEntry("wip.json")
    """The last push of work in progress by a session that was placed here."""
    plan = StateEntry("plan.json")
    """Intent: the steps under way, written before the first one."""
    receipts = StateEntry("receipts.jsonl")
    """One line for every finished step."""
    issue = StateEntry("issue.json")
    """The issue's title and text as the agent knows them."""
    edited = StateEntry("issue-edited.json")
    """Title and text after an edit that the agent is still to be told of."""
    reviews = StateEntry("reviews.json")
    """The reviews that the agent was told of, as it knows them."""
    review_edited = StateEntry("review-edited.json")
    """A review after an edit that the agent is still to be told of."""
    pull_comments = StateEntry("pull-comments.json")
    """Comments of trusted people on the pull request, which the agent is told of."""
    replies = StateEntry("replies", EntryKind.DIRECTORY)
    """Answers of people that wait for the agent, one file each."""
    asks = StateEntry("asks", EntryKind.DIRECTORY)
    """Requests of the agent to the forge, and the answers, one file each."""
    problem = StateEntry("problem")
    """Reason why the step under way is not possible yet."""
    next = StateEntry("next")
    """Latest time of the next pass: seconds since the epoch, a whole number."""
    watch = StateEntry("watch")
    """Paths whose change wakes the monitor, one on each line."""
    shared = StateEntry("shared")
    """The project's directory, and the file that changes with its forge: one on each line."""
    seen = StateEntry("seen")
    """File whose mtime is the moment up to which the last pass has seen changes."""
    phase_seen = StateEntry("phase.seen")
    """File whose mtime is that of the phase file when sm last read it."""
    wake = StateEntry("wake", EntryKind.FIFO)
    """FIFO: a byte written here wakes the monitor at once."""
    pass_answer = StateEntry("pass.answer", EntryKind.FIFO)
    """FIFO: the server of passes tells the monitor what became of a pass."""
    pass_caller = StateEntry("pass.caller", EntryKind.FIFO)
    """FIFO: the monitor gives a pass its own environment; a token in it is on no disk."""
    lock = StateEntry("lock")
    """Held by the process that makes a pass over the session."""
    monitor_lock = StateEntry("monitor.lock")
    """Held by the monitor as long as it lives."""
    monitor_pid = StateEntry("monitor.pid")
    """The process number of the monitor: by it a hook sees that it was killed."""
    monitor_asked = StateEntry("monitor.asked")
    """Time at which a hook last had the monitor started again, in seconds since the epoch."""
    monitor_env = StateEntry("monitor.env")
    """Environment for a monitor that a hook starts, without any secret."""
    monitor_stands_in = StateEntry("monitor.stands-in")
    """Mark of a monitor that was started by a hook, and lacks secrets that others have."""
    monitor_log = StateEntry("monitor.log")
    """The output of the monitor and its reactors."""
    settings = StateEntry("settings.json")
    """The settings that the agent CLI gets: the hooks and the status line."""
    system_prompt = StateEntry("system-prompt.md")
    """The phase protocol, which is added to the agent's system prompt."""
    state = StateEntry("state")
    """One line `STATE SINCE CONTEXT PROMPT`, written by the hooks; `-` if unknown."""
    shown = StateEntry("shown")
    """One line `STATE SINCE SHOWN AT`: what the screen has shown after `state` was written."""
    screen = StateEntry("screen")
    """The path of the terminal log, while the terminal decides: its change wakes."""
    looked = StateEntry("looked")
    """The last look at the terminal for what is unknown there, and what was told of it."""
    events = StateEntry("events")
    """A line `TIME EVENT CONTEXT DETAIL` for each hook call; its mtime is the sign of life."""
    context = StateEntry("context")
    """The payload of the last SessionStart: the agent's own session id, its transcript."""
    client = StateEntry("client")
    """The process number of the agent CLI, if the agent is a wrapper around it."""
    stop_payload = StateEntry("stop")
    """The payload of the last Stop: the agent's last words, its background tasks."""
    dialog = StateEntry("dialog")
    """The payload of the hook that reported the last dialog: the tool and its input."""
    failure = StateEntry("failure")
    """The payload of the last StopFailure: its error and its message."""
    usage = StateEntry("usage")
    """One line: time, context, percentage, window; percentage and reset of each limit."""
    queue = StateEntry("queue", EntryKind.DIRECTORY)
    """Maildir of messages for the agent: `tmp`, `new`, `cur`, `done`."""
    quoted = StateEntry("quoted", EntryKind.DIRECTORY)
    """Quoted words of others, a file for each message or task that quotes them."""
    delivery_lock = StateEntry("delivery.lock")
    """Held by the process that hands anything to the agent."""
    expect = StateEntry("expect")
    """The prompt that the prompt hook waits for, and its answer: three lines."""
    offered = StateEntry("offered")
    """Lines `NAME CONTEXT PROMPT`: messages that a hook handed out, still without proof."""
    accepted = StateEntry("accepted", EntryKind.DIRECTORY)
    """An empty file for each message that the agent provably has."""
    steer = StateEntry("steer")
    """File that is not empty while the queue may hold messages for the running turn."""
    interrupted = StateEntry("interrupted.json")
    """The message whose turn was interrupted, until it is clear whether it came back."""
    recalled = StateEntry("recalled")
    """Time at which a hook last told the agent its handoff document again, after a compaction."""
    compacting = StateEntry("compacting")
    """Start of the compaction under way, seconds since 1970; empty if there is none."""
    summed_up = StateEntry("summed_up")
    """Tokens that the last reading before the last compaction counted; `-`: not known."""
    blocks = StateEntry("blocks")
    """Number of turns in a row that the Stop hook has continued with messages."""
    hold = StateEntry("hold")
    """Mark of a rotation, during which only the messages that it names go through."""
    handoff = StateEntry("handoff.json")
    """The last `sm handoff` of the agent, until sm takes it up."""
    rotation = StateEntry("rotation.json")
    """Intent: the rotation under way."""
    last_handoff = StateEntry("last-handoff")
    """The path of the document with which the current context began."""
    document = StateEntry("handoff.md")
    """A copy of that document, made before the old context was cleared."""
    next_document = StateEntry("handoff-next.md")
    """The copy of the document that the next context is to begin with."""
    threshold = StateEntry("threshold")
    """One number: at this percentage of its context something is to be done."""
    context_flags = StateEntry("context-flags.json")
    """Thresholds that the agent was told of in its present context."""
    withheld = StateEntry("withheld.json")
    """Actions due for the agent's context that wait for a person at its terminal."""
    context_settings = StateEntry("context-settings.json")
    """A person's settings for the context of this session alone."""
    terminal_log = StateEntry("transcript.log")
    """The terminal log of a session without an issue, written by tmux."""
    typed = StateEntry("typed.json")
    """The last typed message, and its line."""
    notify = StateEntry("notify", EntryKind.DIRECTORY)
    """A file `notify/{id}` for each message whose sender wants to hear of the turn's end."""
    events_before = StateEntry("events.1")
    """Lines of `events` from before it was begun again."""
    told = StateEntry("told")
    """The last compaction that the parent was told of: its time as in `events`."""
    setup_log = StateEntry("setup.log")
    """Output of the worktree's setup command, its end where there was too much."""
    setup_process = StateEntry("setup.process")
    """Process of the setup command, while it runs."""
    setup_failed = StateEntry("setup-failed")
    """Number of failures of the setup command in a row, and time and reason of the last."""
    held_back = StateEntry("held-back")
    """Work that was to begin by itself while the session rested: a line of JSON each."""
    being_taken = StateEntry("held-back.taken")
    """Contents of `held-back`, while messages are made of them."""
    paused = StateEntry("paused")
    """Mark of a paused session: since when, and whether its turn was stopped for that."""
    braked = StateEntry("braked")
    """Mark of a session that may spend nothing: since when, and which messages still pass."""
    resumed = StateEntry("resumed")
    """End of the last pause, seconds since 1970."""
    over = StateEntry("over")
    """End of a session without an issue, and how it came; its monitor has nothing more to do."""


Layout = dict[str, EntryKind]
"""Kinds of the entries in a folder, by name."""

PRIVATE: Layout = {
    **dict.fromkeys(("journal.jsonl", "journal.jsonl.1", "health.jsonl"), EntryKind.FILE),
    **dict.fromkeys(("health.jsonl.1", "crash.log", "new.lock", "passes.lock"), EntryKind.FILE),
    **dict.fromkeys(("passes.json", "account-faults.lock"), EntryKind.FILE),
    "passes": EntryKind.FIFO,
    **dict.fromkeys(("sessions", "projects", "plugins", "probe", "logs"), EntryKind.DIRECTORY),
    **dict.fromkeys(("wishes", "bells", "false-starts", "account-faults"), EntryKind.DIRECTORY),
}
QUEUE: Layout = {
    **dict.fromkeys(("tmp", "new", "cur", "done", "damaged"), EntryKind.DIRECTORY),
    "lock": EntryKind.FILE,
}


@cache
def layout(of: type[Folder]) -> Layout:
    """Return what the directory of a session or a project holds."""
    return {entry.name: entry.kind for entry in vars(of).values() if isinstance(entry, StateEntry)}
