"""Every key of the configuration, with its type, its default and its meaning in one line.

The meaning is the `meta` beside the key. `docs/CONFIG.md` and the comments of `config.example.yaml`
are made from it.
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
    """The base of all sections. They never change, and an unknown key is an error."""


class ForgeSettings(Section, frozen=True, tag_field="kind"):
    """Where issues, pull requests and reviews are."""

    @property
    def kind(self) -> str:
        """Which forge it is: the tag of the subclass."""
        return str(self.__struct_config__.tag)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        raise NotImplementedError

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of a person's environment that it needs."""
        return ()

    @property
    def has_webhooks(self) -> bool:
        """Whether there is a secret by which it can sign webhooks."""
        return False

    @property
    def is_elsewhere(self) -> bool:
        """Whether CI runs elsewhere, so that sm has it run again if it has failed itself."""
        return False


class LocalSettings(ForgeSettings, frozen=True, tag="local"):
    """A folder beside a bare repository."""

    path: Annotated[Path, Meta(description="the folder of the local forge")]

    @property
    def place(self) -> str:
        """The folder."""
        return str(self.path)


OWN_ADDRESS = (
    r"^(?:https://[^\s/?#@]+|http://(?:127\.0\.0\.1|localhost)(?::\d+)?)(?:/[^\s?#]*[^\s?#/])?$"
)
"""The token goes there, so it is HTTPS, save on this machine."""


class RemoteSettings(ForgeSettings, frozen=True, kw_only=True):
    """A repository on a server, and how sm gets in."""

    repository: Annotated[
        str,
        Meta(description="OWNER/NAME on the forge", pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"),
    ]
    token_command: Annotated[str, Meta(description="prints the token, such as 'gh auth token'")] = (
        ""
    )
    token_file: Annotated[
        Path | None, Meta(description="a file with the token, which only you may read (0600)")
    ] = None
    token_env: Annotated[
        str, Meta(description="a variable with the token; monitors keep it, agents do not get it")
    ] = ""
    git_access: Annotated[
        Literal["own", "sm", "agents"],
        Meta(
            description="over HTTPS: own: git finds credentials itself; sm: sm's git gets the "
            "token; agents: theirs, too"
        ),
    ] = "own"
    has_ci: Annotated[
        bool, Meta(description="false: a commit without any check may be reviewed and merged")
    ] = True
    merge_method: Annotated[
        Literal["merge", "squash", "rebase"], Meta(description="how the forge merges")
    ] = "merge"
    woodpecker_url: Annotated[
        str,
        Meta(
            description="address of a Woodpecker that is the repository's CI; empty: none",
            pattern=rf"^$|{OWN_ADDRESS}",
        ),
    ] = ""
    woodpecker_token_file: Annotated[
        Path | None, Meta(description="a file with Woodpecker's token, which only you may read")
    ] = None
    reserve: Annotated[Count, Meta(description="requests of a limit that sm keeps for writing")] = (
        500
    )

    webhook_secret_command: Annotated[
        str, Meta(description="prints the secret by which the forge signs webhooks to sm serve")
    ] = ""
    webhook_secret_file: Annotated[
        Path | None, Meta(description="a file with that secret, which only you may read (0600)")
    ] = None
    webhook_secret_env: Annotated[
        str, Meta(description="a variable with that secret, in the environment of sm serve")
    ] = ""

    @property
    def is_elsewhere(self) -> bool:
        """It does."""
        return True

    @property
    def variables(self) -> tuple[str, ...]:
        """The one with the token."""
        return (self.token_env,) if self.token_env else ()

    @property
    def has_webhooks(self) -> bool:
        """Whether a place of the secret is configured."""
        places = (self.webhook_secret_command, self.webhook_secret_file, self.webhook_secret_env)
        return any(places)

    @property
    def web_url(self) -> str:
        """Below which git finds repositories over HTTPS."""
        raise NotImplementedError


class GithubSettings(RemoteSettings, frozen=True, kw_only=True, tag="github"):
    """A repository on GitHub or GitHub Enterprise."""

    url: Annotated[
        str,
        Meta(
            description="address of the REST interface; GitHub Enterprise: https://HOST/api/v3",
            pattern=OWN_ADDRESS,
        ),
    ] = "https://api.github.com"

    @property
    def web_url(self) -> str:
        """The address of the pages: that of the interface without `api`."""
        return self.url.removesuffix("/api/v3").replace("://api.", "://", 1)

    @property
    def place(self) -> str:
        """The repository and where it is."""
        return f"{self.repository} at {self.url}"


class HostedSettings(RemoteSettings, frozen=True, kw_only=True):
    """A repository on a server of your own or of others."""

    url: Annotated[
        str,
        Meta(description="address of the server: https://codeberg.org", pattern=OWN_ADDRESS),
    ]

    @property
    def web_url(self) -> str:
        """The address of the server."""
        return self.url

    @property
    def place(self) -> str:
        """The repository and where it is."""
        return f"{self.repository} at {self.url}"


class ForgejoSettings(HostedSettings, frozen=True, kw_only=True, tag="forgejo"):
    """A repository on a Forgejo server, such as Codeberg."""


class GiteaSettings(HostedSettings, frozen=True, kw_only=True, tag="gitea"):
    """A repository on a Gitea server."""


class GitlabSettings(HostedSettings, frozen=True, kw_only=True, tag="gitlab"):
    """A repository on GitLab or a GitLab server."""

    repository: Annotated[
        str,
        Meta(
            description="GROUP/NAME on the forge, with subgroups between them",
            pattern=r"^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+$",
        ),
    ]
    url: Annotated[
        str, Meta(description="address of the server: https://HOST", pattern=OWN_ADDRESS)
    ] = "https://gitlab.com"
    merge_method: Annotated[
        Literal["merge", "squash"],
        Meta(description="merge: as the project is set; squash: the same with one commit"),
    ] = "merge"


AnyForgeSettings = LocalSettings | GithubSettings | ForgejoSettings | GiteaSettings | GitlabSettings
"""The kinds of forges, joined by `|`. `sm.adapters.forge.kinds` opens them."""


class Labels(Section, frozen=True):
    """The labels that show the state of an issue."""

    backlog: Annotated[str, Meta(description="work that may be picked up")] = "backlog"
    in_progress: Annotated[str, Meta(description="a session works on it")] = "in-progress"
    blocked: Annotated[
        str, Meta(description="a person has to look at it; sm never picks it up")
    ] = "blocked"


class Agent(Section, frozen=True, rename={"timeout_s": "timeout"}):
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
    ] = msgspec.field(default_factory=lambda: _seconds(7200))
    env: Annotated[dict[str, str], Meta(description="variables set for the agent")] = msgspec.field(
        default_factory=dict
    )
    pass_env: Annotated[
        tuple[str, ...],
        Meta(description="variables of your own environment that the agent may see"),
    ] = ()


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
    ] = msgspec.field(default_factory=lambda: _seconds(30))
    timeout_s: Annotated[
        Seconds, Meta(description="after so long without a verdict sm tells a person")
    ] = msgspec.field(default_factory=lambda: _seconds(1800))
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


