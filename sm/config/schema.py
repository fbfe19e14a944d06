"""Every key of the configuration, with its type, its default and its meaning in one line.

The meaning is the `meta` beside the key. `docs/CONFIG.md` and the comments of `config.example.yaml`
are made from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from sm.base.issue_id import IssueId, name_part
from sm.config.duration import Seconds
from sm.config.forges import AnyForgeSettings, TrackerSettings
from sm.config.section import Count, Percentage, Positive, Section
from sm.store.paths import DEFAULT_ROOT


class Labels(Section, frozen=True):
    """The labels that show the state of an issue."""

    backlog: Annotated[str, Meta(description="work that may be picked up")] = "backlog"
    in_progress: Annotated[str, Meta(description="a session works on it")] = "in-progress"
    blocked: Annotated[
        str, Meta(description="a person has to look at it; sm never picks it up")
    ] = "blocked"


class AgentSettings(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """The coding agent and its terminal."""

    command: Annotated[
        str, Meta(description="command line, to which sm adds the prompt; empty: the profile's own")
    ] = ""
    profile: Annotated[
        str,
        Meta(description="a profile's name (docs/PROFILES.md); empty: by the command's program"),
    ] = ""
    timeout_s: Annotated[
        Seconds, Meta(description="a working agent without a sign of life for so long is restarted")
    ] = Seconds(7200)
    env: Annotated[dict[str, str], Meta(description="variables set for the agent")] = msgspec.field(
        default_factory=dict
    )
    pass_env: Annotated[
        tuple[str, ...],
        Meta(description="variables of your own environment that the agent may see"),
    ] = ()
    withheld_env: Annotated[
        tuple[str, ...],
        Meta(description="those that it is not to have, of which sm init and doctor ask no more"),
    ] = ()


class NewWorktree(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """What a new worktree gets before an agent works in it, beside what git has."""

    copy: Annotated[
        tuple[str, ...],
        Meta(
            description="files of your clone that git ignores, by name or glob, such as `.env` or "
            "`apps/*/.env`"
        ),
    ] = ()
    setup: Annotated[
        str | None,
        Meta(description="a shell runs it in each new worktree, as `npm ci`; empty: nothing"),
    ] = None
    timeout_s: Annotated[Seconds, Meta(description="a setup that takes longer has failed")] = (
        Seconds(600)
    )


INFRASTRUCTURE = (
    "The runner has received a shutdown signal",
    "lost communication with the server",
    "The operation was canceled",
    "Could not resolve host",
    "No space left on device",
    "toomanyrequests",
    "TLS handshake timeout",
    "Cannot connect to the Docker daemon",
)
INFRASTRUCTURE_STEPS = ("clone", "Set up job", "Initialize containers", "Set up runner")


class Ci(Section, frozen=True, rename={"poll_s": "poll", "timeout_s": "timeout"}):
    """What has to pass before a review."""

    command: Annotated[
        str | None,
        Meta(description="local forge: a shell runs it in a clean checkout; empty: no CI"),
    ] = None
    poll_s: Annotated[
        Seconds, Meta(description="how often sm asks the forge, once for all sessions")
    ] = Seconds(30)
    timeout_s: Annotated[
        Seconds,
        Meta(description="without a verdict for so long: a person is asked, a local command ended"),
    ] = Seconds(1800)
    max_fixes: Annotated[
        Count, Meta(description="failures that go to the agent before sm tells a person")
    ] = 3
    log_lines: Annotated[
        Positive, Meta(description="lines of a failing log that the agent gets")
    ] = 200
    infrastructure: Annotated[
        tuple[str, ...],
        Meta(description="words at the end of a log by which CI itself has failed: it runs again"),
    ] = INFRASTRUCTURE
    infrastructure_steps: Annotated[
        tuple[str, ...], Meta(description="steps before the tests; if one fails, so has CI itself")
    ] = INFRASTRUCTURE_STEPS


class ReviewSettings(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """Who reviews the work before sm merges it."""

    required: Annotated[
        bool, Meta(description="false: work is merged as soon as CI has passed")
    ] = True
    timeout_s: Annotated[
        Seconds, Meta(description="after so long without a review sm tells a person")
    ] = Seconds(3 * 3600)
    max_rounds: Annotated[
        Count, Meta(description="rounds of requested changes before sm tells a person")
    ] = 5


class Merge(Section, frozen=True, rename={"remind_s": "remind"}):
    """How approved work gets into the primary branch."""

    by: Annotated[
        Literal["agent", "sm"],
        Meta(description="agent: sm tells it to merge; sm: sm merges exactly the reviewed commit"),
    ] = "agent"
    remind_s: Annotated[
        Seconds,
        Meta(
            description="after so long approved, green and unmerged, sm reminds the agent, then "
            "escalates"
        ),
    ] = Seconds(1800)


class EscalationSettings(
    Section,
    frozen=True,
    rename={"timeout_s": "timeout", "remind_s": "remind", "first_for_s": "first_for"},
):
    """What happens while sm waits for a person's answer."""

    remind_s: Annotated[Seconds, Meta(description="how often sm reminds the person; 0: never")] = (
        Seconds(6 * 3600)
    )
    timeout_s: Annotated[
        Seconds,
        Meta(
            description="after so long without an answer sm labels the issue blocked and ends the "
            "session"
        ),
    ] = Seconds(24 * 3600)
    first: Annotated[
        str,
        Meta(
            description="session of this machine that is asked an agent's question before people "
            "are: a name, an id, PROJECT#ISSUE; empty: none"
        ),
    ] = ""
    first_for_s: Annotated[
        Seconds, Meta(description="so long that session has for its answer; then people are asked")
    ] = Seconds(600)
    mention: Annotated[
        tuple[str, ...],
        Meta(
            description="people whom a question on the forge names with @; empty: those to whom "
            "the issue is assigned, else its author if trusted"
        ),
    ] = ()
    vault: Annotated[
        Path | None,
        Meta(description="folder for questions as Markdown files; a person answers in the file"),
    ] = None


