"""Every key of the configuration, its type, its default and one line of why.

The description of a key is the `meta` beside it: `docs/CONFIG.md` and the comments of
`config.example.yaml` are made from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sm.config.duration import Seconds
from sm.store.paths import DEFAULT_ROOT

Positive = Annotated[int, Meta(ge=1)]
Percentage = Annotated[int, Meta(ge=1, le=100)]
Count = Annotated[int, Meta(ge=0)]


def _seconds(value: float) -> Seconds:
    return Seconds(value)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all sections share: they never change, and a key that they do not know is an error."""


class Forge(Section, frozen=True):
    """Where issues, pull requests and reviews are."""

    kind: Annotated[Literal["local"], Meta(description="local: a folder beside a bare repository")]
    path: Annotated[Path, Meta(description="the folder of the local forge")]


class Labels(Section, frozen=True):
    """The labels that show the state of an issue."""

    backlog: Annotated[str, Meta(description="work that may be picked up")] = "backlog"
    in_progress: Annotated[str, Meta(description="a session works on it")] = "in-progress"
    blocked: Annotated[str, Meta(description="a person has to look; never picked up")] = "blocked"


class Agent(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """The coding agent and its terminal."""

    command: Annotated[
        str, Meta(description="command line, the prompt is added to it; empty: the profile's own")
    ] = ""
    profile: Annotated[
        str, Meta(description="how it is driven, docs/PROFILES.md; empty: by the command's program")
    ] = ""
    timeout_s: Annotated[
        Seconds, Meta(description="no sign of life for so long while it should work: restarted")
    ] = msgspec.field(default_factory=lambda: _seconds(7200))
    env: Annotated[dict[str, str], Meta(description="variables set for the agent")] = msgspec.field(
        default_factory=dict
    )
    pass_env: Annotated[
        tuple[str, ...], Meta(description="variables of your own environment that it may see")
    ] = ()


class Ci(Section, frozen=True, rename={"poll_s": "poll", "timeout_s": "timeout"}):
    """What has to pass before a review."""

    command: Annotated[
        str | None,
        Meta(description="local forge: run by a shell in a clean checkout; empty: no CI"),
    ] = None
    poll_s: Annotated[
        Seconds, Meta(description="how often the forge is asked, once for all sessions")
    ] = msgspec.field(default_factory=lambda: _seconds(30))
    timeout_s: Annotated[Seconds, Meta(description="no verdict for so long: a person is told")] = (
        msgspec.field(default_factory=lambda: _seconds(1800))
    )
    max_fixes: Annotated[
        Count, Meta(description="failures handed to the agent before a person is told")
    ] = 3
    log_lines: Annotated[Positive, Meta(description="lines of a failing log that it gets")] = 200


class Review(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """Who looks at the work before it is merged."""

    required: Annotated[bool, Meta(description="false: merged when CI has passed")] = True
    timeout_s: Annotated[Seconds, Meta(description="no review for so long: a person is told")] = (
        msgspec.field(default_factory=lambda: _seconds(3 * 3600))
    )
    max_rounds: Annotated[
        Count, Meta(description="rounds of changes requested before a person is told")
    ] = 5


class Merge(Section, frozen=True, rename={"remind_s": "remind"}):
    """How approved work gets into the primary branch."""

    by: Annotated[
        Literal["agent", "sm"],
        Meta(description="agent: told to merge; sm: merges at exactly the reviewed commit"),
    ] = "agent"
    remind_s: Annotated[
        Seconds,
        Meta(description="approved, green and not merged for so long: reminded, then escalated"),
    ] = msgspec.field(default_factory=lambda: _seconds(1800))


class Escalation(Section, frozen=True, rename={"timeout_s": "timeout", "remind_s": "remind"}):
    """What happens while a person is asked."""

    remind_s: Annotated[Seconds, Meta(description="a person is reminded so often; 0: never")] = (
        msgspec.field(default_factory=lambda: _seconds(6 * 3600))
    )
    timeout_s: Annotated[
        Seconds, Meta(description="no answer for so long: labelled blocked, session ended")
    ] = msgspec.field(default_factory=lambda: _seconds(24 * 3600))
    vault: Annotated[
        Path | None,
        Meta(description="folder for questions as Markdown files, answered in the file"),
    ] = None


class Recovery(Section, frozen=True, rename={"pause_s": "pause"}):
    """What happens when an agent dies."""

    max: Annotated[Count, Meta(description="restarts before the issue counts as failed")] = 3
    pause_s: Annotated[
        Seconds, Meta(description="wait before the second restart; doubled for each further one")
    ] = msgspec.field(default_factory=lambda: _seconds(30))


class ContextMonitor(Section, frozen=True):
    """What an agent is told when its context fills up."""

    enabled: Annotated[bool, Meta(description="false: the agent is told nothing")] = True
    warning_percentage: Annotated[
        Percentage, Meta(description="from here on it is told, once, to think of a handoff")
    ] = 50
    critical_percentage: Annotated[
        Percentage, Meta(description="from here on it is told, at once, to hand off now")
    ] = 65
    tell: Annotated[
        tuple[Literal["parent", "person"], ...],
        Meta(description="who else hears that a context was summed up"),
    ] = ("parent", "person")


class HandoffCycle(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """What happens when an agent fills its context without handing off by itself."""

    enabled: Annotated[
        bool, Meta(description="false: only by hand, with sm cycle, or by the agent itself")
    ] = True
    percentage: Annotated[
        Percentage, Meta(description="from here on its context is replaced, by way of a document")
    ] = 85
    folder: Annotated[
        str, Meta(description="where the documents are, in the agent's working directory")
    ] = ".sm/handoffs"
    sections: Annotated[
        tuple[str, ...],
        Meta(description="headings that a document needs; a missing one is asked for, once"),
    ] = (
        *("Current Work", "Completed Since Last Handoff", "Next Steps"),
        *("Critical State", "Blockers / Issues", "Notes"),
    )
    keep: Annotated[Positive, Meta(description="so many documents of a session stay")] = 20
    timeout_s: Annotated[
        Seconds, Meta(description="no document for so long: asked for again, then a person is told")
    ] = msgspec.field(default_factory=lambda: _seconds(300))


class Project(Section, frozen=True, rename={"poll_interval_s": "poll_interval"}):
    """One repository and the forge that its issues come from."""

    name: Annotated[str, Meta(description="part of session and file names")]
    repo: Annotated[Path, Meta(description="your clone; its working tree is never touched")]
    forge: Forge
    remote: Annotated[str, Meta(description="where branches are pushed")] = "origin"
    primary_branch: Annotated[str, Meta(description="what work is merged into")] = "main"
    branch_prefix: Annotated[str, Meta(description="branch of issue 7: PREFIX/7")] = "fix"
    worktree_root: Annotated[
        Path | None, Meta(description="worktrees go here; default: REPO-worktrees beside the clone")
    ] = None
    max_sessions: Annotated[Count, Meta(description="agents at work at the same time")] = 2
    poll_interval_s: Annotated[
        Seconds, Meta(description="pause between two ticks of dev-poll --loop")
    ] = msgspec.field(default_factory=lambda: _seconds(60))
    trusted: Annotated[
        tuple[str, ...],
        Meta(description="whose issues and comments reach an agent; empty: all collaborators"),
    ] = ()
    labels: Labels = msgspec.field(default_factory=Labels)
    agent: Agent = msgspec.field(default_factory=Agent)
    ci: Ci = msgspec.field(default_factory=Ci)
    review: Review = msgspec.field(default_factory=Review)
    merge: Merge = msgspec.field(default_factory=Merge)
    escalation: Escalation = msgspec.field(default_factory=Escalation)
    recovery: Recovery = msgspec.field(default_factory=Recovery)
    context_monitor: ContextMonitor = msgspec.field(default_factory=ContextMonitor)
    handoff_cycle: HandoffCycle = msgspec.field(default_factory=HandoffCycle)

    def branch(self, issue: int) -> str:
        """The branch on which `issue` is worked on."""
        return f"{self.branch_prefix}/{issue}"

    @property
    def worktrees(self) -> Path:
        """The folder that holds the worktrees."""
        return self.worktree_root or self.repo.with_name(self.repo.name + "-worktrees")

    def worktree(self, issue: int) -> Path:
        """Where the worktree of `issue` is made."""
        return self.worktrees / f"{self.name}-{issue}"


DEFAULT_BRIDGE = Path("~/.local/share/sm/core.db")


class Machine(Section, frozen=True):
    """What holds for all projects on this machine: at the top of a file."""

    state_root: Annotated[
        Path, Meta(description="folder of the state files; SM_STATE_ROOT goes before it")
    ] = DEFAULT_ROOT
    tmux_socket: Annotated[
        str | None,
        Meta(description="a tmux server of its own (tmux -L); SM_TMUX_SOCKET goes before it"),
    ] = None
    profiles: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="agent CLIs of your own, or what is different in one that is known"),
    ] = msgspec.field(default_factory=dict)
    bridge_database: Annotated[
        Path, Meta(description="handoffs of chat and code; SM_BRIDGE_DATABASE goes before it")
    ] = DEFAULT_BRIDGE
    notify_command: Annotated[
        str, Meta(description="run by a shell for what a person has to know, which it reads")
    ] = ""
    context_monitor: ContextMonitor = msgspec.field(default_factory=ContextMonitor)
    handoff_cycle: HandoffCycle = msgspec.field(default_factory=HandoffCycle)


SHARED = ("context_monitor", "handoff_cycle")
"""What the machine says of these is what a project starts from."""


class Config(Machine, frozen=True, kw_only=True):
    """The machine's settings and its projects.

    `source` is the file, or the folder of files, that they were read from: `--config source`
    leads another process to the same ones.
    """

    source: Path
    projects: tuple[Project, ...]

    def project(self, name: str) -> Project | None:
        """The project of that name, if there is one."""
        return next((project for project in self.projects if project.name == name), None)
