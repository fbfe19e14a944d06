"""Programs of `sm` that a person has left running for a state root: a loop, a server, a watch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from sm.adapters import procfs
from sm.adapters.procfs import Process
from sm.base.errors import SmError
from sm.config.load import load_machine, make_default_machine
from sm.store.paths import Root

MODULE = ("-Im", "-m")
"""Options that tell Python to run a module."""


class Program(Struct, frozen=True):
    """Program that runs, and the command line that began it."""

    process: Process
    command: str


def list_programs(root: Root, is_shown: Callable[[str], bool]) -> Iterator[Program]:
    """Yield the programs that run now, but for this; `is_shown`: a verb that a person calls."""
    ours = {one.pid for one in procfs.find_ancestors(os.getpid())}
    for pid in map(int, procfs.list_pids()):
        process = None if pid in ours else procfs.find(pid)
        words = _find_words(procfs.read_command(process)) if process else []
        if process and _is_left(words, is_shown) and _find_root(process, words) == root.path:
            yield Program(process, shlex.join(words))


def _find_words(command: list[str]) -> list[str]:
    """Return `sm` or `dev-poll` with its arguments; [] for any other program."""
    for at, word in enumerate(command[:3]):
        name = os.path.basename(word)  # noqa: PTH119 - there are thousands
        if name == "dev-poll" or (name == "sm" and at):
            called = word == name and command[at - 1] in MODULE
            return [name, *command[at + 1 :]] if called or "/" in word else []
    return []


def _is_left(words: list[str], is_shown: Callable[[str], bool]) -> bool:
    """Whether a person has begun the program. A program that sm has begun ends by itself."""
    if words[:1] == ["dev-poll"]:
        return "--loop" in words
    verb = next(iter(_skip_config(words[1:])), "")
    return bool(verb) and is_shown(verb)


def _skip_config(arguments: list[str]) -> list[str]:
    """Return the arguments behind the option that comes before a verb."""
    if arguments[:1] == ["--config"]:
        return arguments[2:]
    return arguments[1:] if arguments and arguments[0].startswith("--config=") else arguments


def _find_root(process: Process, words: list[str]) -> Path | None:
    """Find the state root that it uses; None if it has ended."""
    try:
        env, folder = procfs.read_environment(process), procfs.read_folder(process)
    except OSError:
        return None
    try:
        return load_machine(_find_config(words), env, folder)[0].state_root
    except SmError:  # its configuration cannot be read any more
        return make_default_machine(env, folder).state_root


def _find_config(words: list[str]) -> Path | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--config" and following:
            return Path(following)
        if word.startswith("--config="):
            return Path(word.removeprefix("--config="))
    return None


def tell_running(programs: list[Program]) -> str:
    """Say which run, and the command that ends them."""
    named = ", ".join(f"{one.command} (process {one.process.pid})" for one in programs)
    return f"{named}: kill {' '.join(str(one.process.pid) for one in programs)}"
