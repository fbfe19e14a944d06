"""Pushes a look at the forge to nodes over ssh."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from msgspec import json, structs

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.issues.runners import SILENT_S, Placement
from sm.plugins.hosts import health
from sm.plugins.hosts.dispatch.bearer import MakeShare
from sm.plugins.hosts.folder import HostFolder
from sm.plugins.hosts.ssh.client import Patience, SshNode, ask
from sm.plugins.hosts.wire import INPUT_LIMIT
from sm.sessions.project import Project
from sm.store.files import read_json, write_json

BRING_S = 5.0
"""Time that it may take, in seconds; a node that is slower looks by itself."""
PATIENCE = Patience(in_all_s=BRING_S, silent_s=SILENT_S)
YOUNG_S = 15.0
"""Age of a report from which the clock of a node is known, in seconds."""
EARLIER = 30
"""Issues of earlier sessions there: a node that knows them settled removes what is left of them."""


def bring_all(
    nodes: Sequence[SshNode], project: Project, placements: Sequence[Placement], make: MakeShare
) -> None:
    """Bring each node what concerns its sessions, all at once."""
    from concurrent.futures import ThreadPoolExecutor

    by_host: dict[str, list[Placement]] = {}
    for one in placements:
        by_host.setdefault(one.host, []).append(one)
    meant = [node for node in nodes if node.name in by_host]
    if meant:
        with ThreadPoolExecutor(len(meant)) as pool:
            for node in meant:
                pool.submit(bring, node, project, by_host[node.name], make)


def bring(node: SshNode, project: Project, there: Sequence[Placement], make: MakeShare) -> None:
    """Bring the node what concerns its sessions, if it answers and understands that.

    What it was told before it knows, or it looks by itself: so whatever fails here is no error.
    """
    with contextlib.suppress(SmError):
        ahead_s = _find_ahead_s(node, project)
        if ahead_s is None:
            return
        ours = [one.issue for one in there]
        text = _write(make, [*ours, *_remember(node.folder, project.name, ours)], ahead_s)
        if len(text) > INPUT_LIMIT:
            text = _write(make, ours, ahead_s)
        words = ("host", "adopt", project.name)
        ask(node, words, stdin=text, project=project.name, within_s=BRING_S, patience=PATIENCE)


def _find_ahead_s(node: SshNode, project: Project) -> float | None:
    """Return how far the node's clock is ahead of ours, at the least; None for an older `sm`.

    What it has said it has said before it came here.
    """
    kept = health.read_report(node.folder, project.name)
    if kept and 0 <= time.time() - kept.at < YOUNG_S:
        said_at, at = kept.report.said_at, kept.at
    else:  # somebody waits for it, and a report would take longer
        said_at, at = ask(node, (), within_s=BRING_S, patience=PATIENCE).now, time.time()
    return said_at - at if said_at else None


def _write(make: MakeShare, issues: Sequence[IssueId], ahead_s: float) -> str:
    share = make(issues)
    seen = structs.replace(share.seen, taken_at=share.seen.taken_at + ahead_s)
    return json.encode(structs.replace(share, seen=seen)).decode()


def _remember(folder: HostFolder, project: str, ours: Sequence[IssueId]) -> list[IssueId]:
    """Return the issues of earlier sessions there, the last ones; keep ours for later."""
    known: list[IssueId] = []
    with contextlib.suppress(SmError):
        known = read_json(folder.placed(project), list[IssueId]) or []
    earlier = [number for number in known if number not in ours][-EARLIER:]
    if known != (now := [*earlier, *sorted(ours)]):
        with contextlib.suppress(SmError):
            write_json(folder.placed(project), now)
    return earlier
