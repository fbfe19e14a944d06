"""What the launcher reads: the agent's environment and its command, each entry ended by a NUL."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
import time
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux, plain_environment
from sm.config.schema import Agent as Settings
from sm.errors import UsageError
from sm.session.hookfiles import write_settings
from sm.session.personalhooks import default_settings, status_line_of
from sm.session.registry import Session
from sm.session.wire import added_by_hook, as_message
from sm.shellroot import shell_root
from sm.store.files import discard, ensure_private_dir, write_atomic
from sm.store.paths import SessionDir
from sm.text import normalise

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Launch(Struct, frozen=True):
    """What an agent is started with.

    `protocol` goes into its system prompt, where the profile has a way; `resume` is the agent's
    own session id to go on with, '' for a new one. `keeps_environment` gives it that of the launch
    before, parts of which only that one's caller had.
    """

    settings: Settings
    profile: Profile
    prompt: str = ""
    protocol: str = ""
    resume: str = ""
    keeps_environment: bool = False


def write_launch_files(tmux: Tmux, session: Session, launch: Launch) -> None:
    """Write what the launcher will read, and clear what the agent before it has left.

    Raises:
        UsageError: the command or the environment that is configured cannot be used.

    """
    directory = session.dir
    _clear(directory)
    environment = agent_environment(tmux, session, launch.settings)
    if not (launch.keeps_environment and directory.launch_env.exists()):
        entries = [f"{name}={value}" for name, value in environment.items()]
        write_atomic(directory.launch_env, _entries(entries, "environment"))
    command = _command(directory, launch, environment)
    write_atomic(directory.launch_argv, _entries(command, "command"))


def _clear(directory: SessionDir) -> None:
    """Whatever the last agent's hooks have said is not about the next one."""
    files = (directory.agent_pid, directory.launch_error, directory.client, directory.dialog)
    for stale in (*files, directory.blocks, directory.compacting):
        discard(stale)
    ensure_private_dir(directory.accepted)  # hooks cannot make a directory without a fork
    write_atomic(directory.state, f"starting {time.time():.6f} - -\n")


def _entries(values: list[str], what: str) -> bytes:
    data = [os.fsencode(value) for value in values]
    if any(b"\0" in value for value in data):
        raise UsageError(f"the agent's {what} holds a NUL character: remove it")
    return b"".join(value + b"\0" for value in data)


def _command(directory: SessionDir, launch: Launch, environment: Mapping[str, str]) -> list[str]:
    profile = launch.profile
    command = split_command(launch.settings.command or profile.command)
    if launch.resume:
        command += _filled(profile.resume, context=launch.resume)
    if profile.settings:
        hooks = shell_root() / "lib" / "hooks"
        # These settings go before the person's own, whose status line would be gone.
        theirs = status_line_of(default_settings(environment))
        write_settings(directory, hooks, status_line=theirs)
        # Where a client's command line holds a hook's command, that is a shell's line in quotes.
        folder = json.dumps(shlex.quote(str(hooks)), ensure_ascii=False)[1:-1]
        command += _filled(profile.settings, file=str(directory.settings), hooks=folder)
    if launch.protocol and profile.system_prompt:
        write_atomic(directory.system_prompt, launch.protocol + "\n")
        file, text = str(directory.system_prompt), launch.protocol
        command += _filled(profile.system_prompt, file=file, text=text)
    prompt = _prompt(directory, launch)
    return command + (_filled(profile.prompt, prompt=prompt) if prompt else [])


def split_command(line: str) -> list[str]:
    """The words of a configured command line.

    Raises:
        UsageError: it is empty, or a quotation mark is missing.

    """
    try:
        command = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"cannot read agent.command '{line}': {str(error).lower()}") from error
    if not command:
        raise UsageError("agent.command is empty: set it")
    return command


def _filled(template: Iterable[str], **values: str) -> list[str]:
    """The arguments of `template`; braces of other text than the values' names stay as they are."""

    def fill(argument: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), argument)

    return [fill(argument) for argument in template]


def _prompt(directory: SessionDir, launch: Launch) -> str:
    """The line that stands for the prompt on the command line, which all users can read.

    The prompt is in a file of ours. The agent's hook adds it to the line, where there is a hook
    and it can carry that much; else the agent reads the file.
    """
    discard(directory.opening)
    text = as_message(launch.profile, normalise(launch.prompt))
    if not text:
        return ""
    write_atomic(directory.prompt, text)
    ident, answer = secrets.token_hex(4), added_by_hook(launch.profile, text)
    if not answer:
        what = "is in a file: read it to its end and carry it out"
        return f"[sm] Task {ident} {what}: {directory.prompt}"
    write_atomic(directory.opening, f"{ident}\n{answer}\n")
    return f"[sm] Task {ident} comes with this prompt, and is in a file, too: {directory.prompt}"


def agent_environment(tmux: Tmux, session: Session, settings: Settings) -> dict[str, str]:
    """Everything that the agent is given; nothing of ours that is not named here."""
    own = plain_environment()
    own.pop("TERM", None)  # that of its pane is added by the launcher
    passed = {name: os.environ[name] for name in settings.pass_env if name in os.environ}
    chosen = own | passed | settings.env
    if wrong := [name for name in chosen if not VARIABLE.fullmatch(name)]:
        raise UsageError(f"'{wrong[0]}' in agent.env cannot be a variable's name")
    path = [str(shell_root() / "bin"), chosen.get("PATH") or os.defpath]
    return (
        chosen
        | session.environment
        | {
            "PATH": ":".join(path),
            "SM_PYTHON": sys.executable,
            **({"SM_TMUX_SOCKET": tmux.socket} if tmux.socket else {}),
        }
    )
