"""Asks Slurm what the cluster has: partitions with their nodes, licenses, and how it is set up."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from sm.base.foreign import read_number
from sm.plugins.hosts.slurm.queue import call
from sm.plugins.hosts.slurm.settings import Slurm

PARTITIONS = "%P|%a|%l|%D|%t"
"""sinfo(1): partition ('*' behind the usual one), whether it is up, time limit, nodes, state."""
LIMIT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
"""sinfo(1), %l: days-hours:minutes:seconds."""
READY = ("idle", "mix", "alloc", "comp")
"""States of a node that is there, in the short form; what follows them is a mark."""


class Partition(Struct, frozen=True):
    """A partition. `limit_s` 0: none. `nodes`: how many are in which state, in Slurm's words."""

    name: str
    is_usual: bool
    is_up: bool
    limit_s: float
    nodes: dict[str, int]

    @property
    def there(self) -> int:
        """How many nodes run jobs."""
        return sum(count for state, count in self.nodes.items() if state.startswith(READY))

    @property
    def told(self) -> str:
        """Its nodes in words."""
        return ", ".join(f"{count} {state}" for state, count in sorted(self.nodes.items()))


def list_partitions() -> list[Partition]:
    """Return all partitions.

    Raises:
        SmError: Slurm does not answer, or its client programs are missing.

    """
    return read_partitions(call("sinfo", "--noheader", f"--format={PARTITIONS}").lines)


def read_partitions(lines: Iterable[str]) -> list[Partition]:
    """Read what sinfo has listed in the format `PARTITIONS`: a line for each state of nodes."""
    found: dict[str, Partition] = {}
    for line in lines:
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != PARTITIONS.count("|") + 1:
            continue
        called, up, limit, count, state = parts
        name = called.removesuffix("*")
        made = Partition(name, called.endswith("*"), up == "up", _read_limit(limit), {})
        nodes = found.setdefault(name, made).nodes
        nodes[state] = nodes.get(state, 0) + (read_number(count) or 0)
    return list(found.values())


def _read_limit(text: str) -> float:
    parts = LIMIT.fullmatch(text)
    if not parts:
        return 0.0
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def find_partition(partitions: Iterable[Partition], settings: Slurm) -> Partition | None:
    """Return the partition of our jobs; the first if there are several, None if there is none."""
    wanted = settings.partition.partition(",")[0]
    return next(
        (one for one in partitions if (one.name == wanted or (not wanted and one.is_usual))), None
    )


def list_licenses() -> dict[str, int]:
    """Return how many there are of each license; raises as `list_partitions`."""
    return read_licenses(call("scontrol", "--oneliner", "show", "licenses").lines)


def read_licenses(lines: Iterable[str]) -> dict[str, int]:
    """Read what scontrol shows of licenses."""
    shown = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    return {
        one["LicenseName"]: read_number(one.get("Total", "")) or 0
        for one in shown
        if "LicenseName" in one
    }


def read_setup() -> dict[str, str]:
    """Return how Slurm is set up, by the names of slurm.conf(5); raises as `list_partitions`."""
    lines = call("scontrol", "show", "config").lines
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, sign, value in pairs if sign}
