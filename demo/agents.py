"""Who does the work in the demo: a script, or the person's own Claude Code with its account."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCRIPT = Path(__file__).with_name("agent.py")
VERSION_S, ANSWER_S = 20.0, 120.0

REQUESTS, MILLION_TOKENS, DOLLARS = "60 to 150", "1 to 6", "2 to 8"
"""With a scripted model there are some 55 requests, of about 20,000 tokens each with all that the
client adds; a real one looks around more."""

TOOLS = ("Bash", "Edit", "Write", "Read", "Glob", "Grep")
LOGIN = frozenset(
    {
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"),
        *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
        *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS"),
    }
)
"""Variables by which Claude Code knows whose it is and how to get at the model."""

QUESTION = """\
Five small issues, worked on by your own Claude Code ({version}: {program}).

  account  the one that it is logged in to. An estimate from the number of turns, not more:
           {requests} requests, {tokens} million tokens, most of them from the cache;
           where tokens are paid for, {dollars} US dollars. Ctrl-C ends it at any time.
  rights   it works as you and asks nothing, in a directory of its own; {tools}
           are allowed, what else would ask is refused
  HOME     yours, for the login and your settings. The demo writes nothing there; Claude Code
           keeps its transcripts there, as ever
"""


class AgentError(Exception):
    """The agent cannot be used; the text says why, and what to do."""


@dataclass(frozen=True)
class Agent:
    """What works on the issues; `deadline_s` is how long all five may take it.

    `passed` are variables of the person's that it gets, beside `env`. An agent of the person's
    `own` has a model that nobody can foresee.
    """

    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    passed: tuple[str, ...] = ()
    own: bool = False
    deadline_s: float = 300.0


SCRIPTED = Agent(shlex.join(["python3", "-I", str(SCRIPT)]))


def own_claude(environ: Mapping[str, str]) -> Agent:
    """Claude Code as the person has it.

    Nobody is asked whether the new folders are trusted, as the demo itself has filled them: the
    client takes that from its environment, so nothing has to be written for it anywhere.

    Raises:
        AgentError: there is none.

    """
    program = shutil.which("claude", path=environ.get("PATH"))
    if program is None:
        raise AgentError("no 'claude' on PATH: install Claude Code, or leave out '--agent claude'")
    rights = ("--permission-mode", "dontAsk", f"--allowedTools={','.join(TOOLS)}")
    return Agent(
        command=shlex.join([str(Path(program).absolute()), *rights]),
        env={"HOME": environ.get("HOME", str(Path.home())), "CLAUDE_CODE_SANDBOXED": "1"},
        passed=tuple(sorted(LOGIN & environ.keys())),
        own=True,
        deadline_s=2700.0,
    )


def question(agent: Agent) -> str:
    """What a person should know before an agent of theirs is used.

    Raises:
        AgentError: it does not even say its version.

    """
    return QUESTION.format(
        version=_call(agent, "--version", timeout_s=VERSION_S).split(" ")[0],
        program=shlex.split(agent.command)[0],
        requests=REQUESTS,
        tokens=MILLION_TOKENS,
        dollars=DOLLARS,
        tools=", ".join(TOOLS),
    )


def check_answers(agent: Agent) -> None:
    """Ask the model for a word.

    Raises:
        AgentError: it does not answer.

    """
    _call(agent, "--no-session-persistence", "-p", "Say: ready", timeout_s=ANSWER_S)


def _call(agent: Agent, *args: str, timeout_s: float) -> str:
    kept = ("PATH", "LANG", "TERM", "USER", *agent.passed)
    env = {name: os.environ[name] for name in kept if name in os.environ} | dict(agent.env)
    argv = [*shlex.split(agent.command), *args]
    with tempfile.TemporaryDirectory(prefix="sm-demo-") as folder:
        try:
            done = subprocess.run(
                argv,
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=timeout_s,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AgentError(f"'{argv[0]}' does not answer: {error}") from error
    if done.returncode:
        said = " ".join((done.stdout.strip() or done.stderr.strip()).split())[-500:]
        raise AgentError(
            f"'{argv[0]}' does not answer: {said}\nstart 'claude' yourself: once it does, try again"
        )
    return done.stdout.strip()
