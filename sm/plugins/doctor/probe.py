"""Starts an agent CLI to check which assumptions of its profile its installed version meets.

It has its own tmux server and state root, and the person's account. It sends nothing to the model
unless a prompt is asked for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from sm.adapters.agent import profiles
from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux, TmuxError
from sm.base.errors import TemporaryError
from sm.base.nonce import make_nonce
from sm.config.schema import AgentSettings, Config
from sm.plugins.doctor.agent_cli import check_version
from sm.plugins.doctor.agent_cli import warn_of_settings as name_causes
from sm.plugins.doctor.assumptions import CHECKS, FULL, LAST
from sm.plugins.doctor.starts import STARTS, FirstStart, walk
from sm.plugins.doctor.subject import ProbeSubject
from sm.sessions import agent_process, registry
from sm.sessions.launch import Launch
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.setup.finding import Finding, Level, guard
from sm.store.files import ensure_private_dir
from sm.store.paths import Root

NAME = "sm-probe"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def list_targets(config: Config | None, name: str | None) -> list[tuple[AgentSettings, Profile]]:
    """Return the agents to probe: those of profile `name`, else those of the projects.

    Raises:
        UsageError: there is no such profile, or it cannot be used.

    """
    overrides = config.profiles if config else {}
    configured = [project.agent for project in config.projects] if config else []
    if not configured:
        configured = [AgentSettings()]
    found = [(agent, profiles.resolve(agent, overrides)) for agent in configured]
    if name is not None:
        wanted = profiles.find(name, overrides)
        found = [(agent, profile) for agent, profile in found if profile == wanted]
        found = found or [(AgentSettings(profile=name), wanted)]
    # Projects with the same command have the same result.
    return list(
        {(agent.command, profile.name): (agent, profile) for agent, profile in found}.values()
    )


def probe(root: Root, agent: AgentSettings, profile: Profile, *, full: bool) -> Iterator[Finding]:
    """Yield which assumptions of `profile` hold with the program of `agent`, one by one.

    The program runs in the `probe` directory of `root`. With `full` it gets one tiny prompt.
    """
    for finding in guard(lambda: _probe(root, agent, profile, full)):
        yield structs.replace(finding, where=profile.name)


def _probe(root: Root, agent: AgentSettings, profile: Profile, full: bool) -> Iterator[Finding]:
    profiles.check_terminal(profile, "a probe")
    yield check_version(agent, profile)
    ensure_private_dir(root.private)
    cwd = ensure_private_dir(root.probe)
    with _ending_in_order() as told:
        lacks = False
        with _started(told, agent, profile, cwd) as subject:
            for check in (*CHECKS, *(FULL if full else ()), *LAST):
                for finding in check(subject):
                    lacks = lacks or finding.level is Level.FAIL
                    yield finding
                if subject.is_hopeless:
                    break
        if lacks:
            yield from name_causes(agent, profile, cwd)
        for start in STARTS.get(profile.program, ()):
            yield from _walk(told, start, agent, profile)


def _walk(
    told: list[int], start: FirstStart, agent: AgentSettings, profile: Profile
) -> Iterator[Finding]:
    with _place() as place:
        worktree, variables = start.prepare(place.path)
        fresh = structs.replace(agent, env={**agent.env, **variables})
        with _started(told, fresh, profile, worktree) as subject:
            yield from walk(start, subject)


@contextlib.contextmanager
def _started(
    told: list[int], agent: AgentSettings, profile: Profile, cwd: Path
) -> Iterator[ProbeSubject]:
    """Yield the agent CLI, started in `cwd`; it ends with the probe."""
    with _place() as place, _server() as tmux:
        session = registry.create(place, _session(place, cwd, agent, profile))
        subject = ProbeSubject(tmux, session, profile, time.monotonic(), told)
        try:
            agent_process.launch(tmux, session, Launch(agent, profile), generation=1)
            yield subject
        finally:
            agent_process.stop(tmux, session)


def _session(place: Root, cwd: Path, agent: AgentSettings, profile: Profile) -> AdHocSession:
    return AdHocSession(
        AdHocRecord(
            name=NAME,
            provider=profile.name,
            cwd=cwd,
            config=None,
            state_root=place.path,
            created_at=time.time(),
            command=agent.command,
        )
    )


@contextlib.contextmanager
def _ending_in_order() -> Iterator[list[int]]:
    """Yield the signals that told us to end; the probe ends where it looks at the screen.

    An exception from the handler could come while another program starts, and would be lost or
    leave a lock behind. What the probe has started ends with it in any case.
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
    """Yield a state root that is removed with the probe."""
    path = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    try:
        yield Root(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _server() -> Iterator[Tmux]:
    """Yield a tmux server that ends with the probe, its socket too."""
    name = f"{NAME}-{make_nonce(4)}"
    try:
        yield (tmux := Tmux(name))
    finally:
        with contextlib.suppress(TmuxError, TemporaryError):
            tmux.command("kill-server")
        folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp")  # noqa: S108 - tmux's own place
        (folder / f"tmux-{os.geteuid()}" / name).unlink(missing_ok=True)
