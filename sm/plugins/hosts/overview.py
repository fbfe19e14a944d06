"""Overview of all hosts: whether each answers, and what it has of ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.text import one_line
from sm.config.schema import Config
from sm.issues.placements import list_placements
from sm.plugins.hosts import health
from sm.plugins.hosts.ssh.client import SshNode, greet
from sm.plugins.hosts.ssh.node import list_nodes
from sm.sessions.project import Project

PATIENCE_S = 3.0


class HostRow(Struct, frozen=True, kw_only=True):
    """One host, or a project's part of a cluster.

    `room` is how many sessions it may have, `sessions` how many it has of ours.
    `known_at` is when it has said something last of them (seconds since 1970), 0 for never, and
    `age_s` how long that is ago. `trouble` is why it does not answer now, '' if it does. `short`
    is what it lacked then, so that it gets nothing new; `sm` its version.
    """

    name: str
    address: str
    room: int
    sessions: int
    issues: tuple[str, ...] = ()
    known_at: float = 0.0
    age_s: float = 0.0
    trouble: str = ""
    short: str = ""
    sm: str = ""


def list_rows(config: Config, *, ask: bool = True) -> list[HostRow]:
    """Return all hosts; with `ask` all are asked at once whether they answer.

    A project whose sessions are jobs has a row of its own: its part of the cluster is the host.
    """
    return [*_list_nodes(config, ask=ask), *_list_clusters(config, ask=ask)]


def _list_clusters(config: Config, *, ask: bool) -> Iterator[HostRow]:
    from sm.plugins.hosts.slurm import check, cluster, step

    for one in config.projects:
        project = Project(config, one)
        if not check.uses(project):
            continue
        settings, words, trouble = step.read_settings(project), "", ""
        try:
            found = cluster.find_partition(cluster.list_partitions(), settings) if ask else None
        except SmError as error:
            found, trouble = None, error.message
        if found:
            words = f"partition {found.name}: {found.told}"
        issues = tuple(
            f"{placed.project}#{placed.issue}"
            for placed in list_placements(project.root.project(project.name))
            if placed.runner == check.NAME
        )
        yield HostRow(
            name=f"{check.NAME}, {project.name}",
            address=words or settings.partition or "partition",
            room=settings.sessions,
            sessions=len(issues),
            issues=issues,
            trouble=trouble,
        )


def _list_nodes(config: Config, *, ask: bool) -> list[HostRow]:
    nodes = list_nodes(config)
    if not nodes:
        return []
    issues = _list_issues(config)
    with ThreadPoolExecutor(len(nodes)) as pool:
        greeted = list(pool.map(_greet, nodes)) if ask else [("", "")] * len(nodes)
    return [
        _make_row(config, node, tuple(issues.get(node.name, ())), *said)
        for node, said in zip(nodes, greeted, strict=True)
    ]


def _list_issues(config: Config) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for settings in config.projects:
        project = Project(config, settings)
        for one in list_placements(project.root.project(project.name)):
            found.setdefault(one.host, []).append(f"{one.project}#{one.issue}")
    return found


def _greet(node: SshNode) -> tuple[str, str]:
    """The version of the node's `sm`, and why it does not answer."""
    try:
        return greet(node, PATIENCE_S).sm, ""
    except SmError as error:
        return "", error.message.partition(": ")[2] or error.message


def _make_row(
    config: Config, node: SshNode, issues: tuple[str, ...], version: str, trouble: str
) -> HostRow:
    kept = [health.read_report(node.folder, one.name) for one in config.projects]
    known_at = max((one.at for one in kept if one), default=0.0)
    refusals = (health.read_refusal(node.folder, one.name) for one in config.projects)
    lacking = [what for one in kept if one for what in one.report.short]
    lacking += [one_line(one.why) for one in refusals if one]
    return HostRow(
        name=node.name,
        address=node.host.address,
        room=node.host.sessions,
        sessions=len(issues),
        issues=issues,
        known_at=known_at,
        age_s=max(0.0, time.time() - known_at) if known_at else 0.0,
        trouble=trouble,
        short=", ".join(dict.fromkeys(lacking)),
        sm=version,
    )
