"""Checks of plugins. Each part of those that others bring is loaded once, to try it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sm.adapters.agent.profiles import BUILTIN
from sm.adapters.forge import kinds
from sm.base import plugin
from sm.base.errors import SmError
from sm.base.plugin import KINDS, Failure, Kind
from sm.cli.root import COMMANDS
from sm.config.shapes import KEYS
from sm.plugins import OURS
from sm.setup.finding import Finding, ok, warn

ADVICE = "mend it, install it anew, or uninstall it; all else works without it"

TAKEN: Mapping[Kind, Collection[str]] = {
    "agents": BUILTIN,
    "forges": kinds.OURS,
    "sections": KEYS,
    "verbs": COMMANDS,
}
"""Names that `sm` has itself, so that plugins cannot take them."""


def check_plugins() -> Iterator[Finding]:
    """Name each plugin that is installed beside `sm`, and what cannot be used of it."""
    failures = [*plugin.list_failures(), *_list_clashes(), *_try_others()]
    for failure in failures:
        told = f"plugin '{failure.plugin}' cannot be used as it is: {failure.why}"
        yield warn(told, ADVICE)
    broken = {failure.plugin for failure in failures}
    for name, parts in _list_others().items():
        if name not in broken:
            yield ok(f"plugin '{name}': {', '.join(parts)}")


def _list_clashes() -> Iterator[Failure]:
    for kind, taken in TAKEN.items():
        yield from plugin.list_clashes(kind, taken)


def _list_others() -> dict[str, list[str]]:
    """List what each plugin adds that does not come with `sm`."""
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for part in plugin.list_parts(kind).values():
            if part.plugin not in OURS:
                found.setdefault(part.plugin, []).append(f"{kind} '{part.name}'")
    return found


def _try_others() -> Iterator[Failure]:
    for kind in KINDS:
        for part in plugin.list_parts(kind).values():
            if part.plugin in OURS:
                continue
            try:
                plugin.load_entry(part)
            except SmError as error:
                yield Failure(part.plugin, f"{kind}: {error.message}")
