"""Checks of the whole installation, which change nothing, and of its plugins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from msgspec import structs

from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.forge import kinds
from sm.adapters.tmux import Tmux
from sm.base import plugin
from sm.base.errors import SmError
from sm.base.plugin import KINDS, Kind, PluginFailure
from sm.cli.root import COMMANDS
from sm.config.schema import Config, KeepFree
from sm.config.shapes import KEYS
from sm.plugins import OURS
from sm.plugins.doctor.agent_cli import check_personal_hooks
from sm.plugins.doctor.leftovers import check_left_running, check_own_monitors
from sm.plugins.doctor.machine import CHECKS as OF_MACHINE
from sm.plugins.doctor.machine import Installation
from sm.plugins.doctor.project import CHECKS as OF_PROJECT
from sm.plugins.doctor.project import check_ci, check_ci_exists
from sm.plugins.doctor.services import check_services
from sm.sessions.project import Project
from sm.setup.finding import DoctorCheck, Finding, fail, guard, ok, warn
from sm.store.paths import Root

ADVICE = "mend it, install it anew, or uninstall it; all else works without it"

TAKEN: Mapping[Kind, Collection[str]] = {
    "agents": BUILTIN,
    "forges": kinds.OURS,
    "sections": KEYS,
    "verbs": COMMANDS,
}
"""Names that `sm` has itself, so that plugins cannot take them."""


def check_plugins() -> Iterator[Finding]:
    """Name each plugin that is installed beside `sm`, and what cannot be used of it.

    Each part of a plugin that does not come with `sm` is loaded once, to try it.
    """
    failures = list(plugin.list_failures())
    for kind, taken in TAKEN.items():
        failures += plugin.list_clashes(kind, taken)
    failures += _try_others()
    for failure in failures:
        told = f"plugin '{failure.plugin}' cannot be used as it is: {failure.why}"
        yield warn(told, ADVICE)
    broken = {failure.plugin for failure in failures}
    for name, parts in _list_others().items():
        if name not in broken:
            yield ok(f"plugin '{name}': {', '.join(parts)}")


def _list_others() -> dict[str, list[str]]:
    """List what each plugin adds that does not come with `sm`."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for part in plugin.list_parts(kind).values():
            if part.plugin not in OURS:
                found.setdefault(part.plugin, []).append(f"{kind} '{part.name}'")
    return found


def _try_others() -> Iterator[PluginFailure]:
    for kind in KINDS:
        for part in plugin.list_parts(kind).values():
            if part.plugin in OURS:
                continue
            try:
                plugin.load_entry(part)
            except SmError as error:
                yield PluginFailure(part.plugin, f"{kind}: {error.message}")


def examine(
    config: Config | SmError, root: Root, socket: str | None, *, ci: bool = False
) -> Iterator[Finding]:
    """Yield all findings, the machine's first; if `config` is an error, only the machine's.

    `root` and `socket` are where state and agents are, as far as known. With `ci` each project's CI
    command runs once, too. A problem that blocks several checks is told once.
    """
    told: set[Finding] = set()
    for finding in _examine(config, root, socket, ci):
        words = structs.replace(finding, fix=None)
        if words not in told:
            told.add(words)
            yield finding


def _examine(
    config: Config | SmError, root: Root, socket: str | None, ci: bool
) -> Iterator[Finding]:
    yield _configuration(config)
    keep_free = KeepFree() if isinstance(config, SmError) else config.keep_free
    machine = Installation(root, Tmux(socket), keep_free)
    for look in (*OF_MACHINE, check_personal_hooks, check_left_running, check_own_monitors):
        yield from guard(partial(look, machine))
    yield from guard(check_plugins)
    if isinstance(config, SmError):
        return
    yield from guard(partial(check_services, root, config))
    added: list[DoctorCheck] = [check for _, check in plugin.load_parts("checks")]
    for of_machine in filter(None, (check.machine for check in added)):
        yield from guard_plugin(partial(of_machine, config))
    of_projects = [*filter(None, (check.project for check in added))]
    for settings in config.projects:
        project = Project(config, settings)
        found = [guard(partial(check, project)) for check in OF_PROJECT]
        found += [guard_plugin(partial(check, project)) for check in of_projects]
        found += [guard(partial(check_ci if ci else check_ci_exists, project))]
        for finding in chain.from_iterable(found):
            yield structs.replace(finding, where=settings.name)


def guard_plugin(check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Guard as `guard` does; any other failure of a plugin's check is a finding as well."""
    try:
        yield from guard(check)
    except Exception as error:  # it may be anybody's code
        yield fail(f"a check of a plugin has failed: {plugin.describe(error)}")


def _configuration(config: Config | SmError) -> Finding:
    if isinstance(config, SmError):
        return fail(config.message)
    names = ", ".join(project.name for project in config.projects)
    return ok(f"configuration '{config.source}': {names or 'no project'}")
