"""Sandboxes: parts of plugins in which programs start that work in a session's folder.

A plugin has a `Sandbox` among its parts of the kind `sandboxes`, and a project, or the machine,
names one by `sandbox`. It wraps the command of each agent, wherever one is begun, and the setup
command of a new worktree. If it cannot be had, nothing is started without it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sm.adapters.agent.account import guess_account_folder
from sm.base import plugin
from sm.base.errors import SmError
from sm.base.nearest import advise
from sm.base.text import one_line
from sm.config.forges import LocalSettings
from sm.config.schema import MachineSettings, ProjectSettings
from sm.helper.plugin_call import note_failure
from sm.sessions.session import IssueSession, Session
from sm.shell_root import PACKAGE, find_shell_root
from sm.store.files import discard, read_guarded, write_atomic

AnySettings = MachineSettings | ProjectSettings
NAME_LIMIT = 200


class SandboxError(SmError):
    """The sandbox cannot be had, so nothing was started; a person has to look."""


class Start(Struct, frozen=True):
    """A program that is about to start for a session, in `folder`, with that whole `environment`.

    `settings` are those of the session's project, or of the machine, for the plugin's section.
    `writable` and `readable` name what the agent, its git and `sm` have to find there; what is
    missing does not exist yet. `session` is its id, which no other session ever has.
    """

    session: str
    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    settings: AnySettings


def _do_nothing(*_: object) -> None:
    """Prepare or clean nothing."""


class Sandbox(NamedTuple):
    """Sandbox, in a plugin.

    `wrap` returns the command line that starts `argv` inside. It is pure: `prepare` makes what that
    needs, and `clean`, given the session's id, takes it away once all that ran inside has ended; it
    may be called again. `check` returns what is wrong with the sandbox here, '' if it works, within
    a second. Each of the first three may raise: then nothing is started.

    Command lines can be read by all users, so a value of `environment` belongs into none. All
    processes of the agent keep the variable SM_SESSION_DIR, by which they are found, and their
    numbers, by which hooks tell whose they are: so no namespace of processes of its own.
    """

    wrap: Callable[[Start], Sequence[str]]
    check: Callable[[AnySettings], str]
    prepare: Callable[[Start], object] = _do_nothing
    clean: Callable[[AnySettings, str], object] = _do_nothing


def find_problem(settings: AnySettings) -> str:
    """Return why the sandbox that `settings` name cannot be had; '' if it can, or none is named."""
    try:
        _open(settings)
    except SandboxError as error:
        return error.message
    return ""


def check(session: Session) -> None:
    """Check that a program of the session can start in its sandbox now.

    Raises:
        SandboxError: it cannot be had.

    """
    _open(session.holder)


def wrap(session: Session, argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command line that starts `argv` in the session's sandbox; `argv` without one.

    What the sandbox needs is made. `clean` takes it away once all that has started has ended.

    Raises:
        SandboxError: it cannot be had.

    """
    clean(session)  # what an earlier start has left that was cut short
    settings = session.holder
    sandbox = _open(settings)
    if sandbox is None:
        return [*argv]
    write_atomic(session.dir.sandbox, f"{settings.sandbox}\n")
    start = _make_start(session, argv, environment)
    try:
        sandbox.prepare(start)
        wrapped = [*sandbox.wrap(start)]
    except Exception as error:  # whatever is wrong with it, nothing is started outside
        clean(session)
        raise _refuse(settings.sandbox, plugin.describe(error)) from error
    if not wrapped:
        clean(session)
        raise _refuse(settings.sandbox, "it gives no command")
    return wrapped


def clean(session: Session) -> None:
    """Take away what was made for the session's sandbox; nothing runs in it any more."""
    name = (read_guarded(session.dir.sandbox, NAME_LIMIT) or b"").decode("utf-8", "replace").strip()
    if not name:
        return
    part = plugin.list_parts("sandboxes").get(name)
    if part:
        try:
            sandbox: Sandbox = plugin.load_entry(part)
            sandbox.clean(session.holder, session.name)
        except Exception as error:  # a broken plugin keeps no session from its end
            note_failure(session.root, part, "could not clean a sandbox", error)
    discard(session.dir.sandbox)


def _open(settings: AnySettings) -> Sandbox | None:
    name = settings.sandbox
    if not name:
        return None
    known = plugin.list_parts("sandboxes")
    if name not in known:
        there = f"there are {', '.join(map(repr, known))}" if known else "there is none"
        raise _refuse(name, f"no plugin has it: {advise(name, [*known], there)}")
    try:
        sandbox: Sandbox = plugin.load_entry(known[name])
        problem = sandbox.check(settings)
    except Exception as error:  # whatever is wrong with its plugin
        raise _refuse(name, plugin.describe(error)) from error
    if problem:
        raise _refuse(name, one_line(problem))
    return sandbox


def _refuse(name: str, why: str) -> SandboxError:
    # `false_start.py` knows these words: no issue is at fault.
    return SandboxError(f"sandbox '{name}' cannot be had: {why}")


def _make_start(session: Session, argv: Sequence[str], environment: Mapping[str, str]) -> Start:
    return Start(
        session=session.name,
        argv=tuple(argv),
        folder=session.record.cwd,
        environment=environment,
        writable=tuple(dict.fromkeys(_list_writable(session, environment))),
        readable=tuple(dict.fromkeys(_list_readable(session, argv, environment))),
        settings=session.holder,
    )


def _list_writable(session: Session, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield what an agent writes: its work, its state and ours, and its client's own folder."""
    from sm.adapters.git import Git

    yield session.record.cwd
    with contextlib.suppress(SmError):  # not every folder of `sm new` is in a repository
        yield Git(session.record.cwd).common_dir()
    yield session.root.private
    yield from session.files
    if folder := guess_account_folder(session.profile, environment):
        yield folder
    yield session.machine.settings.bridge_database.parent
    if isinstance(session, IssueSession):
        forge = session.project.settings.forge
        if isinstance(forge, LocalSettings):
            yield forge.path
        url = session.project.git.setting(f"remote.{session.record.remote}.url")
        if url.startswith("/"):
            yield Path(url)


def _list_readable(
    session: Session, argv: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Path]:
    """Yield what an agent reads: its program, `sm` with its Python, the configuration."""
    import shutil  # which no command loads at its start

    if found := shutil.which(argv[0], path=environment.get("PATH")):
        yield Path(found).parent
        yield Path(os.path.realpath(found)).parent
    yield from (find_shell_root(), PACKAGE, Path(sys.prefix), Path(sys.base_prefix))
    if session.record.config:
        yield session.record.config