class Recovery(Section, frozen=True, rename={"pause_s": "pause"}):
    """What happens when an agent dies."""

    max: Annotated[Count, Meta(description="restarts before the issue counts as failed")] = 3
    pause_s: Annotated[
        Seconds, Meta(description="wait before the second restart; doubled for each further one")
    ] = Seconds(30)


class ContextMonitor(Section, frozen=True):
    """What sm tells an agent when its context fills up."""

    enabled: Annotated[bool, Meta(description="false: the agent is told nothing")] = True
    warning_percentage: Annotated[
        Percentage,
        Meta(description="from this percentage on sm tells the agent, once, to think of a handoff"),
    ] = 50
    critical_percentage: Annotated[
        Percentage,
        Meta(description="from this percentage on sm tells the agent at once to hand off"),
    ] = 65
    tell: Annotated[
        tuple[Literal["parent", "person"], ...],
        Meta(description="whom else sm tells that a context was summed up"),
    ] = ("parent", "person")


class HandoffCycle(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """What happens when an agent fills its context and does not hand off by itself."""

    enabled: Annotated[
        bool, Meta(description="false: only `sm cycle` or the agent itself starts a rotation")
    ] = True
    percentage: Annotated[
        Percentage,
        Meta(description="from this percentage on sm asks for a handoff and replaces the context"),
    ] = 85
    folder: Annotated[
        str, Meta(description="folder of the documents in the agent's working directory")
    ] = ".sm/handoffs"
    sections: Annotated[
        tuple[str, ...],
        Meta(description="headings that a document needs; sm asks once for a missing one"),
    ] = (
        *("Current Work", "Completed Since Last Handoff", "Next Steps"),
        *("Critical State", "Blockers / Issues", "Notes"),
    )
    header: Annotated[
        tuple[str, ...],
        Meta(description="lines such as '**Created**: today' that sm asks a document to have"),
    ] = ("Created", "Context Usage", "Project", "Active Epic", "Progress")
    require_header: Annotated[
        bool, Meta(description="true: sm asks once for a missing line, as for a missing heading")
    ] = False
    resumed: Annotated[
        str,
        Meta(
            description="how the line begins in which the new context names its task",
            pattern=r"^[^\x00-\x1f\x7f`]*[^\s\x00-\x1f\x7f`][^\x00-\x1f\x7f`]*$",
        ),
    ] = "Resumed:"
    keep: Annotated[Positive, Meta(description="how many documents of a session sm keeps")] = 20
    timeout_s: Annotated[
        Seconds,
        Meta(
            description="how long sm waits for the document and asks twice; then it tells a person"
        ),
    ] = Seconds(300)

    @property
    def needed_lines(self) -> tuple[str, ...]:
        """The lines of the header that a complete document needs."""
        return self.header if self.require_header else ()


class KeepFree(Section, frozen=True):
    """How much of the machine has to be free before sm takes up anything new."""

    disk: Annotated[
        Count,
        Meta(
            description="megabytes on the disks of state, worktrees and clone, or 5 % of a "
            "smaller one; 0: any will do"
        ),
    ] = 1000
    memory: Annotated[
        Count, Meta(description="megabytes of memory, or 5 % of a smaller one; 0: any will do")
    ] = 500


class Logs(Section, frozen=True, rename={"keep_s": "keep"}):
    """How long sm keeps the terminal logs of ended sessions."""

    keep_s: Annotated[
        Seconds,
        Meta(description="how long sm keeps a terminal log after the session's end; 0: not at all"),
    ] = Seconds(14 * 86400)
    megabytes: Annotated[
        Count,
        Meta(
            description="limit of all logs together: the oldest go, the last one stays; 0: none "
            "is kept"
        ),
    ] = 500


SANDBOX = "sandbox of a plugin in which agents and setup commands start; empty: none"
LOCAL = "local"
"""Name for no runner: sessions run on this machine."""


class ProjectSettings(
    Section,
    frozen=True,
    rename={"poll_interval_s": "poll_interval", "new_worktree": "worktree"},
):
    """One repository and the forge that its issues come from."""

    name: Annotated[str, Meta(description="part of session and file names")]
    repo: Annotated[Path, Meta(description="your clone; sm never touches its working tree")]
    forge: AnyForgeSettings
    remote: Annotated[str, Meta(description="where branches are pushed")] = "origin"
    primary_branch: Annotated[str, Meta(description="what work is merged into")] = "main"
    branch_prefix: Annotated[str, Meta(description="branch of issue 7: PREFIX/7")] = "fix"
    worktree_root: Annotated[
        Path | None, Meta(description="worktrees go here; default: REPO-worktrees beside the clone")
    ] = None
    max_sessions: Annotated[Count, Meta(description="how many agents work at the same time")] = 2
    max_open: Annotated[
        Count | None,
        Meta(
            description="how many sessions may be open, with those that wait for CI or for people; "
            "default: four times max_sessions",
        ),
    ] = None
    runner: Annotated[
        str,
        Meta(description="where sessions run: `local`, or a runner of a plugin (docs/HOSTS.md)"),
    ] = LOCAL
    runners: Annotated[
        dict[str, str],
        Meta(description="the runner of issues with a label, by label; the first one counts"),
    ] = msgspec.field(default_factory=dict)
    poll_interval_s: Annotated[
        Seconds, Meta(description="longest pause between two ticks of dev-poll --loop")
    ] = Seconds(60)
    trusted: Annotated[
        tuple[str, ...],
        Meta(
            description="people whose issues and comments reach an agent; empty: all collaborators"
        ),
    ] = ()
    sandbox: Annotated[str, Meta(description=SANDBOX)] = ""
    labels: Labels = msgspec.field(default_factory=Labels)
    agent: AgentSettings = msgspec.field(default_factory=AgentSettings)
    new_worktree: NewWorktree = msgspec.field(default_factory=NewWorktree)
    ci: Ci = msgspec.field(default_factory=Ci)
    review: ReviewSettings = msgspec.field(default_factory=ReviewSettings)
    merge: Merge = msgspec.field(default_factory=Merge)
    escalation: EscalationSettings = msgspec.field(default_factory=EscalationSettings)
    recovery: Recovery = msgspec.field(default_factory=Recovery)
    context_monitor: ContextMonitor = msgspec.field(default_factory=ContextMonitor)
    handoff_cycle: HandoffCycle = msgspec.field(default_factory=HandoffCycle)

    tracker: ClassVar[TrackerSettings | None] = None
    """Where its issues are, if they are not on the forge: `sm.config.shapes` adds that key."""

    def link_issue(self, issue: IssueId) -> str:
        """Return the address of an issue's page; '' for none."""
        if self.tracker:
            return self.tracker.link_issue(issue)
        return self.forge.link_issue(issue) if isinstance(issue, int) else ""

    @property
    def has_webhooks(self) -> bool:
        """Whether it is told of every change: a tracker tells of none."""
        return self.forge.has_webhooks and self.tracker is None

    def branch(self, issue: IssueId) -> str:
        """Return the branch of `issue`."""
        return f"{self.branch_prefix}/{issue}"

    @property
    def open_limit(self) -> int:
        """Limit of open sessions, at work or not."""
        return 4 * self.max_sessions if self.max_open is None else self.max_open

    @property
    def worktrees(self) -> Path:
        """The folder of the worktrees."""
        return self.worktree_root or self.repo.with_name(self.repo.name + "-worktrees")

    def worktree(self, issue: IssueId) -> Path:
        """Return the path of the worktree of `issue`."""
        return self.worktrees / f"{self.name}-{name_part(issue)}"


DEFAULT_BRIDGE = Path("~/.local/share/sm/core.db")


class MachineSettings(Section, frozen=True):
    """The settings of the whole machine, at the top of a file."""

    state_root: Annotated[
        Path, Meta(description="folder of the state files; SM_STATE_ROOT overrides it")
    ] = DEFAULT_ROOT
    tmux_socket: Annotated[
        str | None,
        Meta(description="a tmux server of its own (tmux -L); SM_TMUX_SOCKET overrides it"),
    ] = None
    profiles: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="agent CLIs of your own, or changes to a known one"),
    ] = msgspec.field(default_factory=dict)
    bridge_database: Annotated[
        Path,
        Meta(
            description="database of the threads of chat and code; SM_BRIDGE_DATABASE overrides it"
        ),
    ] = DEFAULT_BRIDGE
    notify_command: Annotated[
        str,
        Meta(description="a shell runs it with one line for each thing that a person has to know"),
    ] = ""
    sandbox: Annotated[str, Meta(description=SANDBOX)] = ""
    logs: Logs = msgspec.field(default_factory=Logs)
    keep_free: KeepFree = msgspec.field(default_factory=KeepFree)
    context_monitor: ContextMonitor = msgspec.field(default_factory=ContextMonitor)
    handoff_cycle: HandoffCycle = msgspec.field(default_factory=HandoffCycle)


SHARED = ("sandbox", "context_monitor", "handoff_cycle")
"""The machine's values of these keys are defaults for each project."""


class Config(MachineSettings, frozen=True, kw_only=True):
    """The machine's settings and its projects.

    `source` is the file or the folder that they come from; `--config source` gives another process
    the same.
    """

    source: Path
    projects: tuple[ProjectSettings, ...]

    def project(self, name: str) -> ProjectSettings | None:
        """Return the project of that name, or None."""
        return next((project for project in self.projects if project.name == name), None)