class Review(Section, frozen=True, rename={"timeout_s": "timeout"}):
    """Who reviews the work before sm merges it."""

    required: Annotated[
        bool, Meta(description="false: work is merged as soon as CI has passed")
    ] = True
    timeout_s: Annotated[
        Seconds, Meta(description="after so long without a review sm tells a person")
    ] = msgspec.field(default_factory=lambda: _seconds(3 * 3600))
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
    ] = msgspec.field(default_factory=lambda: _seconds(1800))


class Escalation(Section, frozen=True, rename={"timeout_s": "timeout", "remind_s": "remind"}):
    """What happens while sm waits for a person's answer."""

    remind_s: Annotated[Seconds, Meta(description="how often sm reminds the person; 0: never")] = (
        msgspec.field(default_factory=lambda: _seconds(6 * 3600))
    )
    timeout_s: Annotated[
        Seconds,
        Meta(
            description="after so long without an answer sm labels the issue blocked and ends the "
            "session"
        ),
    ] = msgspec.field(default_factory=lambda: _seconds(24 * 3600))
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
    ] = msgspec.field(default_factory=lambda: _seconds(30))


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
    ] = msgspec.field(default_factory=lambda: _seconds(300))

    @property
    def needed_lines(self) -> tuple[str, ...]:
        """The lines of the header that a complete document needs."""
        return self.header if self.require_header else ()


class Logs(Section, frozen=True, rename={"keep_s": "keep"}):
    """How long sm keeps the terminal logs of ended sessions."""

    keep_s: Annotated[
        Seconds,
        Meta(description="how long sm keeps a terminal log after the session's end; 0: not at all"),
    ] = msgspec.field(default_factory=lambda: _seconds(14 * 86400))
    megabytes: Annotated[
        Count,
        Meta(
            description="limit of all logs together: the oldest go, the last one stays; 0: none "
            "is kept"
        ),
    ] = 500


class ProjectSettings(Section, frozen=True, rename={"poll_interval_s": "poll_interval"}):
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
    poll_interval_s: Annotated[
        Seconds, Meta(description="longest pause between two ticks of dev-poll --loop")
    ] = msgspec.field(default_factory=lambda: _seconds(60))
    trusted: Annotated[
        tuple[str, ...],
        Meta(
            description="people whose issues and comments reach an agent; empty: all collaborators"
        ),
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
        """Return the branch of `issue`."""
        return f"{self.branch_prefix}/{issue}"

    @property
    def worktrees(self) -> Path:
        """The folder of the worktrees."""
        return self.worktree_root or self.repo.with_name(self.repo.name + "-worktrees")

    def worktree(self, issue: int) -> Path:
        """Return the path of the worktree of `issue`."""
        return self.worktrees / f"{self.name}-{issue}"


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
    logs: Logs = msgspec.field(default_factory=Logs)
    context_monitor: ContextMonitor = msgspec.field(default_factory=ContextMonitor)
    handoff_cycle: HandoffCycle = msgspec.field(default_factory=HandoffCycle)


SHARED = ("context_monitor", "handoff_cycle")
"""The machine's values of these sections are defaults for each project."""


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
