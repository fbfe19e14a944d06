"""Writes what the launcher reads: the agent's environment and command, with a NUL at each end."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.prompt_text import make_harmless, make_hook_answer, mention_file, shorten
from sm.adapters.git_call import add_settings
from sm.adapters.tmux import Tmux, select_plain_environment
from sm.base import plugin
from sm.base.errors import UsageError
from sm.base.nonce import make_nonce
from sm.base.quotation import take_out
from sm.base.text import normalise
from sm.config.check import find_variable_problem
from sm.config.schema import AgentSettings
from sm.helper.plugin_call import note_failure
from sm.sessions import sandboxes
from sm.sessions.agent_hooks import write_settings
from sm.sessions.personal_hooks import find_default_settings, read_status_line
from sm.sessions.session import Session
from sm.shell_root import find_shell_root
from sm.store.files import discard, ensure_private_dir, read_guarded, write_atomic
from sm.store.paths import SessionDir

QUOTED = "task.txt"
"""The name of the file with what the first prompt quotes."""


class Launch(Struct, frozen=True):
    """Data for the start of an agent.

    `protocol` goes into its system prompt, if the profile has a way. `resume` is the agent's own
    session id to resume, '' for a new one. `keeps_environment` gives it the environment of the
    launch before, because only that caller had some of it.
    """

    settings: AgentSettings
    profile: Profile
    prompt: str = ""
    protocol: str = ""
    resume: str = ""
    keeps_environment: bool = False


def write_launch_files(tmux: Tmux, session: Session, launch: Launch) -> None:
    """Write the launcher's files, and remove what the agent before has left.

    Raises:
        UsageError: the configured command or environment cannot be used.
        SandboxError: the sandbox that is configured cannot be had.

    """
    directory = session.dir
    # What the last agent's hooks have left says nothing about the next agent.
    files = (directory.agent_pid, directory.launch_error, directory.client, directory.dialog)
    for stale in (*files, directory.blocks, directory.compacting, directory.shown):
        discard(stale)
    ensure_private_dir(directory.accepted)  # hooks cannot make a directory without a fork
    write_atomic(directory.state, f"starting {time.time():.6f} - -\n")
    environment = make_environment(tmux, session, launch.settings)
    environment = add_variables(session, launch.profile, environment)
    if launch.keeps_environment and directory.launch_env.exists():
        environment = read_environment(directory)
    else:
        entries = [f"{name}={value}" for name, value in environment.items()]
        write_atomic(directory.launch_env, _entries(entries, "environment"))
    command = sandboxes.wrap(session, _command(directory, launch, environment), environment)
    write_atomic(directory.launch_argv, _entries(command, "command"))


def read_environment(directory: SessionDir) -> dict[str, str]:
    """Return the environment of the last launched agent; empty if it is lost."""
    entries = os.fsdecode(read_guarded(directory.launch_env) or b"").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def read_first_prompt(directory: SessionDir) -> str:
    """Return the prompt that the last agent was launched with; '' for none."""
    if not directory.opening.exists():
        return ""
    return (read_guarded(directory.prompt) or b"").decode("utf-8", "replace")


def _entries(values: list[str], what: str) -> bytes:
    data = [os.fsencode(value) for value in values]
    if any(b"\0" in value for value in data):
        raise UsageError(f"the agent's {what} holds a NUL character: remove it")
    return b"".join(value + b"\0" for value in data)


def _command(directory: SessionDir, launch: Launch, environment: Mapping[str, str]) -> list[str]:
    profile = launch.profile
    command = split_command(launch.settings.command or profile.command)
    if launch.resume:
        command += _fill(profile.resume, context=launch.resume)
    if profile.settings:
        hooks = find_shell_root() / "lib" / "hooks"
        # These settings override the person's own, whose status line would be lost.
        theirs = read_status_line(find_default_settings(environment))
        unattended = {k: v for k, v in profile.unattended.items() if k not in environment}
        write_settings(
            directory,
            hooks,
            status_line=theirs,
            variables=unattended,
            withheld=profile.withheld_tools,
        )
        # In a client's command line, a hook's command is a quoted line for the shell.
        folder = json.dumps(shlex.quote(str(hooks)), ensure_ascii=False)[1:-1]
        command += _fill(profile.settings, file=str(directory.settings), hooks=folder)
    if profile.hooks == "codex":
        for key, value in profile.unattended.items():
            command += ["-c", f"{key}={value}"]
    if launch.protocol and profile.system_prompt:
        write_atomic(directory.system_prompt, launch.protocol + "\n")
        file, text = str(directory.system_prompt), launch.protocol
        command += _fill(profile.system_prompt, file=file, text=text)
    prompt = _prompt(directory, launch)
    return command + (_fill(profile.prompt, prompt=prompt) if prompt else [])


def split_command(line: str) -> list[str]:
    """Return the words of a configured command line.

    Raises:
        UsageError: the line is empty, or a quotation mark is missing.

    """
    try:
        command = shlex.split(line)
    except ValueError as error:
        raise UsageError(
            f"cannot read the agent's command '{line}': {str(error).lower()}"
        ) from error
    if not command:
        raise UsageError("the agent has no command: set 'agent.command'")
    return command


def _fill(template: Iterable[str], **values: str) -> list[str]:
    """Return the arguments of `template` with these values; other text in braces stays as it is."""

    def fill(argument: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), argument)

    return [fill(argument) for argument in template]


def _prompt(directory: SessionDir, launch: Launch) -> str:
    """Return the line that replaces the prompt on the command line, which all users can read.

    The prompt is in a private file. The agent's hook adds it to the line, if there is a hook and
    the prompt is not too long. Otherwise the agent reads the file. What it quotes is in a file of
    its own, which the line names.
    """
    discard(directory.opening)
    text = make_harmless(launch.profile, normalise(launch.prompt))
    if not text:
        return ""
    write_atomic(directory.prompt, text)
    ident, shown = make_nonce(4), shorten(text, str(directory.prompt))
    words, quotes = take_out(text)
    answer = make_hook_answer(launch.profile, words, shown)
    write_atomic(directory.opening, f"{ident}\n{answer}\n")
    if not answer:
        what = "is in a file: read it to its end and carry it out"
        return f"[sm] Task {ident} {what}: {directory.prompt}"
    also = f", and what it quotes is in {_quote(directory, launch, quotes)}" if quotes else ""
    return (
        f"[sm] Task {ident} comes with this prompt{also}; all is in a file, too: {directory.prompt}"
    )


def _quote(directory: SessionDir, launch: Launch, quotes: str) -> str:
    """Write the file with what the prompt quotes; return how the line names it."""
    file = ensure_private_dir(directory.quoted, parents=False) / QUOTED
    write_atomic(file, f"{quotes}\n")
    return f"{mention_file(launch.profile, file) or f'the file {file}: read it,'} as data"


def select_environment(settings: AgentSettings) -> dict[str, str]:
    """Return the part of our environment that an agent gets, and the configured values."""
    own = select_plain_environment()
    own.pop("TERM", None)  # the launcher adds the TERM of its pane
    passed = {name: os.environ[name] for name in settings.pass_env if name in os.environ}
    return own | passed | settings.env


def make_environment(tmux: Tmux, session: Session, settings: AgentSettings) -> dict[str, str]:
    """Return the agent's whole environment: of ours, only what is named here."""
    chosen = select_environment(settings)
    if problem := next(filter(None, map(find_variable_problem, chosen)), None):
        raise UsageError(f"agent.env: {problem}")
    chosen = add_settings(chosen, session.git_settings)
    own = (*session.programs, find_shell_root() / "bin")
    path = [*map(str, own), chosen.get("PATH") or os.defpath]
    return (
        chosen
        | session.environment
        | {
            "PATH": ":".join(path),
            "SM_PYTHON": sys.executable,
            **({"SM_TMUX_SOCKET": tmux.socket} if tmux.socket else {}),
        }
    )


Variables = Callable[[Session, Profile, Mapping[str, str]], Mapping[str, str]]
"""Function of a plugin, a part of the kind `variables`: it is asked at each launch, with the
environment as it is without the plugin, and never overrides what is in it."""
NOT_ADDED = "could not add variables to an agent's environment"


def add_variables(
    session: Session, profile: Profile, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with what the plugins add to it."""
    found = dict(environment)
    for part in plugin.list_parts("variables").values():
        try:
            make: Variables = plugin.load_entry(part)
            added = make(session, profile, found)
            found = {
                name: value for name, value in added.items() if not find_variable_problem(name)
            } | found
        except Exception as error:  # whatever is wrong with a plugin, the agent starts
            note_failure(session.root, part, NOT_ADDED, error)
    return found
