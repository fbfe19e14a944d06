"""Removes what `sm` has made on this machine; what a person would lose is kept."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from sm.adapters import procfs
from sm.adapters.forge.local.entry import find_bare
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import IssueState
from sm.adapters.git_call import call
from sm.adapters.procfs import Process
from sm.base import plugin
from sm.base.errors import SmError
from sm.config.forges import LocalSettings
from sm.config.load import find_user_folder, list_files, load_machine, make_default_machine
from sm.config.schema import Config
from sm.helper.services import end_service, list_running
from sm.issues.work import kept_worktrees, remnants
from sm.sessions import pause, registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.setup import install_hooks
from sm.setup.discover import remote_url
from sm.setup.hub import locate_hub
from sm.shell_root import find_shell_root
from sm.store import lock
from sm.store.paths import Root

COMMANDS = ("sm", "dev-poll", "agent-session")
"""Commands that a person links into a folder on PATH."""


class Remainder(Struct, frozen=True):
    """Part that is ours. `kept` says why it stays, '' if it goes; `remove` does that."""

    what: str
    kept: str = ""
    remove: Callable[[], object] = lambda: None


def check_nothing_runs(
    machine: Machine, config: Config | None, is_shown: Callable[[str], bool]
) -> None:
    """Refuse while a session is on record, or a program runs that would make the state again.

    `is_shown` tells the verbs that a person calls from those that end by themselves.

    Raises:
        SmError: as it says; the message has the commands that end them.

    """
    ends = [f"sm kill {one.address}" for one in registry.list_all(machine.root)]
    if running := list(list_programs(machine.root, is_shown)):
        raise SmError(f"programs of sm run: end them first: {tell_running(running)}")
    for project in config.projects if config else ():
        if lock.is_held(machine.root.project(project.name).poll_lock):
            raise SmError("dev-poll runs: end it first, then call this again")
    if ends:
        raise SmError(f"sessions are on record: end them first: {'; '.join(ends)}")


def list_parts(
    machine: Machine, config: Config | None, env: Mapping[str, str]
) -> Iterator[Remainder]:
    """Return all parts that are ours, in the order in which they go; nothing is changed."""
    for settings in config.projects if config else ():
        assert config is not None
        project = Project(config, settings)
        yield from _list_worktrees(project)
        yield from _list_hub(project)
        yield from _list_files(project)
    yield from _list_hooks(env)
    for files in list_running(machine.root):
        yield Remainder(f"service: {files.name}", remove=partial(end_service, files))
    if machine.root.private.is_dir():
        state = machine.root.private
        yield Remainder(f"state: {state}", remove=lambda: shutil.rmtree(state))
    record = pause.locate(machine.root)
    for path in (record, record.with_suffix(".lock")):
        if path.is_file():
            yield Remainder(f"what is paused: {path}", remove=path.unlink)
    database = machine.settings.bridge_database
    if database.is_file():
        yield Remainder(f"threads of chats: {database}", kept="they are your own words")
    yield from _list_configuration(config, env)
    yield from _list_links(env)
    for _, list_own in plugin.load_parts("files"):
        yield from list_own(machine, env)


def _list_worktrees(project: Project) -> Iterator[Remainder]:
    try:
        found = kept_worktrees.list_all(project)
        # A branch in a worktree goes with the worktree.
        gone = {one.issue for one in found}
        local = remnants.list_local_branches(project)
        branches = [branch for issue, branch in local.items() if issue not in gone]
    except SmError as error:
        yield Remainder(f"worktrees of {project.name}", kept=error.message)
        return
    if branches:
        what = f"branches of {project.settings.repo}: {', '.join(branches)}"
        yield Remainder(what, kept="the clone and its branches are yours")
    for one in found:
        what, issue = f"worktree: {one.path}", one.issue
        if kept := one.problem or "; ".join(one.lost):
            yield Remainder(what, kept=kept)
        else:
            yield Remainder(what, remove=partial(kept_worktrees.drop, project, issue))


def _list_hub(project: Project) -> Iterator[Remainder]:
    """List the embedded forge, the bare repository and the remote, if `sm init` has made them."""
    settings = project.settings
    if not isinstance(settings.forge, LocalSettings):
        yield Remainder(f"labels and claims at {settings.forge.place}", kept="others may use them")
        return
    hub = locate_hub(settings.repo)
    bare = find_bare(settings.repo, remote_url(settings.repo, settings.remote))
    is_ours = bare is not None and bare.parent == hub
    why = _find_only_there(project, bare) if bare is not None and is_ours else ""
    forge = settings.forge.path
    if forge.is_dir():
        open_issues = _count_open(project)
        kept = why or (f"{open_issues} in it are open" if open_issues else "")
        yield Remainder(f"issues and pull requests: {forge}", kept, lambda: shutil.rmtree(forge))
    if bare is None:
        return
    what = f"remote '{settings.remote}' of {settings.repo}, and its repository {bare}"
    if not is_ours:
        yield Remainder(what, kept="sm has not made it")
    else:
        yield Remainder(what, why, lambda: _remove_hub(settings.repo, settings.remote, bare))


def _find_only_there(project: Project, bare: Path) -> str:
    """Find why the hub must stay: commits that no branch of the person, and no other remote has.

    The branches of agents in the clone do not count: branches of dropped worktrees go.
    """
    settings, git = project.settings, project.git
    heads = BareRepository(bare).heads()
    lacking = [branch for branch, head in heads.items() if git.rev_parse(head) is None]
    if not lacking:
        own = ("--branches", "--tags", f"--exclude={settings.remote}/*", "--remotes")
        args = ("--not", f"--exclude={settings.branch_prefix}/*", *own)
        lacking = [
            branch
            for branch, head in heads.items()
            if call(settings.repo, "rev-list", "--max-count=1", head, *args).stdout
        ]
    if not lacking:
        return ""
    return (
        f"it has commits of {', '.join(lacking)} that no branch of yours has; to take them: "
        f"git -C {settings.repo} fetch {settings.remote}, then merge what you want to keep"
    )


def _count_open(project: Project) -> int:
    try:
        return len(project.forge.issues.find(IssueState.OPEN)[0])
    except SmError:
        return 1  # better kept


def _remove_hub(repo: Path, remote: str, bare: Path) -> None:
    call(repo, "remote", "remove", remote)
    shutil.rmtree(bare)
    if not any(bare.parent.iterdir()):
        bare.parent.rmdir()


def _list_files(project: Project) -> Iterator[Remainder]:
    """List the protocol's files, which lie beside the state for agents and scripts."""
    root, name = project.root, project.name
    folder = root.phase(name, 1).parent
    patterns = [
        one.name.replace("-1", "-[0-9]*")
        for one in (root.ci_result(name, 1), root.renotify(name, 1), root.terminal_log(name, 1))
    ] + [root.phase(name, 1).name.replace("-1.", "-[0-9]*.")]
    for path in sorted(found for pattern in patterns for found in folder.glob(pattern)):
        if path.lstat().st_uid == os.geteuid():
            yield Remainder(f"file: {path}", remove=path.unlink)


def _list_hooks(env: Mapping[str, str]) -> Iterator[Remainder]:
    path = install_hooks.default_settings(env)
    try:
        is_there = any(hook.installed for hook in install_hooks.look(path).hooks)
    except SmError as error:
        yield Remainder(f"hooks in {path}", kept=error.message)
        return
    if is_there:
        yield Remainder(f"hooks in {path}", remove=lambda: install_hooks.uninstall(path))


def _list_configuration(config: Config | None, env: Mapping[str, str]) -> Iterator[Remainder]:
    folder = find_user_folder(env)
    if config and config.source != folder and config.source.parent != folder:
        yield Remainder(f"configuration: {config.source}", kept="it lies among your own files")
    for path in list_files(folder):
        yield Remainder(f"configuration: {path}", remove=path.unlink)


def _list_links(env: Mapping[str, str]) -> Iterator[Remainder]:
    ours = find_shell_root() / "bin"
    for folder in dict.fromkeys(env.get("PATH", "").split(os.pathsep)):
        for name in COMMANDS if folder else ():
            path = Path(folder) / name
            if path.is_symlink() and path.resolve() == (ours / name).resolve():
                yield Remainder(f"link: {path}", remove=path.unlink)


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
