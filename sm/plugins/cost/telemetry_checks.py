"""What `sm doctor` says of telemetry, where it matters, and of what is not known without it."""

from __future__ import annotations

from collections.abc import Iterator

from sm.adapters.agent.claude import CLAUDE
from sm.config.shapes import read_section
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.folder import find_folder
from sm.plugins.cost.ledger.telemetry import list_theirs, read_address
from sm.plugins.cost.settings import Cost
from sm.sessions.launch import select_environment
from sm.sessions.project import Project
from sm.setup.finding import Check, Finding, ok, warn
from sm.store import lock

WITHOUT = "what a compaction used is known once its context has ended"


def check_telemetry(project: Project) -> Iterator[Finding]:
    """Check whether the agents of a project tell of their requests, and somebody hears it."""
    if project.profile.spending != CLAUDE.spending:
        return
    environment = select_environment(project.settings.agent)
    theirs = next(list_theirs(project.settings.repo, environment), "")
    if not read_section(project.config, Cost).telemetry:
        if read_section(project.settings, Budget) != Budget():
            yield ok(f"telemetry is off (cost.telemetry): {WITHOUT}")
    elif theirs:
        yield ok(f"telemetry goes where '{theirs}' of your own says, so {WITHOUT}")
    else:
        yield _check_receiver(project)


def _check_receiver(project: Project) -> Finding:
    from sm.plugins.cost.ledger.receiver import is_needed

    address, folder = read_address(project.root), find_folder(project.root)
    if address and lock.is_held(folder / "telemetry.lock"):
        return ok(f"telemetry is on: its receiver listens on port {address.port}")
    if address and is_needed(address):
        return warn(
            "telemetry is on, and its receiver is gone: what agents tell meanwhile is lost",
            f"the next pass of such an agent starts it; if not, see '{folder / 'telemetry.log'}'",
        )
    return ok("telemetry is on: its receiver is started with the next agent")


CHECK = Check(project=check_telemetry)
