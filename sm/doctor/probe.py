"""Starts an agent CLI to see which assumptions of its profile hold with the installed version.

In a tmux server and a state root of its own, with the person's own account: nothing is sent to
the model unless a prompt is asked for.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from sm.adapters.agent import profiles
from sm.adapters.agent.profile import Profile
from sm.adapters.process import ANY_CODE, run
from sm.adapters.tmux import Tmux, TmuxBusyError, TmuxError
from sm.config.schema import Agent, Config
from sm.doctor.assumptions import CHECKS, FULL, LAST
from sm.doctor.finding import Finding, fail, guarded, ok
from sm.doctor.probed import Subject
from sm.errors import SmError
from sm.session import agent as agents
from sm.session import registry
from sm.session.launchfiles import Launch, split_command
from sm.session.registry import AdHocSession
from sm.store.files import ensure_private_dir
from sm.store.paths import Root

NAME = "sm-probe"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def targets(config: Config | None, name: str | None) -> list[tuple[Agent, Profile]]:
    """The agents that are probed: of profile `name`, else those that the projects have.

    Raises:
        UsageError: there is no such profile, or one cannot be used.

    """
    overrides = config.profiles if config else {}
    configured = [project.agent for project in config.projects] if config else [Agent()]
    found = [(agent, profiles.resolve(agent, overrides)) for agent in configured]
    if name is not None:
        wanted = profiles.named(name, overrides)
        found = [(agent, profile) for agent, profile in found if profile == wanted]
        found = found or [(Agent(profile=name), wanted)]
    # Projects that run the same command have the same answer.
    return list(
        {(agent.command, profile.name): (agent, profile) for agent, profile in found}.values()
    )


def probe(root: Root, agent: Agent, profile: Profile, *, full: bool) -> Iterator[Finding]:
    """What holds of `profile` with the program that `agent` runs, one assumption at a time.

    The program runs in the `probe` directory of `root`. With `full` it is given one tiny prompt.
    """
    for finding in guarded(lambda: _probe(root, agent, profile, full)):
        yield structs.replace(finding, where=profile.name)


def _probe(root: Root, agent: Agent, profile: Profile, full: bool) -> Iterator[Finding]:
    profiles.check_terminal(profile, "a probe")
    yield _version(agent, profile)
    ensure_private_dir(root.private)
    cwd = ensure_private_dir(root.probe)
    with _ending_in_order() as told, _place() as place, _server() as tmux:
        session = registry.create(place, _session(place, cwd, agent, profile))
        subject = Subject(tmux, session, profile, time.monotonic(), told)
        try:
            agents.launch(tmux, session, Launch(agent, profile), generation=1)
            for check in (*CHECKS, *(FULL if full else ()), *LAST):
                yield from check(subject)
                if subject.is_hopeless:
                    break
        finally:
            agents.stop(tmux, session)


def _version(agent: Agent, profile: Profile) -> Finding:
    words = split_command(agent.command or profile.command)
    path = shutil.which(words[0], path=agent.env.get("PATH"))
    if path is None:
        raise SmError(f"agent '{words[0]}' is not on PATH: install it, or set 'agent.command'")
    if Path(path).name not in {known.program for known in profiles.BUILTIN.values()}:
        return ok(f"'{path}'")  # one that is not known is not started just to ask
    done = run(path, "--version", timeout_s=20, accept=tuple(ANY_CODE))
    if done.code:
        return fail(f"'{path} --version' failed", "run it by hand, and install it anew")
    return ok(f"'{path}', {done.stdout.strip()}")


def _session(place: Root, cwd: Path, agent: Agent, profile: Profile) -> AdHocSession:
    return AdHocSession(
        name=NAME,
        provider=profile.name,
        cwd=cwd,
        config=None,
        state_root=place.path,
        created_at=time.time(),
        command=agent.command,
    )


@contextlib.contextmanager
def _ending_in_order() -> Iterator[list[int]]:
    """Yields the signals that have told us to end; the probe does so where it looks at the screen.

    An exception out of the handler could come while another program is being started, and would
    then be lost, or leave a lock behind. What the probe has started goes with it in any case.
    """
    told: list[int] = []

    def end(number: int, _frame: object) -> None:
        told.append(number)

    before = {number: signal.signal(number, end) for number in ENDING}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _place() -> Iterator[Root]:
    """A state root that goes with the probe."""
    path = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    try:
        yield Root(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _server() -> Iterator[Tmux]:
    """A tmux server that goes with the probe, its socket too."""
    name = f"{NAME}-{secrets.token_hex(4)}"
    try:
        yield (tmux := Tmux(name))
    finally:
        with contextlib.suppress(TmuxError, TmuxBusyError):
            tmux.command("kill-server")
        folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp")  # noqa: S108 - tmux's own place
        (folder / f"tmux-{os.geteuid()}" / name).unlink(missing_ok=True)
