"""Looks at the whole installation, check by check; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import structs

from sm.adapters.tmux import Tmux
from sm.config.schema import Config
from sm.doctor.finding import Finding, fail, guarded, ok
from sm.doctor.machine import CHECKS as OF_MACHINE
from sm.doctor.machine import Machine, handoffs
from sm.doctor.project import CHECKS as OF_PROJECT
from sm.errors import SmError
from sm.store.paths import Root
from sm.workflow.context import Context


def examine(config: Config | SmError, root: Root, socket: str | None) -> Iterator[Finding]:
    """Everything that is found, machine first; with a config that is an error, only the machine.

    `root` and `socket` are where state and agents are as far as that is known. What keeps several
    checks from looking is told once.
    """
    told: set[Finding] = set()
    for finding in _examine(config, root, socket):
        if finding not in told:
            told.add(finding)
            yield finding


def _examine(config: Config | SmError, root: Root, socket: str | None) -> Iterator[Finding]:
    yield _configuration(config)
    machine = Machine(root, Tmux(socket))
    for look in OF_MACHINE:
        yield from guarded(partial(look, machine))
    if isinstance(config, SmError):
        return
    yield from guarded(partial(handoffs, config.bridge_database))
    for project in config.projects:
        ctx = Context(config, project)
        for check in OF_PROJECT:
            for finding in guarded(partial(check, ctx)):
                yield structs.replace(finding, where=project.name)


def _configuration(config: Config | SmError) -> Finding:
    if isinstance(config, SmError):
        return fail(config.message)
    names = ", ".join(project.name for project in config.projects)
    return ok(f"configuration '{config.source}': {names}")
